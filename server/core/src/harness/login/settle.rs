//! What becomes of a login after a job: a decision from what was found to what is done.

use super::{LoginWorth, is_of_account, judge};

/// What stands in a job's home in place of the link to a login, once nothing of the job runs any more. The job may have
/// put it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left<'a> {
    /// The link, as it was made; or nothing at all.
    Nothing,
    /// A private regular file: a harness that refreshes by rename leaves one.
    File(&'a [u8]),
    /// Something that no harness leaves, and that was not looked at any further: what it is.
    Odd(&'a str),
}

/// What is known of a login after a job.
#[derive(Clone, Copy, Debug)]
pub struct After<'a> {
    /// In place of the job's link.
    pub left: Left<'a>,
    /// The person's own login; `None` where it is gone.
    pub theirs: Option<&'a [u8]>,
    /// Whether that is, byte for byte, what it was before the job.
    pub unchanged: bool,
    /// A good login that was there before a job, if one was.
    pub backup: Option<&'a [u8]>,
}

/// What becomes of a login after a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Of what the job left in place of its link.
    pub copy: Copied,
    /// Of the person's own login.
    pub theirs: Theirs,
}

/// What becomes of what a job left in place of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// There is nothing to do.
    Intact,
    /// It takes the place of the person's login, which nobody else touched.
    WriteBack,
    /// It is kept apart: which of the two is newer, nobody knows.
    Quarantine(Why),
    /// The harness emptied it; the person's own was not concerned.
    Emptied,
    /// It is nothing that a harness leaves.
    Ignore,
}

/// What becomes of the person's own login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theirs {
    /// There is nothing to do.
    Intact,
    /// It was emptied: what was there before comes back.
    Restore,
    /// It is not what it was, and what was there before is kept apart.
    QuarantineBackup(Why),
}

/// Why a login is kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The person's own login changed meanwhile.
    TheirsChanged,
    /// The person's own login is gone.
    TheirsGone,
    /// It is not understood.
    NotUnderstood,
    /// It is not of the account that the person's own is of, or does not say so any more.
    OtherAccount,
}

impl Why {
    /// As the end of a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::TheirsChanged => "your own login changed meanwhile",
            Self::TheirsGone => "your own login is gone",
            Self::NotUnderstood => "it does not look like a login any more",
            Self::OtherAccount => "it is not of the account that yours is of",
        }
    }
}

