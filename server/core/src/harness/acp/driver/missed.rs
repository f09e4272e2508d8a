//! What the agent meant to do and its own program did not: the last edit that failed, and edits and commands that were
//! refused. Whatever the agent says at the end, its work may then not be what it was meant to be.
//!
//! An edit that failed may have been made in another way: by another edit, or by a command. What was refused is made up
//! for by another one of its kind alone. A command that ran and failed, such as a test, is for the agent to judge; what
//! pactify or the person did not permit is for [`super::requests`].

use super::super::super::notices::one_line;
use super::super::Refusal;
use super::super::tool::Kind;
use super::super::turn::Ended;

/// Edits and commands.
#[derive(Debug, Default)]
pub(super) struct Missed {
    edit: Option<Miss>,
    command: Option<Miss>,
}

#[derive(Debug)]
struct Miss {
    told: String,
    was_refused: bool,
}

impl Missed {
    /// Takes a call that ended; `refusals` are the agent's words for those that it refused.
    pub(super) fn note(&mut self, ended: &Ended, refusals: &[Refusal]) {
        let Ended { name, kind, opening, .. } = ended;
        let was_refused = !ended.was_done && refusals.iter().any(|refusal| refusal.is_in(opening));
        let miss = || {
            let how = if was_refused { "was refused" } else { "failed" };
            Miss { told: one_line(&format!("{name} {how}: {opening}")), was_refused }
        };
        let is_refused = |miss: &Option<Miss>| miss.as_ref().is_some_and(|miss| miss.was_refused);
        match (kind, ended.has_succeeded) {
            (Kind::Edit, true) => self.edit = None,
            (Kind::Execute, true) => {
                self.command = None;
                self.edit.take_if(|miss| !miss.was_refused);
            }
            (Kind::Edit, false) if was_refused || !is_refused(&self.edit) => self.edit = Some(miss()),
            (Kind::Execute, false) if was_refused => self.command = Some(miss()),
            _ => {}
        }
    }

    /// What was not made up for, as a part of a sentence.
    pub(super) fn told(&self) -> Option<String> {
        let miss = self.edit.as_ref().or(self.command.as_ref())?;
        Some(format!("a step that was not taken, nor made up for by another one ({})", miss.told))
    }
}
