//! A patch as text that loses nothing: `git apply` makes the very bytes of it, and it is UTF-8, as JSON and editors
//! want it.
//!
//! git writes lines as they are, in whatever encoding. A file whose lines are not UTF-8 (or a link whose target is not)
//! is given as git gives binary contents instead, `GIT binary patch`: the two contents, deflated, in base 85. They are
//! put into the format here, because attributes of the person decide what git itself takes for text, and nothing does
//! for links; without a compression, which the format allows: such files are few and small.

use std::fmt::Write as _;

use pactify_core::ObjectId;

use super::error::GitError;

/// How the part of a patch begins that is about one path.
const BEGIN: &[u8] = b"diff --git ";

/// A patch, in its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch(Vec<Part>);

/// What it has of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// Nothing, because a content of it is too large to be held here: its header.
    TooLarge(String),
}

impl Patch {
    /// What git wrote, with `read` to get at contents by their ids.
    pub(super) fn of(
        raw: &[u8],
        mut read: impl FnMut(&ObjectId) -> Result<Vec<u8>, GitError>,
    ) -> Result<Self, GitError> {
        let parts = parts(raw).into_iter().map(|part| match std::str::from_utf8(part) {
            Ok(text) => Ok(Part::Text(text.to_owned())),
            Err(_) => match binary(part, &mut read) {
                Err(GitError::ObjectTooLarge { .. }) => Ok(Part::TooLarge(header(part))),
                made => made.map(Part::Text),
            },
        });
        Ok(Self(parts.collect::<Result<_, _>>()?))
    }

    /// The parts that fit into so many bytes together, and the paths of those that do not.
    pub fn within(self, limit: usize) -> (String, Vec<String>) {
        let (mut text, mut left_out) = (String::new(), Vec::new());
        for part in self.0 {
            match part {
                Part::Text(part) if part.len() <= limit - text.len() => text.push_str(&part),
                Part::Text(part) | Part::TooLarge(part) => left_out.push(path(&part)),
            }
        }
        (text, left_out)
    }
}

/// Cuts before each header. No line of a content begins like one: those of a text begin with a sign or a blank, those
/// of a binary content hold no blank.
fn parts(raw: &[u8]) -> Vec<&[u8]> {
    let lines = raw.split_inclusive(|byte| *byte == b'\n');
    let starts = lines.scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line.starts_with(BEGIN)))
    });
    let starts: Vec<usize> = starts.filter_map(|(at, begins)| begins.then_some(at)).collect();
    let ends = starts.iter().skip(1).copied().chain([raw.len()]);
    starts.iter().zip(ends).map(|(start, end)| &raw[*start..end]).collect()
}

fn header(part: &[u8]) -> String {
    String::from_utf8_lossy(part.split(|byte| *byte == b'\n').next().unwrap_or_default()).into_owned()
}

/// The path of a part as git shows it. Both sides have the same: there are no renames.
fn path(part: &str) -> String {
    let names = part.lines().next().unwrap_or_default().get(BEGIN.len()..).unwrap_or_default();
    names.get(..names.len() / 2).unwrap_or(names).to_owned()
}

/// The part with its lines replaced by whole contents.
fn binary(part: &[u8], read: &mut impl FnMut(&ObjectId) -> Result<Vec<u8>, GitError>) -> Result<String, GitError> {
    let lines = part.split_inclusive(|byte| *byte == b'\n');
    let header = lines.take_while(|line| !line.starts_with(b"--- ") && !line.starts_with(b"@@ "));
    // Names are quoted, and the rest is git's own.
    let mut text = String::from_utf8_lossy(&header.collect::<Vec<_>>().concat()).into_owned();
    let ids = text.lines().find_map(|line| line.strip_prefix("index ")?.split(' ').next()?.split_once(".."));
    let Some((old, new)) = ids.map(|(old, new)| (old.to_owned(), new.to_owned())) else { return Ok(text) };
    text.push_str("GIT binary patch\n");
    for id in [new, old] {
        let is_absent = id.bytes().all(|digit| digit == b'0');
        let bytes = match id.parse() {
            Ok(id) if !is_absent => read(&id)?,
            _ => Vec::new(),
        };
        let _ = writeln!(text, "literal {}", bytes.len());
        encode(&stored(&bytes), &mut text);
        text.push('\n');
    }
    Ok(text)
}

/// A zlib stream of `bytes` as they are.
fn stored(bytes: &[u8]) -> Vec<u8> {
    const BLOCK: usize = u16::MAX as usize;
    let mut stream = vec![0x78, 0x01];
    let mut rest = bytes;
    loop {
        let (block, after) = rest.split_at(rest.len().min(BLOCK));
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        stream.push(u8::from(after.is_empty()));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend_from_slice(block);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    stream.extend(adler32(bytes).to_be_bytes());
    stream
}

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut low, mut high) = (1_u32, 0_u32);
    // So many sums fit before one has to be reduced.
    for chunk in bytes.chunks(5_552) {
        for byte in chunk {
            low += u32::from(*byte);
            high += low;
        }
        (low, high) = (low % MODULUS, high % MODULUS);
    }
    high << 16 | low
}

/// Lines of base 85, each with its length before it, as git has them.
fn encode(bytes: &[u8], text: &mut String) {
    const DIGITS: &[u8; 85] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
    for line in bytes.chunks(52) {
        let length = u8::try_from(line.len()).unwrap_or_default();
        text.push(char::from(if length <= 26 { b'A' + length - 1 } else { b'a' + length - 27 }));
        for word in line.chunks(4) {
            let mut four = [0; 4];
            four[..word.len()].copy_from_slice(word);
            let mut rest = u32::from_be_bytes(four);
            let mut digits = [0; 5];
            for digit in digits.iter_mut().rev() {
                *digit = DIGITS[(rest % 85) as usize];
                rest /= 85;
            }
            text.extend(digits.map(char::from));
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out_whole_and_named() {
        let part = |path: &str, lines: &str| format!("diff --git a/{path} b/{path}\n{lines}");
        let raw = [part("one", "+1\n"), part("two words", &"+2\n".repeat(20)), part("three", "+3\n")].concat();
        let patch = Patch::of(raw.as_bytes(), |_| panic!("nothing is read")).unwrap();
        let (fits, left_out) = patch.clone().within(80);
        assert_eq!(fits, [part("one", "+1\n"), part("three", "+3\n")].concat());
        assert_eq!(left_out, ["a/two words"]);
        assert_eq!(patch.within(usize::MAX), (raw, vec![]));
    }

    #[test]
    fn a_content_that_is_too_large_is_missing_alone() {
        let (old, new) = ("1".repeat(40), "2".repeat(40));
        let raw = [
            b"diff --git a/one b/one\n+1\n".to_vec(),
            format!("diff --git a/log b/log\nindex {old}..{new} 100644\n--- a/log\n").into_bytes(),
            b"-\xe9\n".to_vec(),
        ];
        let too_large = |object: &ObjectId| GitError::ObjectTooLarge { object: object.clone(), size: 9, limit: 1 };
        let patch = Patch::of(&raw.concat(), |object| Err(too_large(object))).unwrap();
        assert_eq!(patch.within(usize::MAX), ("diff --git a/one b/one\n+1\n".to_owned(), vec!["a/log".to_owned()]));
    }
}