/// Decides what becomes of a login after a job. A newer login of the person is never overwritten, a good one never
/// replaced by an empty one, and none is thrown away.
pub fn settle(after: After<'_>) -> Settled {
    let After { left, theirs, unchanged, backup } = after;
    let of_theirs = match (theirs.map(judge), backup) {
        (Some(LoginWorth::Tombstone), Some(_)) if !unchanged => Theirs::Restore,
        (Some(LoginWorth::Unknown), Some(_)) if !unchanged => Theirs::QuarantineBackup(Why::NotUnderstood),
        (None, Some(_)) => Theirs::QuarantineBackup(Why::TheirsGone),
        _ => Theirs::Intact,
    };
    let of_copy = match left {
        Left::Nothing => Copied::Intact,
        Left::Odd(_) => Copied::Ignore,
        Left::File(copy) if theirs == Some(copy) => Copied::Intact,
        Left::File(copy) => match judge(copy) {
            LoginWorth::Tombstone => Copied::Emptied,
            LoginWorth::Unknown => Copied::Quarantine(Why::NotUnderstood),
            LoginWorth::Good if theirs.is_none() => Copied::Quarantine(Why::TheirsGone),
            LoginWorth::Good if theirs.is_some_and(|theirs| !is_of_account(copy, theirs)) => {
                Copied::Quarantine(Why::OtherAccount)
            }
            LoginWorth::Good if unchanged => Copied::WriteBack,
            LoginWorth::Good => Copied::Quarantine(Why::TheirsChanged),
        },
    };
    Settled { copy: of_copy, theirs: of_theirs }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_login_is_lost_and_no_newer_one_overwritten() {
        const OLD: &[u8] = br#"{"refresh_token":"old"}"#;
        const NEW: &[u8] = br#"{"refresh_token":"new"}"#;
        const NEWER: &[u8] = br#"{"refresh_token":"newer"}"#;
        const OURS: &[u8] = br#"{"tokens":{"refresh_token":"old","account_id":"ours"}}"#;
        const OTHERS: &[u8] = br#"{"tokens":{"refresh_token":"new","account_id":"another"}}"#;
        const TOMBSTONE: &[u8] = br#"{"refresh_token":""}"#;
        const TORN: &[u8] = br#"{"refresh_tok"#;
        const OTHER: &[u8] = br#"{"credential":"of a version that nobody knows"}"#;
        let old = Some(OLD);
        for (left, theirs, unchanged, backup, expected) in [
            // The link is there: the harness wrote through it, or did not write.
            (Left::Nothing, old, true, old, (Copied::Intact, Theirs::Intact)),
            (Left::Nothing, Some(NEW), false, old, (Copied::Intact, Theirs::Intact)),
            // A private copy in its place.
            (Left::File(NEW), old, true, old, (Copied::WriteBack, Theirs::Intact)),
            (Left::File(OLD), old, true, old, (Copied::Intact, Theirs::Intact)),
            (Left::File(OTHERS), Some(OURS), true, Some(OURS), (Copied::Quarantine(Why::OtherAccount), Theirs::Intact)),
            (Left::File(NEW), Some(NEWER), false, old, (Copied::Quarantine(Why::TheirsChanged), Theirs::Intact)),
            (
                Left::File(NEW),
                None,
                false,
                old,
                (Copied::Quarantine(Why::TheirsGone), Theirs::QuarantineBackup(Why::TheirsGone)),
            ),
            (Left::File(TORN), old, true, old, (Copied::Quarantine(Why::NotUnderstood), Theirs::Intact)),
            (Left::File(OTHER), old, true, old, (Copied::Quarantine(Why::NotUnderstood), Theirs::Intact)),
            (Left::Nothing, Some(OTHER), false, old, (Copied::Intact, Theirs::QuarantineBackup(Why::NotUnderstood))),
            (Left::File(TOMBSTONE), old, true, old, (Copied::Emptied, Theirs::Intact)),
            // The person's own, emptied or torn or removed.
            (Left::Nothing, Some(TOMBSTONE), false, old, (Copied::Intact, Theirs::Restore)),
            (Left::File(TOMBSTONE), Some(TOMBSTONE), false, old, (Copied::Intact, Theirs::Restore)),
            (Left::Nothing, Some(TORN), false, old, (Copied::Intact, Theirs::QuarantineBackup(Why::NotUnderstood))),
            (Left::Nothing, None, false, old, (Copied::Intact, Theirs::QuarantineBackup(Why::TheirsGone))),
            // Both: the refreshed one is kept.
            (Left::File(NEW), Some(TOMBSTONE), false, old, (Copied::Quarantine(Why::TheirsChanged), Theirs::Restore)),
            // Emptied before the job: the person logged out, and another job's backup is none of this one's.
            (Left::Nothing, Some(TOMBSTONE), true, old, (Copied::Intact, Theirs::Intact)),
            (Left::Nothing, Some(TOMBSTONE), false, None, (Copied::Intact, Theirs::Intact)),
            (Left::Nothing, None, false, None, (Copied::Intact, Theirs::Intact)),
            // What only a hostile job leaves.
            (Left::Odd("a pipe"), old, true, old, (Copied::Ignore, Theirs::Intact)),
            (Left::Odd("a pipe"), Some(TOMBSTONE), false, old, (Copied::Ignore, Theirs::Restore)),
        ] {
            let after = After { left, theirs, unchanged, backup };
            let Settled { copy, theirs } = settle(after);
            assert_eq!((copy, theirs), expected, "{after:?}");
        }
    }
}
