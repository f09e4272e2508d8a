//! Conversations: their ids, and the file in `CODEX_HOME/sessions` by which a later run finds one again.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A conversation and how many turns it has had.
#[derive(Serialize, Deserialize)]
pub(super) struct Thread {
    pub(super) id: String,
    turns: u64,
    #[serde(skip)]
    file: Option<PathBuf>,
}

impl Thread {
    /// A new conversation; an ephemeral one isn't kept.
    pub(super) fn new(home: &Path, is_ephemeral: bool) -> Self {
        let random = RandomState::new();
        let (high, low) = (random.hash_one("high"), random.hash_one("low"));
        // The shape of a UUID of version 7, as codex has it.
        let id = format!(
            "{:08x}-{:04x}-7{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 48 & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff,
        );
        let file = (!is_ephemeral).then(|| file(home, &id));
        Self { id, turns: 0, file }
    }

    /// The kept conversation of that id.
    pub(super) fn find(home: &Path, id: &str) -> io::Result<Self> {
        let file = file(home, id);
        let thread: Self = serde_json::from_slice(&std::fs::read(&file)?)?;
        Ok(Self { file: Some(file), ..thread })
    }

    /// Counts a turn, keeps the conversation and returns its usage, which is cumulative.
    pub(super) fn end_turn(&mut self) -> io::Result<Value> {
        self.turns += 1;
        self.keep()?;
        let of = |tokens: u64| tokens * self.turns;
        Ok(json!({"input_tokens": of(120), "cached_input_tokens": of(20), "cache_write_input_tokens": 0,
            "output_tokens": of(30), "reasoning_output_tokens": of(5)}))
    }

    /// Writes the file, so that the conversation can be resumed even if this turn never ends.
    pub(super) fn keep(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        std::fs::create_dir_all(file.with_file_name(""))?;
        let partial = file.with_extension("partial");
        std::fs::write(&partial, serde_json::to_vec(self)?)?;
        std::fs::rename(partial, file)
    }
}

fn file(home: &Path, id: &str) -> PathBuf {
    home.join("sessions/scripted").join(format!("rollout-{id}.json"))
}
