//! A baseline as bytes: what a recovery compares with when the host that took it is gone.
//!
//! A line of JSON, then the entries one after the other. Reading believes nothing: whoever keeps it also keeps its
//! digest.

use jiff::Timestamp;
use pactify_core::AbsPath;
use serde::{Deserialize, Serialize};

use super::{Arena, Baseline, Fingerprint, Times};
use crate::env::Moment;

/// The version of the record that this build writes.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    top: AbsPath,
    identity: (u32, u32, u64),
    now: Timestamp,
    moment: Moment,
    entries: u64,
}

impl Baseline {
    /// As bytes.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let (now, moment, entries) = (self.taken.now, self.taken.moment, self.len() as u64);
        let header = Header { format: FORMAT, top: self.top.clone(), identity: self.identity, now, moment, entries };
        let mut bytes = serde_json::to_vec(&header)?;
        bytes.push(b'\n');
        for (path, found) in self.iter() {
            let Fingerprint { mode, inode, size, modified, changed } = found;
            put(&mut bytes, path);
            bytes.extend(mode.to_le_bytes());
            bytes.extend(inode.to_le_bytes());
            bytes.extend(size.to_le_bytes());
            bytes.extend(modified.to_le_bytes());
            bytes.extend(changed.to_le_bytes());
            put(&mut bytes, self.hashes.get(path).map_or(&b""[..], |hash| hash.as_str().as_bytes()));
        }
        Ok(bytes)
    }

    /// The baseline that [`Self::to_bytes`] wrote; `None` for anything else.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let header: Header = serde_json::from_slice(&bytes[..end]).ok()?;
        if header.format != FORMAT {
            return None;
        }
        let mut rest = &bytes[end + 1..];
        let (mut arena, mut hashes) = (Arena::default(), std::collections::HashMap::new());
        for _ in 0..header.entries {
            let path = take(&mut rest)?;
            let found = Fingerprint {
                mode: u16::from_le_bytes(fixed(&mut rest)?),
                inode: u64::from_le_bytes(fixed(&mut rest)?),
                size: u64::from_le_bytes(fixed(&mut rest)?),
                modified: i128::from_le_bytes(fixed(&mut rest)?),
                changed: i128::from_le_bytes(fixed(&mut rest)?),
            };
            let hash = take(&mut rest)?;
            if !hash.is_empty() {
                hashes.insert(path.to_vec(), std::str::from_utf8(hash).ok()?.parse().ok()?);
            }
            arena.entries.push((u32::try_from(arena.names.len()).ok()?, found));
            arena.names.extend_from_slice(path);
        }
        let Header { top, identity, now, moment, .. } = header;
        rest.is_empty().then_some(Self { top, identity, entries: vec![arena], hashes, taken: Times { now, moment } })
    }
}

fn put(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text);
}

fn take<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = u32::from_le_bytes(fixed(rest)?) as usize;
    let (text, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(text)
}

fn fixed<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (number, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(*number)
}
