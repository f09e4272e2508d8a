//! Git LFS as far as pactify knows it: the text of a pointer, and what a person wants of it.
//!
//! A pointer is a small blob that names a content by its SHA-256 and size
//! (<https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md>). pactify runs no git-lfs and no filter: contents come
//! from the repository's local store, and are checked against their pointers.

use serde::{Deserialize, Serialize};

/// No pointer is longer, in bytes.
pub const MAX_POINTER_BYTES: u64 = 1024;

const VERSION: &str = "version https://git-lfs.github.com/spec/v1";

/// How every pointer starts, of whatever version.
const BEGINNINGS: [&[u8]; 3] = [
    b"version https://git-lfs.github.com/spec/",
    b"version https://hawser.github.com/spec/",
    b"version http://git-media.io/v/",
];

/// What a job's tree holds for files in Git LFS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum LfsPolicy {
    /// Their contents, where the repository has them locally.
    #[default]
    Contents,
    /// Their pointers: nothing large is copied.
    Pointers,
}

/// A pointer that names its content directly, in the one form that git-lfs writes today.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    oid: String,
    /// The content's size in bytes.
    pub size: u64,
}

impl Pointer {
    /// The pointer to a content of `size` bytes whose SHA-256 is `oid`, in lower-case hex.
    pub fn new(oid: impl Into<String>, size: u64) -> Option<Self> {
        let oid = oid.into();
        let digits = oid.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        (oid.len() == 64 && digits).then_some(Self { oid, size })
    }

    /// Reads a blob. `None` for whatever [`Pointer::text`] would not write again byte for byte: a file like any
    /// other, or a pointer of another kind ([`is_pointer`] tells).
    pub fn parse(blob: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(blob).ok()?.lines().skip(1);
        let oid = lines.next()?.strip_prefix("oid sha256:")?;
        let size = lines.next()?.strip_prefix("size ")?.parse().ok()?;
        Self::new(oid, size).filter(|pointer| pointer.text().as_bytes() == blob)
    }

    /// The SHA-256 of the content: 64 lower-case hex digits, safe in a path.
    pub fn oid(&self) -> &str {
        &self.oid
    }

    /// The blob.
    pub fn text(&self) -> String {
        format!("{VERSION}\noid sha256:{}\nsize {}\n", self.oid, self.size)
    }
}

/// Whether a blob is a pointer of any kind: not the content that the person works with.
pub fn is_pointer(blob: &[u8]) -> bool {
    blob.len() as u64 <= MAX_POINTER_BYTES && BEGINNINGS.iter().any(|beginning| blob.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pointers_that_are_written_so_are_read() {
        let oid = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
        let text = format!("{VERSION}\noid sha256:{oid}\nsize 12345\n");
        let pointer = Pointer::parse(text.as_bytes()).unwrap();
        assert_eq!((pointer.oid(), pointer.size, pointer.text()), (oid, 12345, text.clone()));
        let extended = text.replace("oid", &format!("ext-0-foo sha256:{oid}\noid"));
        for (other, is_one) in [
            (text.replace('\n', "\r\n"), true),
            (text.replace("size 12345", "size 012345"), true),
            (text.replace(oid, "../../../../etc/passwd"), true),
            (text.replace(oid, &oid.to_uppercase()), true),
            (extended, true),
            (text.replace("spec/v1", "spec/v2"), true),
            (text.trim_end().to_owned(), true),
            (String::new(), false),
            ("a file\n".to_owned(), false),
            (format!("see {text}"), false),
            (format!("{text}{}", "x".repeat(1024)), false),
        ] {
            assert_eq!((Pointer::parse(other.as_bytes()), is_pointer(other.as_bytes())), (None, is_one), "{other:?}");
        }
    }
}
