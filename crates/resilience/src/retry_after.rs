//! Reads `Retry-After` (RFC 9110, 10.2.3): how long the receiver asks us to wait.
//!
//! In: the raw header lines and the time of day. Out: a wait as asked, uncapped, or why there is
//! none. Whole seconds of any length (a number too large for us is a long wait, not an error) or
//! one of the three date shapes. Fractions, signs, lists and leap seconds (`:60`) are not
//! understood.
//! Never: panic on any bytes, turn something unreadable into a short wait, apply limits.

use std::str::from_utf8;
use std::time::{Duration, UNIX_EPOCH};

use crate::clock::Timestamp;

/// What the receiver asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// No such header.
    Absent,
    /// A header that asks for no wait: malformed, negative, fractional, zero, or a time not ahead
    /// of us. It counts as absent; it is told apart so that the record of the call can say so.
    Unusable,
    /// Wait at least this long; never zero.
    Wait(Duration),
}

/// Reads all `Retry-After` lines of one answer; of several usable ones the longest counts.
pub fn parse<'a>(values: impl IntoIterator<Item = &'a [u8]>, now: Timestamp) -> RetryAfter {
    values.into_iter().map(|value| parse_line(value, now)).fold(RetryAfter::Absent, longer)
}

fn longer(a: RetryAfter, b: RetryAfter) -> RetryAfter {
    match (a, b) {
        (RetryAfter::Wait(a), RetryAfter::Wait(b)) => RetryAfter::Wait(a.max(b)),
        (RetryAfter::Wait(wait), _) | (_, RetryAfter::Wait(wait)) => RetryAfter::Wait(wait),
        (RetryAfter::Unusable, _) | (_, RetryAfter::Unusable) => RetryAfter::Unusable,
        (RetryAfter::Absent, RetryAfter::Absent) => RetryAfter::Absent,
    }
}

fn parse_line(line: &[u8], now: Timestamp) -> RetryAfter {
    let value = trim_ows(line);
    match seconds(value).or_else(|| Some(date(value)?.since(now))) {
        Some(wait) if !wait.is_zero() => RetryAfter::Wait(wait),
        Some(_) | None => RetryAfter::Unusable,
    }
}

/// Optional white space in the sense of HTTP: spaces and tabs, nothing else.
fn trim_ows(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// `1*DIGIT`, saturating.
fn seconds(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = value.iter().map(|digit| u64::from(digit - b'0'));
    Some(Duration::from_secs(
        digits.fold(0, |sum: u64, digit| sum.saturating_mul(10).saturating_add(digit)),
    ))
}

fn date(value: &[u8]) -> Option<Timestamp> {
    // The date reader trims more than HTTP does, so a value with other white space is turned away
    // here.
    if value.iter().any(u8::is_ascii_control) {
        return None;
    }
    let at = httpdate::parse_http_date(from_utf8(value).ok()?).ok()?;
    Some(Timestamp::EPOCH.plus(at.duration_since(UNIX_EPOCH).ok()?))
}

#[cfg(test)]
mod tests;
