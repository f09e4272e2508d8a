//! What an agent asks for while it works: permissions, and questions that are none.
//!
//! What is answered follows from [`crate::permission`] and the job's mode alone. A question that asks for an opinion
//! and not for a permission (kimi sends those the same way) is never answered with one of its answers.

use serde_json::{Value, json};

use super::super::notices::one_line;
use super::wire::{list, text};
use crate::display::{head, headline};
use crate::job::access::Access;
use crate::permission::{OptionKind, PermissionOption, Policy, grant, refusal};

/// The most options that are looked at, and the longest id of one, in bytes.
const OPTIONS_MAX: usize = 32;
const ID_MAX: usize = 256;
const NAME_MAX: usize = 100;

/// A `session/request_permission`, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The tool call it is about.
    pub call: String,
    /// The tool's name, as the call was announced; empty when it was not.
    pub tool: String,
    /// One line that says what for.
    pub title: String,
    /// What may be answered. Options of the same id are left out: nobody could say which is meant.
    pub options: Vec<PermissionOption>,
}

/// Who answers, and what.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// Nobody but the person.
    LeaveIt,
    /// Yes, by this option.
    Grant(String),
    /// No: by this option, or by none.
    Refuse(Option<String>),
}

impl Ask {
    /// Reads the request. The tool's name and the command are what was told of its call before.
    pub(super) fn read(params: &Value, tool: &str, command: &str) -> Self {
        let call = params.get("toolCall").unwrap_or(&Value::Null);
        let words = list(call, "content").iter().find_map(|part| part.pointer("/content/text")?.as_str());
        let titles = [words.unwrap_or_default(), command, text(call, "title"), tool];
        let title = titles.into_iter().find(|title| !title.trim().is_empty()).unwrap_or("something");
        let mut options: Vec<_> = list(params, "options").iter().take(OPTIONS_MAX).filter_map(option).collect();
        let ids: Vec<String> = options.iter().map(|option| option.id.clone()).collect();
        options.retain(|option| ids.iter().filter(|id| **id == option.id).count() == 1);
        let tool = if tool.is_empty() { text(call, "title") } else { tool };
        Self {
            call: text(call, "toolCallId").to_owned(),
            tool: headline(head(tool, 4 * NAME_MAX), NAME_MAX),
            title: one_line(title),
            options,
        }
    }

    /// Whether it lets somebody choose between several answers, which no permission does.
    pub fn has_several_answers(&self) -> bool {
        self.options.iter().filter(|option| option.kind == OptionKind::AllowOnce).count() > 1
    }

    /// What it is answered in a job of this mode, under this policy.
    pub(super) fn decide(&self, is_question: bool, access: Access, policy: Policy) -> Answer {
        let no = || Answer::Refuse(refusal(&self.options).map(|option| option.id.clone()));
        if is_question || access == Access::ReadOnly {
            return no();
        }
        match policy {
            Policy::Ask => Answer::LeaveIt,
            Policy::Allow => grant(&self.options).map_or_else(no, |option| Answer::Grant(option.id.clone())),
        }
    }
}

/// The result that an agent is sent: one of its options, or that nobody chose.
pub(super) fn outcome(option: Option<&str>) -> Value {
    match option {
        Some(id) => json!({"outcome": {"outcome": "selected", "optionId": id}}),
        None => json!({"outcome": {"outcome": "cancelled"}}),
    }
}

fn option(option: &Value) -> Option<PermissionOption> {
    let id = text(option, "optionId");
    let kind = option.get("kind").cloned().and_then(|kind| serde_json::from_value(kind).ok());
    (1..=ID_MAX).contains(&id.len()).then(|| PermissionOption {
        id: id.to_owned(),
        name: headline(head(text(option, "name"), 4 * NAME_MAX), NAME_MAX),
        kind: kind.unwrap_or(OptionKind::Unknown),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(options: &Value) -> Ask {
        Ask::read(&json!({"toolCall": {"toolCallId": "c", "title": "Bash"}, "options": options}), "", "")
    }

    #[test]
    fn answers_follow_from_kinds_mode_and_policy() {
        let once = json!({"optionId": "y", "name": "No", "kind": "allow_once"});
        let always = json!({"optionId": "a", "kind": "allow_always"});
        let no = json!({"optionId": "n", "name": "Yes", "kind": "reject_once"});
        let odd = json!({"optionId": "o", "kind": "allow_until_noon"});
        let yes = |id: &str| Answer::Grant(id.to_owned());
        let refused = |id: &str| Answer::Refuse(Some(id.to_owned()));
        let (write, read, allow) = (Access::Write, Access::ReadOnly, Policy::Allow);
        for (options, access, policy, expected) in [
            (json!([once, always, no]), write, allow, yes("y")),
            (json!([no, always, once]), write, allow, yes("y")),
            (json!([always, no]), write, allow, yes("a")),
            (json!([no, odd]), write, allow, refused("n")),
            (json!([odd]), write, allow, Answer::Refuse(None)),
            (json!([]), write, allow, Answer::Refuse(None)),
            (json!("none"), write, allow, Answer::Refuse(None)),
            (json!([once, once, no]), write, allow, refused("n")),
            (json!([once, {"optionId": "y", "kind": "reject_once"}]), write, allow, Answer::Refuse(None)),
            (json!([once, no]), write, Policy::Ask, Answer::LeaveIt),
            (json!([once, no]), read, Policy::Ask, refused("n")),
            (json!([once, no]), read, allow, refused("n")),
            (json!([once]), read, allow, Answer::Refuse(None)),
        ] {
            assert_eq!(ask(&options).decide(false, access, policy), expected, "{options} {access:?} {policy:?}");
        }
        assert_eq!(ask(&json!([once, no])).decide(true, write, Policy::Ask), refused("n"), "a question");
    }

    #[test]
    fn a_choice_between_answers_is_no_permission() {
        let of = |ids: &[(&str, &str)]| {
            let options = ids.iter().map(|(id, kind)| json!({"optionId": id, "kind": kind})).collect::<Vec<_>>();
            ask(&json!(options)).has_several_answers()
        };
        assert!(of(&[("q0_opt_0", "allow_once"), ("q0_opt_1", "allow_once"), ("q0_skip", "reject_once")]));
        assert!(!of(&[("once", "allow_once"), ("always", "allow_always"), ("reject", "reject_once")]));
    }
}
