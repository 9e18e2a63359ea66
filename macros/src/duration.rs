//! Durations as people write them: `"30 seconds"`.

const UNITS: [(u64, &[&str]); 5] = [
    (1, &["ms", "millisecond", "milliseconds"]),
    (1_000, &["s", "second", "seconds"]),
    (60_000, &["min", "minute", "minutes"]),
    (3_600_000, &["h", "hour", "hours"]),
    (86_400_000, &["day", "days"]),
];

/// Reads a duration in milliseconds: a whole number, then a unit.
pub fn milliseconds(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let unit = unit.trim_start();
    let factor = UNITS.iter().find(|(_, names)| names.contains(&unit)).map(|(factor, _)| factor);
    match (number.parse::<u64>(), factor) {
        (Ok(number), Some(factor)) => number.checked_mul(*factor).ok_or_else(|| "is too long".to_owned()),
        (Ok(number), None) if unit.is_empty() => Err(format!("has no unit: write `\"{number} seconds\"`")),
        _ => Err("is a whole number and a unit (ms, seconds, minutes, hours, days), as in `\"30 seconds\"`"
            .to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn every_unit_is_read_with_and_without_a_space() {
        let read = ["250 ms", "30 seconds", "1 minute", "2hours", " 1 day "].map(milliseconds);
        assert_eq!(read, [Ok(250), Ok(30_000), Ok(60_000), Ok(7_200_000), Ok(86_400_000)]);
    }

    #[test]
    fn a_bare_number_is_asked_for_its_unit() {
        assert_eq!(milliseconds("30"), Err("has no unit: write `\"30 seconds\"`".to_owned()));
    }

    #[test]
    fn what_is_not_a_whole_number_and_a_unit_is_refused() {
        for text in ["", "seconds", "1.5 seconds", "-1 s", "3 fortnights", "99999999999999999999 s"] {
            assert!(milliseconds(text).is_err(), "{text:?} was read");
        }
    }

    #[test]
    fn a_duration_that_overflows_is_refused() {
        assert_eq!(milliseconds("18446744073709551615 days"), Err("is too long".to_owned()));
    }
}
