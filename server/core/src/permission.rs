//! Permissions that a harness asks for while it works: what can be answered, and who answers.
//!
//! A read-only job is never granted anything. In a write job the [`Policy`] decides: by itself, or by asking the person
//! and taking silence for a no. Which of a harness's options means yes is decided by their [`OptionKind`]s alone, never
//! by their order or their names: both are the harness's to choose.

use serde::{Deserialize, Serialize};

use crate::job::access::Access;

/// Who answers what a write job's harness asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Policy {
    /// pactify grants it, once each time.
    #[default]
    Allow,
    /// The person is asked.
    Ask,
}

/// One of the answers that a harness offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionOption {
    /// The harness's id of it; what an answer names.
    pub id: String,
    /// Its words for people.
    pub name: String,
    /// What it means.
    pub kind: OptionKind,
}

/// What an answer means (Agent Client Protocol, `PermissionOptionKind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OptionKind {
    /// Yes, this time.
    AllowOnce,
    /// Yes, and do not ask again.
    AllowAlways,
    /// No, this time.
    RejectOnce,
    /// No, and do not ask again.
    RejectAlways,
    /// A meaning that this build does not know. Nothing chooses it but a person.
    #[serde(other)]
    Unknown,
}

/// Whether `option` may be the answer in a job of this mode: a read-only job is refused everything, whoever answers.
pub fn may_choose(access: Access, option: &PermissionOption) -> bool {
    match access {
        Access::Write => true,
        Access::ReadOnly => matches!(option.kind, OptionKind::RejectOnce | OptionKind::RejectAlways),
    }
}

/// The option by which `options` are granted: the narrowest yes, the first of several. `None` when there is no yes.
pub fn grant(options: &[PermissionOption]) -> Option<&PermissionOption> {
    first(options, OptionKind::AllowOnce).or_else(|| first(options, OptionKind::AllowAlways))
}

/// The option by which `options` are refused: the narrowest no, the first of several. `None` when there is no no.
pub fn refusal(options: &[PermissionOption]) -> Option<&PermissionOption> {
    first(options, OptionKind::RejectOnce).or_else(|| first(options, OptionKind::RejectAlways))
}

fn first(options: &[PermissionOption], kind: OptionKind) -> Option<&PermissionOption> {
    options.iter().find(|option| option.kind == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_follows_from_kinds_alone() {
        use OptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce, Unknown};
        let check = |kinds: &[OptionKind], yes: Option<usize>, no: Option<usize>| {
            let options: Vec<_> = kinds
                .iter()
                .enumerate()
                .map(|(index, kind)| PermissionOption {
                    id: index.to_string(),
                    name: "Yes, allow always".to_owned(),
                    kind: *kind,
                })
                .collect();
            let id = |found: Option<&PermissionOption>| found.map(|option| option.id.parse::<usize>().unwrap());
            assert_eq!((id(grant(&options)), id(refusal(&options))), (yes, no), "{kinds:?}");
        };
        check(&[AllowOnce, AllowAlways, RejectOnce], Some(0), Some(2));
        check(&[RejectAlways, RejectOnce, AllowAlways, AllowOnce], Some(3), Some(1));
        check(&[AllowAlways, RejectAlways], Some(0), Some(1));
        check(&[RejectOnce, Unknown], None, Some(0));
        check(&[Unknown, AllowOnce, AllowOnce], Some(1), None);
        check(&[], None, None);
    }

    #[test]
    fn a_read_only_job_is_granted_nothing() {
        use OptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce, Unknown};
        for (kind, expected) in
            [(AllowOnce, false), (AllowAlways, false), (Unknown, false), (RejectOnce, true), (RejectAlways, true)]
        {
            let option = PermissionOption { id: "reject".to_owned(), name: "No".to_owned(), kind };
            assert_eq!(may_choose(Access::ReadOnly, &option), expected, "{kind:?}");
            assert!(may_choose(Access::Write, &option));
        }
    }

    #[test]
    fn a_kind_of_a_newer_harness_is_read() {
        let option: PermissionOption =
            serde_json::from_str(r#"{"id":"x","name":"X","kind":"allow_until_noon"}"#).unwrap();
        assert_eq!(option.kind, OptionKind::Unknown);
    }
}
