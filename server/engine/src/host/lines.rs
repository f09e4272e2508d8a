//! Bytes of a pipe, cut into lines; pure.
//!
//! A line over the bound is dropped whole: from the overflow to the next line feed everything is discarded, since the
//! rest of a cut line could parse as something it never was (bug report 83). Invalid UTF-8 is replaced, not refused.

/// The longest line that is kept, in bytes. Harnesses print whole command outputs on one line.
pub(super) const MAX_LINE: usize = 8 << 20;

/// A cutter of one stream.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    dropped: u64,
}

/// What a stream is cut into.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A line, without its line feed or carriage return.
    Line(String),
    /// A line that was too long, and how long it was.
    Overlong(u64),
}

impl Lines {
    /// Takes the next bytes and returns the lines that they complete.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            match part.strip_suffix(b"\n") {
                None => self.extend(part),
                Some(rest) => {
                    self.extend(rest);
                    pieces.extend(self.take());
                }
            }
        }
        pieces
    }

    /// The stream ended: what is left is a line, too.
    pub(super) fn finish(&mut self) -> Option<Piece> {
        if self.buffer.is_empty() && self.dropped == 0 { None } else { self.take() }
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.dropped > 0 {
            self.dropped += bytes.len() as u64;
        } else if self.buffer.len() + bytes.len() > MAX_LINE {
            self.dropped = (self.buffer.len() + bytes.len()) as u64;
            self.buffer = Vec::new();
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    fn take(&mut self) -> Option<Piece> {
        if self.dropped > 0 {
            return Some(Piece::Overlong(std::mem::take(&mut self.dropped)));
        }
        let line = std::mem::take(&mut self.buffer);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        Some(Piece::Line(String::from_utf8_lossy(line).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(chunks: &[&[u8]]) -> Vec<Piece> {
        let mut lines = Lines::default();
        let mut pieces: Vec<Piece> = chunks.iter().flat_map(|chunk| lines.feed(chunk)).collect();
        pieces.extend(lines.finish());
        pieces
    }

    #[test]
    fn lines_may_arrive_in_any_pieces() {
        let line = |text: &str| Piece::Line(text.into());
        assert_eq!(cut(&[b"a\nb", b"c\r\n", b"", b"\n", b"end"]), [line("a"), line("bc"), line(""), line("end")]);
        assert_eq!(cut(&[]), []);
        assert_eq!(cut(&[b"\xff\n"]), [line("\u{fffd}")]);
    }

    #[test]
    fn an_overlong_line_is_dropped_up_to_its_end() {
        let long = vec![b'x'; MAX_LINE];
        let pieces = cut(&[&long, b"yy", b"{\"valid\":1}\n{\"next\":1}\n"]);
        assert_eq!(pieces, [Piece::Overlong(MAX_LINE as u64 + 13), Piece::Line("{\"next\":1}".into())]);
        assert_eq!(cut(&[&long, b"z"]), [Piece::Overlong(MAX_LINE as u64 + 1)], "even at the stream's end");
    }

    proptest! {
        #[test]
        fn cutting_does_not_depend_on_the_pieces(text in "[a\n\r]{0,40}", at in 0usize..40) {
            let bytes = text.as_bytes();
            let at = at.min(bytes.len());
            prop_assert_eq!(cut(&[bytes]), cut(&[&bytes[..at], &bytes[at..]]));
        }
    }
}
