//! Durations as people write them: `90`, `90s`, `30m`, `2h`.

/// The whole seconds of a duration.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().find(|(_, c)| !c.is_ascii_digit()) {
        Some((at, _)) => text.split_at(at),
        None => (text, "s"),
    };
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        _ => return Err("a duration is a number with s, m or h: 90s, 30m, 2h".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "a duration begins with a number: 90s, 30m, 2h".to_owned())?;
    match number.checked_mul(factor) {
        Some(0) => Err("a limit of 0 would end the job at once".to_owned()),
        Some(seconds) => Ok(seconds),
        None => Err("that is longer than any job".to_owned()),
    }
}

/// The seconds of an age, which may be none: `30d`, `12h`, `0s`.
pub(super) fn age(text: &str) -> Result<u64, String> {
    const DAY: u64 = 24 * 60 * 60;
    let is_none = |number: &str| number.parse() == Ok(0_u64);
    match text.strip_suffix('d') {
        Some(days) => {
            let days: u64 = days.parse().map_err(|_| "an age is a number with s, m, h or d: 30d".to_owned())?;
            days.checked_mul(DAY).ok_or_else(|| "that is longer ago than any job".to_owned())
        }
        None if is_none(text.trim_end_matches(['s', 'm', 'h'])) => Ok(0),
        None => seconds(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_seconds_minutes_and_hours() {
        for (text, expected) in [("90", 90), ("90s", 90), ("30m", 1800), ("2h", 7200)] {
            assert_eq!(seconds(text), Ok(expected));
        }
        for text in ["", "m", "1d", "-1", "1.5h", "0", "0m", "99999999999999999999", "9999999999999999999h"] {
            assert!(seconds(text).is_err(), "{text:?}");
        }
    }
}
