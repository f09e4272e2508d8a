//! The agent's standard output: codex's JSON lines, and whatever else a script wants there.

use std::io::{self, ErrorKind, Write};

use serde_json::{Value, json};

/// codex panics when its reader is gone, which ends it with this code.
const PANIC: i32 = 101;

/// Writes lines at once; ends the process when nobody reads.
pub(super) struct Lines {
    items: usize,
    out: io::Stdout,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self { items: 0, out: io::stdout() }
    }

    /// Prints an event.
    pub(super) fn event(&mut self, event: &Value) {
        self.bytes(format!("{event}\n").as_bytes());
    }

    /// Prints an item that is complete at once.
    pub(super) fn item(&mut self, kind: &str, fields: Value) {
        let id = self.next_item();
        self.event(&json!({"type": "item.completed", "item": item(&id, kind, fields)}));
    }

    /// Prints that an item was started; the id is for its end.
    pub(super) fn start_item(&mut self, kind: &str, fields: Value) -> String {
        let id = self.next_item();
        self.event(&json!({"type": "item.started", "item": item(&id, kind, fields)}));
        id
    }

    /// Prints that an item has ended.
    pub(super) fn end_item(&mut self, id: &str, kind: &str, fields: Value) {
        self.event(&json!({"type": "item.completed", "item": item(id, kind, fields)}));
    }

    /// Prints bytes as they are.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        match self.out.write_all(bytes).and_then(|()| self.out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(PANIC),
            // A script may have closed the output; what it prints then is lost, as it wants.
            _ => {}
        }
    }

    fn next_item(&mut self) -> String {
        let id = format!("item_{}", self.items);
        self.items += 1;
        id
    }
}

fn item(id: &str, kind: &str, fields: Value) -> Value {
    let mut item = json!({"id": id, "type": kind});
    if let (Value::Object(item), Value::Object(fields)) = (&mut item, fields) {
        item.extend(fields);
    }
    item
}
