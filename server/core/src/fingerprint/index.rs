//! What git's index says, apart from what every `git status` rewrites in it: the `stat` data of files.
//!
//! The format is git's own (`gitformat-index`, versions 2 to 4). Whatever is not exactly that has no meaning here, and
//! its reader goes by the bytes instead.

/// Bytes of an entry that only tell when and where its file was looked at: two times, device, inode, owner, group,
/// size.
const STAT: usize = 40;
const MODE: std::ops::Range<usize> = 24..28;

/// Everything in the index at `bytes` that is more than a memory of `stat`, for comparing. `id_bytes` is the length of
/// an object's id. `None` where it is not known to be understood.
pub fn meaning(bytes: &[u8], id_bytes: usize) -> Option<Vec<u8>> {
    let rest = bytes.strip_prefix(b"DIRC")?;
    let (version, rest) = number(rest)?;
    let (count, mut rest) = number(rest)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut meant = [version.to_be_bytes(), count.to_be_bytes()].concat();
    for _ in 0..count {
        let start = rest;
        let mode = rest.get(MODE)?;
        let id = rest.get(STAT..STAT + id_bytes)?;
        rest = rest.get(STAT + id_bytes..)?;
        let flags = u16::from_be_bytes(rest.first_chunk().copied()?);
        rest = &rest[2..];
        meant.extend([mode, id, &flags.to_be_bytes()].concat());
        if flags & 0x4000 != 0 {
            meant.extend(rest.first_chunk::<2>()?);
            rest = &rest[2..];
        }
        let end = if version == 4 {
            // How much of the name before is dropped, then the rest of this one.
            let number = rest.iter().position(|byte| byte & 0x80 == 0)? + 1;
            number + rest.get(number..)?.iter().position(|byte| *byte == 0)? + 1
        } else {
            rest.iter().position(|byte| *byte == 0)?
        };
        meant.extend(rest.get(..end)?);
        meant.push(0);
        rest = &rest[end..];
        if version < 4 {
            let length = start.len() - rest.len();
            rest = rest.get(8 - length % 8..)?;
        }
    }
    while rest.len() > id_bytes {
        let name = rest.first_chunk::<4>()?;
        // What git must understand begins with a small letter: a part of the index that is elsewhere, or sparse.
        if !name[0].is_ascii_uppercase() {
            return None;
        }
        let (length, body) = number(&rest[4..])?;
        rest = body.get(length as usize..)?;
    }
    (rest.len() == id_bytes).then_some(meant)
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index of version 2 with these entries (`stat` filler, mode, id filler, path) and a cache tree.
    fn index(entries: &[(u8, u32, u8, &str)]) -> Vec<u8> {
        let mut bytes = [&b"DIRC\0\0\0\x02"[..], &(entries.len() as u32).to_be_bytes()].concat();
        for (stat, mode, id, path) in entries {
            let start = bytes.len();
            bytes.extend([*stat; 24]);
            bytes.extend(mode.to_be_bytes());
            bytes.extend([*stat; 12]);
            bytes.extend([*id; 20]);
            bytes.extend((path.len() as u16).to_be_bytes());
            bytes.extend(path.as_bytes());
            let length = bytes.len() - start;
            bytes.extend(vec![0; 8 - length % 8]);
        }
        bytes.extend(b"TREE\0\0\0\x03abc");
        bytes.extend([7; 20]);
        bytes
    }

    #[test]
    fn a_refreshed_index_means_the_same_and_a_staged_change_does_not() {
        let check = |entries: &[(u8, u32, u8, &str)]| meaning(&index(entries), 20).unwrap();
        let before = check(&[(1, 0o100_644, 1, "a"), (1, 0o100_644, 2, "dir/long-name.txt")]);
        assert_eq!(check(&[(9, 0o100_644, 1, "a"), (8, 0o100_644, 2, "dir/long-name.txt")]), before);
        for other in [
            &[(1, 0o100_644, 3, "a"), (1, 0o100_644, 2, "dir/long-name.txt")][..],
            &[(1, 0o100_755, 1, "a"), (1, 0o100_644, 2, "dir/long-name.txt")],
            &[(1, 0o100_644, 1, "b"), (1, 0o100_644, 2, "dir/long-name.txt")],
            &[(1, 0o100_644, 1, "a")],
            &[],
        ] {
            assert_ne!(check(other), before, "{other:?}");
        }
    }

    #[test]
    fn what_is_not_understood_has_no_meaning() {
        let good = index(&[(1, 0o100_644, 1, "a")]);
        assert!(meaning(&good, 20).is_some());
        for cut in 0..good.len() - 31 {
            assert_eq!(meaning(&good[..cut], 20), None, "cut at {cut}");
        }
        assert_eq!(meaning(&good, 32), None, "ids of another length");
        let mut linked = good.clone();
        let at = linked.len() - 20 - 11;
        linked[at..at + 4].copy_from_slice(b"link");
        assert_eq!(meaning(&linked, 20), None, "a part of it is elsewhere");
    }
}
