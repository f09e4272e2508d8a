//! One line of a journal: a JSON object whose last member seals it.
//!
//! `sum` is the first half of SHA-256 over the line before's sum and this line without its own. A changed, missing,
//! added or reordered line breaks the chain at that line. It proves accidents and silent edits, not authorship: who can
//! write the file can also recompute the chain. Nothing here touches a file.

use std::fmt::Write as _;

use pactify_core::JobId;
use pactify_core::job::event::{Event, Known, Record};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{JOURNAL_FORMAT, MAX_LINE_BYTES};
use crate::hash::hex;

/// The seal of a line, and the start of the next one's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum([u8; 16]);

/// Why a line is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// A newer format; nothing else of the line was looked at.
    Newer(u64),
    /// Not what was written.
    Damaged(&'static str),
}

const SEAL: &[u8] = br#","sum":""#;
const SEAL_BYTES: usize = SEAL.len() + 32 + br#""}"#.len();
/// Room for everything of a record but its event.
const ENVELOPE: usize = 512;

#[derive(Serialize, Deserialize)]
struct Header {
    pactify: String,
    format: u64,
    #[serde(default)]
    job: String,
}

/// The first line of a job's journal, with its newline.
pub fn header(job: &JobId) -> (Vec<u8>, Sum) {
    let header = Header { pactify: "journal".to_owned(), format: JOURNAL_FORMAT, job: job.to_string() };
    let mut line = Vec::new();
    let sum = seal(&mut line, &json(&header), Sum::default());
    (line, sum)
}

/// Appends a record's line, with its newline. Returns the record as it was written: its event may be shortened.
pub fn append(lines: &mut Vec<u8>, mut record: Record, before: Sum) -> (Record, Sum) {
    let mut body = json(&record);
    if body.len() + SEAL_BYTES + 1 > MAX_LINE_BYTES {
        record.event = shortened(&record.event, MAX_LINE_BYTES - ENVELOPE);
        body = json(&record);
    }
    let sum = seal(lines, &body, before);
    (record, sum)
}

/// The event with its longest texts and lists cut, each cut marked, until it has at most `limit` bytes of JSON.
/// Identifiers and numbers stay whole, so a known event stays the event that it is.
pub fn shortened(event: &Event, limit: usize) -> Event {
    let whole = serde_json::to_value(event).unwrap_or_default();
    let mut texts = limit / 4;
    let mut items = 4096;
    while texts >= 256 {
        let mut value = whole.clone();
        shorten(&mut value, texts, items);
        if json(&value).len() <= limit
            && let Ok(event @ Event::Known(_)) | Ok(event @ Event::Unknown(_)) = serde_json::from_value(value)
        {
            return event;
        }
        texts /= 4;
        items = (items / 4).max(16);
    }
    let text = format!("an event {:?} of {} bytes was too long for the journal", event.name(), json(&whole).len());
    Known::Notice { id: "eventTooLong".to_owned(), text: text.chars().take(512).collect() }.into()
}

/// Checks the first line, without its newline.
pub(super) fn open_header(line: &[u8], job: &JobId) -> Result<Sum, Flaw> {
    let header: Header = serde_json::from_slice(line).map_err(|_| Flaw::Damaged("it is no journal header"))?;
    if header.pactify != "journal" {
        return Err(Flaw::Damaged("it is no journal header"));
    }
    if header.format > JOURNAL_FORMAT {
        return Err(Flaw::Newer(header.format));
    }
    let sum = check(line, Sum::default())?;
    if header.job != job.as_str() {
        return Err(Flaw::Damaged("it is the journal of another job"));
    }
    Ok(sum)
}

/// Checks a line's seal, without its newline.
pub(super) fn check(line: &[u8], before: Sum) -> Result<Sum, Flaw> {
    let body = line
        .len()
        .checked_sub(SEAL_BYTES)
        .map(|at| line.split_at(at))
        .filter(|(_, seal)| seal.starts_with(SEAL) && seal.ends_with(br#""}"#));
    let Some((body, seal)) = body else { return Err(Flaw::Damaged("it has no checksum")) };
    let sum = sum_of(body, before);
    if seal[SEAL.len()..SEAL.len() + 32] == *sum.hex().as_bytes() {
        Ok(sum)
    } else {
        Err(Flaw::Damaged("its checksum does not match"))
    }
}

/// Reads the record of a line whose seal was checked.
pub(super) fn record(line: &[u8]) -> Result<Record, Flaw> {
    serde_json::from_slice(line).map_err(|_| Flaw::Damaged("it is no record"))
}

impl Sum {
    /// 32 lower-case hex digits.
    fn hex(self) -> String {
        hex(&self.0)
    }
}

/// Appends `body`, a JSON object, with its seal and a newline.
pub(super) fn seal(lines: &mut Vec<u8>, body: &str, before: Sum) -> Sum {
    let open = body.strip_suffix('}').unwrap_or(body).as_bytes();
    let sum = sum_of(open, before);
    lines.extend_from_slice(open);
    lines.extend_from_slice(SEAL);
    lines.extend_from_slice(sum.hex().as_bytes());
    lines.extend_from_slice(b"\"}\n");
    sum
}

fn sum_of(open_body: &[u8], before: Sum) -> Sum {
    let digest = Sha256::new().chain_update(before.0).chain_update(open_body).finalize();
    let mut sum = [0; 16];
    sum.copy_from_slice(&digest[..16]);
    Sum(sum)
}

/// Types of this crate and core always have a JSON form: their maps have text keys, their numbers are finite or null.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "{}".to_owned())
}

fn shorten(value: &mut Value, texts: usize, items: usize) {
    match value {
        Value::String(text) if text.len() > texts => {
            let mut end = texts;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let left_out = text.len() - end;
            text.truncate(end);
            let _ = write!(text, "… [{left_out} bytes left out]");
        }
        Value::Array(list) => {
            if list.len() > items && list.iter().all(Value::is_string) {
                let left_out = list.len() - items;
                list.truncate(items);
                list.push(Value::String(format!("… [{left_out} more left out]")));
            }
            list.iter_mut().for_each(|item| shorten(item, texts, items));
        }
        Value::Object(members) => members.values_mut().for_each(|member| shorten(member, texts, items)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
