//! A time on the command line: RFC 3339, or how long ago or from now.
//!
//! Never: a clock read in passing; now is an argument.

use std::time::Duration;

use resilience::Timestamp;

const HOUR: u64 = 3_600;

/// A time as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Itself.
    At(jiff::Timestamp),
    /// So long ago.
    Ago(Duration),
    /// So long from now.
    Ahead(Duration),
}

impl Moment {
    /// Reads one of something that is to come.
    pub(crate) fn parse_ahead(text: &str) -> Result<Self, String> {
        if let Some(span) = span(text) {
            return Ok(Self::Ahead(span));
        }
        let at = text.parse::<jiff::Timestamp>();
        at.map(Self::At).map_err(|_| {
            "must be a time such as 2026-01-31T12:00:00Z, or how long from now: 30s, 15m, 24h"
                .to_owned()
        })
    }

    /// Reads one of something that was.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(span) = span(text) {
            return Ok(Self::Ago(span));
        }
        let at = text.parse::<jiff::Timestamp>();
        at.map(Self::At).map_err(|_| {
            "must be a time such as 2026-01-31T12:00:00Z, or how long ago: 30s, 15m, 24h, 7d"
                .to_owned()
        })
    }

    /// As the API takes it.
    pub(crate) fn text(&self, now: Timestamp) -> String {
        match self {
            Self::At(at) => at.to_string(),
            Self::Ago(span) => text_of(now.minus(*span)),
            Self::Ahead(span) => text_of(now.plus(*span)),
        }
    }
}

/// A time as RFC 3339 in UTC.
pub(crate) fn text_of(time: Timestamp) -> String {
    let time = jiff::Timestamp::from_microsecond(time.as_micros());
    time.map_or_else(|_| "-".to_owned(), |time| time.to_string())
}

/// The same to the second.
pub(crate) fn second_of(time: Timestamp) -> String {
    text_of(Timestamp::from_secs(time.as_secs()))
}

fn span(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let count: u64 = text[..text.len() - unit.len_utf8()].parse().ok()?;
    let secs = match unit {
        's' => 1,
        'm' => 60,
        'h' => HOUR,
        'd' => 24 * HOUR,
        _ => return None,
    };
    // Longer than a hundred years is a slip.
    let all = count.checked_mul(secs).filter(|all| *all <= 100 * 366 * 24 * HOUR)?;
    Some(Duration::from_secs(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_itself_or_so_long_ago() {
        let now = Timestamp::from_secs(1_800_000_000);
        for (text, shown) in [
            ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
            ("2026-01-31T12:00:00+02:00", "2026-01-31T10:00:00Z"),
            ("30s", "2027-01-15T07:59:30Z"),
            ("7d", "2027-01-08T08:00:00Z"),
        ] {
            assert_eq!(Moment::parse(text).unwrap().text(now), shown);
        }
        for bad in ["", "d", "7", "7w", "-7d", "soon", "99999999999999999999d", "2026-01-31", "é"]
        {
            assert!(Moment::parse(bad).is_err() && Moment::parse_ahead(bad).is_err(), "{bad}");
        }
        let ahead = |text| Moment::parse_ahead(text).unwrap().text(now);
        assert_eq!(ahead("10m"), "2027-01-15T08:10:00Z");
        assert_eq!(ahead("2026-01-31T12:00:00Z"), "2026-01-31T12:00:00Z");
    }
}
