//! Three texts made one: the only place that merges contents.
//!
//! libgit2's line merge, which is git's own; nothing is executed and no repository is opened. Bytes in, bytes out: what
//! is merged is the stored form on every side, so that line endings of a checkout never differ. What cannot be shown
//! to a person is not merged: no text, or too large.

use pactify_core::change::hunk;

use super::error::GitError;

/// What a merge comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// Both sides fit together.
    Clean(Vec<u8>),
    /// Both sides changed the same lines.
    Conflicted {
        /// The text with the conflicts marked, base included. For looking at: it is never written to a checkout.
        marked: Vec<u8>,
        /// How many conflicts it has.
        places: u32,
    },
    /// It is nothing that is merged; a fragment that says why.
    Impossible(&'static str),
}

/// How the marks of a conflict call the sides.
#[derive(Clone, Copy, Debug)]
pub struct Labels {
    /// What both come from.
    pub base: &'static str,
    /// One side.
    pub ours: &'static str,
    /// The other side.
    pub theirs: &'static str,
}

/// The shortest mark of a conflict, as git's.
const MARK: usize = 7;

/// Merges `ours` and `theirs`, which come from `base`.
///
/// # Errors
/// When libgit2 fails, which only memory can make it do.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8], labels: Labels) -> Result<Merged, GitError> {
    let sides = [base, ours, theirs];
    if sides.iter().any(|side| side.len() as u64 > hunk::MAX_TEXT_BYTES) {
        return Ok(Merged::Impossible("it is too large to be merged"));
    }
    if !sides.iter().all(|side| hunk::is_text(side)) {
        return Ok(Merged::Impossible("it is no text that can be merged"));
    }
    if ours == theirs || theirs == base {
        return Ok(Merged::Clean(ours.to_vec()));
    }
    if ours == base {
        return Ok(Merged::Clean(theirs.to_vec()));
    }
    let failed = GitError::objects("merge", "three texts");
    let mark = sides.iter().flat_map(|side| side.split(|byte| *byte == b'\n')).map(run).max().unwrap_or_default();
    merge_texts(sides, (mark + 1).max(MARK), labels).map_err(failed)
}

fn merge_texts(sides: [&[u8]; 3], mark: usize, labels: Labels) -> Result<Merged, git2::Error> {
    // libgit2's allocator needs its library to be set up, which merging alone doesn't do.
    let _library = git2::Odb::new()?;
    let [base, ours, theirs] = sides.map(|side| {
        let mut input = git2::MergeFileInput::new();
        input.content(side).path("text");
        input
    });
    let plain = git2::merge_file(&base, &ours, &theirs, None)?;
    if plain.is_automergeable() {
        return Ok(Merged::Clean(plain.content().to_vec()));
    }
    let mut options = git2::MergeFileOptions::new();
    options.ancestor_label(labels.base).our_label(labels.ours).their_label(labels.theirs);
    options.style_diff3(true).marker_size(u16::try_from(mark).unwrap_or(u16::MAX));
    let marked = git2::merge_file(&base, &ours, &theirs, Some(&mut options))?.content().to_vec();
    let opening = "<".repeat(mark);
    let places = marked.split(|byte| *byte == b'\n').filter(|line| line.starts_with(opening.as_bytes())).count();
    Ok(Merged::Conflicted { marked, places: u32::try_from(places).unwrap_or(u32::MAX).max(1) })
}

/// How long a mark the line would be taken for.
fn run(line: &[u8]) -> usize {
    match line.first() {
        Some(first @ (b'<' | b'>' | b'=' | b'|')) => line.iter().take_while(|byte| *byte == first).count(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: Labels = Labels { base: "base", ours: "yours", theirs: "the job's" };

    fn merged(base: &str, ours: &str, theirs: &str) -> Merged {
        merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes(), LABELS).unwrap()
    }

    #[test]
    fn changes_to_different_lines_fit_together() {
        let base = "1\n2\n3\n4\n5\n";
        for (ours, theirs, expected) in [
            ("1\n2\n3\n4\nfive\n", "one\n2\n3\n4\n5\n", "one\n2\n3\n4\nfive\n"),
            ("one\n2\n3\n4\n5\n", "one\n2\n3\n4\n5\n", "one\n2\n3\n4\n5\n"),
            (base, "", ""),
            ("", base, ""),
            ("1\n2\n3\n4\n5", "0\n1\n2\n3\n4\n5\n", "0\n1\n2\n3\n4\n5"),
        ] {
            assert_eq!(merged(base, ours, theirs), Merged::Clean(expected.into()), "{ours:?} {theirs:?}");
        }
        assert_eq!(
            merged("a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n"),
            Merged::Clean("A\r\nb\r\nC\r\n".into())
        );
    }

    #[test]
    fn changes_to_the_same_lines_are_marked_with_their_base() {
        let Merged::Conflicted { marked, places } = merged("1\n2\n3\n", "1\nmine\n3\n", "1\ntheirs\n3\n") else {
            panic!("a conflict");
        };
        let text = String::from_utf8(marked).unwrap();
        assert_eq!(text, "1\n<<<<<<< yours\nmine\n||||||| base\n2\n=======\ntheirs\n>>>>>>> the job's\n3\n");
        assert_eq!(places, 1);
    }

    #[test]
    fn marks_are_longer_than_anything_that_looks_like_one() {
        let base = "<<<<<<< old\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let Merged::Conflicted { marked, places } =
            merged(base, &base.replace('2', "a").replace('9', "b"), &base.replace('2', "c").replace('9', "d"))
        else {
            panic!("a conflict");
        };
        assert_eq!(places, 2);
        assert!(String::from_utf8(marked).unwrap().contains("\n<<<<<<<< yours\na\n"));
    }

    #[test]
    fn what_cannot_be_shown_is_not_merged() {
        let large = "x".repeat(usize::try_from(hunk::MAX_TEXT_BYTES).unwrap() + 1);
        for ours in ["\0", &large] {
            assert!(matches!(merged("1\n", ours, "2\n"), Merged::Impossible(_)));
        }
        assert!(matches!(merge(b"\xff\n", b"1\n", b"2\n", LABELS).unwrap(), Merged::Impossible(_)));
    }
}
