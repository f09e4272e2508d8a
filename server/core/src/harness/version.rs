//! Versions of harnesses: how they are read, and which of them this build knows.

use super::Harness;

/// A version of three numbers, as most programs print it alone on a line.
pub(super) fn plain(line: &str) -> Option<String> {
    let version = line.trim();
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let plain = numbers.split('.').count() == 3
        && numbers.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    (plain && version.len() <= 64 && version.bytes().all(|b| b.is_ascii_graphic())).then(|| version.to_owned())
}

/// What a person should know of a version that is none of [`super::About::tested_versions`].
pub fn untested(harness: &dyn Harness, version: Option<&str>) -> Option<String> {
    let (name, tested, version) = (harness.name(), harness.about().tested_versions, version?);
    let is_unknown = !tested.is_empty() && !covers(tested, version);
    is_unknown.then(|| {
        let tested = tested.join(", ");
        format!("this pactify was made for {name} {tested}; {name} {version} may say things that it does not know")
    })
}

/// Whether `version` is one of `tested`, each of which is a version or the start of some: `0.171` covers `0.171.3`.
fn covers(tested: &[&str], version: &str) -> bool {
    let starts =
        |start: &&str| version.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    tested.iter().any(starts)
}

#[cfg(test)]
mod tests {
    use super::super::registry;
    use super::*;

    #[test]
    fn a_start_of_a_version_covers_whole_numbers_only() {
        for (version, expected) in
            [("0.171.0", true), ("0.171", true), ("0.17", false), ("0.1710.0", false), ("1.0.171", false)]
        {
            assert_eq!(covers(&["0.171"], version), expected, "{version}");
        }
    }

    #[test]
    fn a_version_that_a_harness_was_not_made_for_is_told_of() {
        for (name, known, unknown) in [
            ("codex", "0.171.3", "0.172.0"),
            ("kimi", "2.1.9", "2.10.0"),
            ("opencode", "1.18.33", "2.0.26"),
            ("agy", "1.1.15", "1.6.0"),
        ] {
            let harness = registry::built_in(&name.parse().unwrap()).unwrap();
            assert_eq!(untested(&*harness, Some(known)), None, "{name}");
            assert_eq!(untested(&*harness, None), None, "{name}");
            let told = untested(&*harness, Some(unknown)).unwrap();
            assert!(told.contains(&format!("{name} {unknown}")), "{told}");
        }
    }
}
