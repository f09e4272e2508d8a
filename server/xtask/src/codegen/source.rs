//! The wire as the engine's side has it: every type that a command, a notification or an error mentions.

use anyhow::ensure;
use pactify_core::protocol;
use pactify_core::protocol::commands::{ALL, Command, JOB_CHANGED, JOB_EVENT};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::model::Item;

/// Everything that clients are generated from.
pub(super) struct Wire {
    /// Sorted by name.
    pub items: Vec<Item>,
    pub commands: &'static [Command],
    pub notifications: [Notification; 2],
}

/// A notification of the server.
pub(super) struct Notification {
    pub name: &'static str,
    pub method: &'static str,
    pub params: &'static str,
}

/// The parameter type of commands that take nothing.
pub(super) const EMPTY: &str = "Empty";

/// Reads the wire of this build.
pub(super) fn wire() -> anyhow::Result<Wire> {
    let notifications = [
        Notification { name: "event", method: JOB_EVENT, params: "JobEventParams" },
        Notification { name: "changed", method: JOB_CHANGED, params: "JobChangedParams" },
    ];
    let schemas = schemas();
    let commands = ALL.iter().flat_map(|command| command.results.iter().chain([&command.params]));
    for name in commands.chain(notifications.iter().map(|notification| &notification.params)) {
        ensure!(*name == EMPTY || schemas.contains_key(*name), "{name} is on the wire, but `schemas` does not list it");
    }
    let mut items =
        schemas.iter().map(|(name, schema)| Item::read(name, schema)).collect::<anyhow::Result<Vec<_>>>()?;
    items.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Wire { items, commands: ALL, notifications })
}

/// Schemas by name. What the server sends is described as it is written, what it takes as it is read (a field with a
/// default may be left out); a type of both directions counts as written.
fn schemas() -> Map<String, Value> {
    macro_rules! definitions {
        ($settings:expr, $($name:ident)*) => {{
            let mut generator: SchemaGenerator = $settings.into_generator();
            $(generator.subschema_for::<protocol::$name>();)*
            generator.take_definitions(true)
        }};
    }
    let sent = definitions!(SchemaSettings::draft2020_12().for_serialize(),
        Approved Delegated JobStatus JobList EventList Preview Content Applied Undone RestoredOutside JobMoved Exported
        Worktree HarnessList Findings DebugReport JobEventParams JobChangedParams ErrorData);
    let taken = definitions!(SchemaSettings::draft2020_12().for_deserialize(),
        AnswerParams ApproveParams DelegateParams StatusParams EventsParams PreviewParams ContentParams ApplyParams UndoParams
        RestoreParams JobParams RetryParams ResumeParams
        ExportParams HarnessesParams DoctorParams ClientOptions);
    let mut all = taken;
    all.extend(sent);
    all
}
