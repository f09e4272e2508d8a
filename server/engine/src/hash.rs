//! Git's object ids for blobs, computed here: no process, no object written. And digests as text.

use std::io::Read;

use pactify_core::ObjectId;
use sha1::Digest as _;

/// How a repository names its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Sha1,
    Sha256,
}

enum State {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

impl Algorithm {
    /// The algorithm that `id` was made with.
    pub(crate) fn of(id: &ObjectId) -> Self {
        if id.is_sha256() { Self::Sha256 } else { Self::Sha1 }
    }

    /// The id of a blob of these bytes.
    pub(crate) fn blob(self, bytes: &[u8]) -> ObjectId {
        let mut state = self.start(bytes.len() as u64);
        state.update(bytes);
        state.finish()
    }

    /// The id of a blob of the `size` bytes that `from` yields; `None` when it yields another number of them.
    pub(crate) fn blob_from(self, size: u64, from: &mut impl Read) -> std::io::Result<Option<ObjectId>> {
        let mut state = self.start(size);
        let mut buffer = vec![0; usize::try_from(size).unwrap_or(usize::MAX).clamp(1, 1 << 16)];
        let mut left = size;
        loop {
            match from.read(&mut buffer)? {
                0 => break,
                read => {
                    let Some(rest) = left.checked_sub(read as u64) else { return Ok(None) };
                    left = rest;
                    state.update(&buffer[..read]);
                }
            }
        }
        Ok((left == 0).then(|| state.finish()))
    }

    fn start(self, size: u64) -> State {
        let mut state = match self {
            Self::Sha1 => State::Sha1(sha1::Sha1::new()),
            Self::Sha256 => State::Sha256(sha2::Sha256::new()),
        };
        state.update(format!("blob {size}\0").as_bytes());
        state
    }
}

impl State {
    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(state) => state.update(bytes),
            Self::Sha256(state) => state.update(bytes),
        }
    }

    fn finish(self) -> ObjectId {
        let digits = match self {
            Self::Sha1(state) => hex(&state.finalize()),
            Self::Sha256(state) => hex(&state.finalize()),
        };
        digits.parse().expect("a digest in hex is an object id")
    }
}

/// The SHA-256 of `bytes`, in hex.
pub(crate) fn sha256_of(bytes: &[u8]) -> String {
    hex(&sha2::Sha256::digest(bytes))
}

/// The SHA-256, in hex, of the `size` bytes that `from` yields, each piece of which goes through `piece` as well;
/// `None` when it yields another number of them.
pub(crate) fn sha256(
    size: u64,
    from: &mut impl Read,
    mut piece: impl FnMut(&[u8]) -> std::io::Result<()>,
) -> std::io::Result<Option<String>> {
    let mut state = sha2::Sha256::new();
    let mut buffer = vec![0; usize::try_from(size).unwrap_or(usize::MAX).clamp(1, 1 << 18)];
    let mut left = size;
    loop {
        let read = match from.read(&mut buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read == 0 {
            return Ok((left == 0).then(|| hex(&state.finalize())));
        }
        let Some(rest) = left.checked_sub(read as u64) else { return Ok(None) };
        left = rest;
        state.update(&buffer[..read]);
        piece(&buffer[..read])?;
    }
}

/// The SHA-256 of bytes, in hex.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hex(&sha2::Sha256::digest(bytes))
}

/// Lower-case digits, two a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_that_git_gives() {
        for (bytes, sha1, sha256) in [
            (
                &b""[..],
                "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
                "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
            ),
            (
                b"hello\n",
                "ce013625030ba8dba906f756967f9e9ca394464a",
                "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4",
            ),
        ] {
            assert_eq!(Algorithm::Sha1.blob(bytes).as_str(), sha1);
            assert_eq!(Algorithm::Sha256.blob(bytes).as_str(), sha256);
            let read = Algorithm::Sha1.blob_from(bytes.len() as u64, &mut &bytes[..]).unwrap();
            assert_eq!(read.unwrap().as_str(), sha1);
        }
    }

    #[test]
    fn a_file_that_changes_its_size_while_it_is_read_has_no_id() {
        for size in [4, 6] {
            assert_eq!(Algorithm::Sha1.blob_from(size, &mut &b"hello"[..]).unwrap(), None);
        }
    }
}
