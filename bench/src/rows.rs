//! Rows of the past, written beside peyk: deliveries that ended well days ago, and retries that are
//! due hours from now.
//!
//! Peyk itself makes what can be made in minutes; ten million deliveries of the last month cannot.
//! They are written as peyk writes them, for the endpoints that it made, in both databases, while
//! no peyk runs: keys that carry their time, one attempt each, keys of idempotency, lists filled,
//! counted as what lies before the figures.
//! Never: write beside a server that runs, or what is measured itself.

mod postgres;
mod span;
mod sqlite;

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::child::Peyk;
use crate::fault::{Result, While as _};
use span::Span;

/// What is to be there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Past {
    /// Deliveries that ended well, with one attempt each.
    pub(crate) delivered: u32,
    /// How long ago the first and the last of these were accepted.
    pub(crate) ago: (Duration, Duration),
    /// Deliveries that failed once within the last hours and are due again hours from now.
    pub(crate) pending: u32,
}

impl Past {
    /// What was delivered comes first, and what waits after it.
    fn spans(&self, now_us: i64) -> [Span; 2] {
        let (first, last) = self.ago;
        let waiting = (Duration::from_hours(10), Duration::from_mins(10));
        let span = |(first, last): (Duration, Duration), count: u32, pending| Span {
            first_us: now_us - micros(first),
            step_us: micros(first - last) / i64::from(count.max(1)),
            count,
            pending,
        };
        [span((first, last), self.delivered, false), span(waiting, self.pending, true)]
    }
}

/// Writes it into the database of a peyk that was stopped.
pub(crate) fn write(peyk: &Peyk, data_dir: &Path, past: &Past) -> Result<()> {
    let spans = past.spans(now_us()?);
    match peyk.database() {
        Some(url) => postgres::write(url, &spans),
        None => sqlite::write(&data_dir.join("peyk.db"), &spans),
    }
}

#[expect(clippy::disallowed_methods, reason = "what lies in the past does so by the true clock")]
fn now_us() -> Result<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).while_("reading the clock")?;
    Ok(micros(since))
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_delivered_is_older_than_what_waits_and_all_is_past() {
        let days = |days: u64| Duration::from_hours(24 * days);
        let past = Past { delivered: 1_000, ago: (days(30), days(2)), pending: 100 };
        let now = 1_790_000_000_000_000;
        let [delivered, waiting] = past.spans(now);
        let end = |span: Span| span.first_us + i64::from(span.count) * span.step_us;
        assert!(end(delivered) <= now - micros(days(2)) && end(delivered) < waiting.first_us);
        assert!(end(waiting) < now && !delivered.pending && waiting.pending);
        assert_eq!(delivered.first_us, now - micros(days(30)));
    }
}
