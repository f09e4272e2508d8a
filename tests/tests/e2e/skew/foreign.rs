//! A job as another version of pactify writes it: files by hand, a lock, a host's socket.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result};
use pactify_tests::sandbox::Sandbox;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The chain's state after a line: the first half of SHA-256 over the state before and the line.
type Sum = [u8; 16];

/// A job whose files this process writes.
pub(super) struct Foreign {
    folder: PathBuf,
    sum: Sum,
    seq: u64,
}

impl Foreign {
    /// A job with the spec of another one, changed; its journal is empty.
    pub(super) fn like(sandbox: &Sandbox, job: &str, id: &str, change: impl FnOnce(&mut Value)) -> Result<Self> {
        Self::make(sandbox, job, id, 1, change)
    }

    /// A job whose journal has another format.
    pub(super) fn of_format(sandbox: &Sandbox, job: &str, id: &str, format: u64) -> Result<Self> {
        Self::make(sandbox, job, id, format, |_| {})
    }

    fn make(
        sandbox: &Sandbox,
        job: &str,
        id: &str,
        journal_format: u64,
        change: impl FnOnce(&mut Value),
    ) -> Result<Self> {
        let mut spec: Value = serde_json::from_slice(&fs::read(sandbox.job(job).join("job.json"))?)?;
        spec["id"] = id.into();
        change(&mut spec);
        // Made aside and renamed, as a server may look at any time.
        let (making, folder) = (sandbox.job(&format!(".{id}")), sandbox.job(id));
        fs::DirBuilder::new().mode(0o700).create(&making)?;
        let (header, sum) = sealed(&json!({"pactify": "journal", "format": journal_format, "job": id}), Sum::default());
        for (name, text) in [("job.json", spec.to_string()), ("events.jsonl", header), ("lock", String::new())] {
            file(&making.join(name))?.write_all(text.as_bytes())?;
        }
        fs::rename(making, &folder)?;
        Ok(Self { folder, sum, seq: 0 })
    }

    /// The first event of an attempt, of a host of version 9.
    pub(super) fn started(&self) -> Value {
        let mut host = process();
        host["version"] = "9.0.0".into();
        host["mood"] = "calm".into();
        json!({"type": "attemptStarted", "reason": "run", "host": host, "place": 3})
    }

    /// Adds a record, with a member that this version doesn't know.
    pub(super) fn record(&mut self, attempt: u32, event: Value) -> Result<()> {
        self.seq += 1;
        let record = json!({
            "seq": self.seq, "at": "2099-12-31T23:59:59Z", "attempt": attempt, "event": event, "trace": "0af7651916cd",
        });
        let (line, sum) = sealed(&record, self.sum);
        file(&self.folder.join("events.jsonl"))?.write_all(line.as_bytes())?;
        self.sum = sum;
        Ok(())
    }

    /// The journal as it is.
    pub(super) fn journal(&self) -> Result<Vec<u8>> {
        Ok(fs::read(self.folder.join("events.jsonl"))?)
    }

    /// Holds the job's lock, as a host does, until the value is dropped.
    pub(super) fn hold(&self) -> Result<File> {
        let lock = file(&self.folder.join("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    /// Listens as the job's host and gives one of these answers to each connection; then it is gone. What it was asked.
    pub(super) fn listen(&self, answers: &'static [&'static str]) -> Result<JoinHandle<Result<Vec<Value>>>> {
        let listener = UnixListener::bind(self.folder.join("host.sock"))?;
        Ok(std::thread::spawn(move || {
            let mut asked = Vec::new();
            for answer in answers {
                let (stream, _) = listener.accept()?;
                let mut request = String::new();
                BufReader::new(&stream).read_line(&mut request)?;
                asked.push(serde_json::from_str(&request)?);
                if !answer.is_empty() {
                    (&stream).write_all(format!("{answer}\n").as_bytes())?;
                }
            }
            Ok(asked)
        }))
    }
}

/// A process that is nobody: of another boot of the machine.
pub(super) fn process() -> Value {
    json!({"pid": 4_194_303, "startTime": 1, "bootId": "00000000-0000-4000-8000-000000000000"})
}

/// Changes a file of one sealed line, so that its seal is right again.
pub(super) fn reseal(path: &Path, change: impl FnOnce(&mut Value)) -> Result<()> {
    let mut value: Value = serde_json::from_slice(&fs::read(path)?)?;
    value.as_object_mut().context("no object")?.remove("sum");
    change(&mut value);
    Ok(fs::write(path, sealed(&value, Sum::default()).0)?)
}

/// The line of `value`, which is an object, and the chain's state after it.
fn sealed(value: &Value, before: Sum) -> (String, Sum) {
    let text = value.to_string();
    let open = text.strip_suffix('}').unwrap_or(&text);
    let digest = Sha256::new().chain_update(before).chain_update(open).finalize();
    let mut sum = Sum::default();
    sum.copy_from_slice(&digest[..16]);
    let hex: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    (format!("{open},\"sum\":\"{hex}\"}}\n"), sum)
}

fn file(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    Ok(options.append(true).create(true).mode(0o600).open(path)?)
}
