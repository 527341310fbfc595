//! How durations and retry rules are spelled, the same in settings and in the API.
//!
//! In: text. Out: values of the domain, or the rule that was broken, worded to follow the name of
//! the field.
//! Never: know which field it is for.

use std::time::Duration;

use domain::policy::{RetryOn, Strategy};
use resilience::RetryAfterMode;

/// No duration anywhere is longer: ten years.
const DURATION_MAX: Duration = Duration::from_secs(3_650 * 24 * 3_600);
/// Entries of a schedule at most.
const SCHEDULE_MAX: usize = 100;
/// Entries of a list of statuses at most.
const STATUSES_MAX: usize = 100;

/// Read, and never written: what the API shows stays in hours.
const DAY: (&str, u64) = ("d", 24 * 3_600_000);
const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
const RETRY_AFTER_MODES: [(&str, RetryAfterMode); 3] = [
    ("exact", RetryAfterMode::Exact),
    ("at_least", RetryAfterMode::AtLeast),
    ("ignore", RetryAfterMode::Ignore),
];

/// Reads `250ms`, `10s`, `5m`, `24h`, `90d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let broken =
        || "must be a whole number with a unit, like 250ms, 10s, 5m, 24h or 90d".to_owned();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, millis) =
        UNITS.iter().chain([&DAY]).find(|(name, _)| *name == unit).ok_or_else(broken)?;
    if number.is_empty() {
        return Err(broken());
    }
    let whole = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*millis));
    match whole.map(Duration::from_millis) {
        Some(span) if span <= DURATION_MAX => Ok(span),
        _ => Err("must be at most 87600h".to_owned()),
    }
}

/// Writes a duration in the largest unit that divides it.
pub(crate) fn duration_text(span: Duration) -> String {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let (unit, size) =
        UNITS.iter().rev().find(|(_, size)| millis.is_multiple_of(*size)).unwrap_or(&UNITS[0]);
    if millis == 0 { "0s".to_owned() } else { format!("{}{unit}", millis / size) }
}

/// Reads a list of delays.
pub(crate) fn schedule(texts: &[String]) -> Result<Vec<Duration>, String> {
    if texts.len() > SCHEDULE_MAX {
        return Err(format!("must be at most {SCHEDULE_MAX} delays"));
    }
    texts.iter().map(|text| duration(text)).collect()
}

/// Reads the name of a strategy.
pub(crate) fn strategy(text: &str) -> Result<Strategy, String> {
    Strategy::from_name(text).ok_or_else(|| one_of(&Strategy::ALL.map(Strategy::name)))
}

/// Reads what `Retry-After` does.
pub(crate) fn retry_after_mode(text: &str) -> Result<RetryAfterMode, String> {
    let found = RETRY_AFTER_MODES.iter().find(|(name, _)| *name == text);
    found.map(|(_, mode)| *mode).ok_or_else(|| one_of(&RETRY_AFTER_MODES.map(|(name, _)| name)))
}

/// Writes what `Retry-After` does.
pub(crate) fn retry_after_mode_text(mode: RetryAfterMode) -> &'static str {
    RETRY_AFTER_MODES.iter().find(|(_, known)| *known == mode).map_or("exact", |(name, _)| name)
}

/// Reads `transient`, `all`, or statuses and classes: `408`, `500-504`, `5xx`.
pub(crate) fn retry_on<S: AsRef<str>>(entries: &[S]) -> Result<RetryOn, String> {
    match entries {
        [only] if only.as_ref() == "transient" => Ok(RetryOn::Transient),
        [only] if only.as_ref() == "all" => Ok(RetryOn::All),
        [] => Err("must name at least one status".to_owned()),
        many if many.len() > STATUSES_MAX => {
            Err(format!("must name at most {STATUSES_MAX} statuses"))
        }
        many => many
            .iter()
            .map(|entry| statuses(entry.as_ref().trim()).ok_or_else(retry_on_rule))
            .collect::<Result<_, _>>()
            .map(RetryOn::Listed),
    }
}

/// Writes which answers are retried.
pub(crate) fn retry_on_text(rule: &RetryOn) -> String {
    match rule {
        RetryOn::Transient => "transient".to_owned(),
        RetryOn::All => "all".to_owned(),
        RetryOn::Listed(ranges) => {
            let spelled = ranges.iter().map(|&(low, high)| {
                if low == high {
                    low.to_string()
                } else if low % 100 == 0 && high.checked_sub(low) == Some(99) {
                    format!("{}xx", low / 100)
                } else {
                    format!("{low}-{high}")
                }
            });
            spelled.collect::<Vec<_>>().join(",")
        }
    }
}

fn retry_on_rule() -> String {
    "must be `transient`, `all`, or statuses from 300 to 999 like 408, 500-504, 5xx".to_owned()
}

fn statuses(entry: &str) -> Option<(u16, u16)> {
    let (low, high) = if let Some(class) = entry.strip_suffix("xx") {
        let low = class.parse::<u16>().ok()?.checked_mul(100)?;
        (low, low.checked_add(99)?)
    } else if let Some((low, high)) = entry.split_once('-') {
        (low.parse().ok()?, high.parse().ok()?)
    } else {
        let status = entry.parse().ok()?;
        (status, status)
    };
    (300 <= low && low <= high && high <= 999).then_some((low, high))
}

/// The rule "must be one of …".
pub(crate) fn one_of(names: &[&str]) -> String {
    format!("must be one of {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_survive_the_round_trip() {
        for (text, millis) in [
            ("250ms", 250),
            ("10s", 10_000),
            ("5m", 300_000),
            ("24h", 86_400_000),
            ("90d", 7_776_000_000),
            ("1500ms", 1_500),
            ("90s", 90_000),
        ] {
            let span = duration(text).unwrap();
            assert_eq!(span, Duration::from_millis(millis), "{text}");
            assert_eq!(duration(&duration_text(span)).unwrap(), span, "{text}");
        }
        assert_eq!(duration_text(Duration::from_secs(3_600)), "1h");
        assert_eq!(duration_text(Duration::from_secs(90)), "90s");
        assert_eq!(duration_text(duration("2d").unwrap()), "48h");
        assert_eq!(duration_text(Duration::ZERO), "0s");
    }

    #[test]
    fn other_durations_are_refused() {
        let bad = [
            "",
            "5",
            "s",
            "1.5s",
            "-1s",
            "+1s",
            " 1s",
            "1 s",
            "1s ",
            "1w",
            "1H",
            "1h30m",
            "１s",
            "18446744073709551615h",
            "99999999999999999999s",
            "87601h",
            "ms",
            "1e3s",
        ];
        for text in bad {
            assert!(duration(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn retry_rules_survive_the_round_trip() {
        for text in ["transient", "all", "408,425,429,5xx", "500-504", "3xx,410"] {
            let entries: Vec<_> = text.split(',').collect();
            assert_eq!(retry_on_text(&retry_on(&entries).unwrap()), text);
        }
        for bad in ["", "200", "2xx", "1000", "504-500", "x", "5xxx", "all,408", "-", "65xx"] {
            let entries: Vec<_> = bad.split(',').collect();
            assert!(retry_on(&entries).is_err(), "{bad:?}");
        }
        assert!(retry_on::<&str>(&[]).is_err());
        assert!(strategy("sometimes").unwrap_err().contains("full_jitter"));
        for (text, mode) in RETRY_AFTER_MODES {
            assert_eq!(retry_after_mode(text), Ok(mode));
            assert_eq!(retry_after_mode_text(mode), text);
        }
    }
}
