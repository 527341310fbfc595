//! Spans, narrow numbers and hints as the numbers that are stored.
//!
//! Never: wrap around; what does not fit is cut off on the way in and unreadable on the way out.

use std::time::Duration;

use resilience::RetryAfter;

use super::fault::unreadable;
use crate::StoreError;

pub(crate) fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

pub(crate) fn span(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// A number that was stored from a narrower type.
pub(crate) fn narrow<T: TryFrom<i64>>(value: i64) -> Result<T, StoreError> {
    T::try_from(value).map_err(|_| unreadable())
}

/// Absent is no value; unusable is -1; a wait is its length.
pub(crate) fn retry_after_code(hint: RetryAfter) -> Option<i64> {
    match hint {
        RetryAfter::Absent => None,
        RetryAfter::Unusable => Some(-1),
        RetryAfter::Wait(wait) => Some(micros(wait)),
    }
}

/// Reads [`retry_after_code`].
pub(crate) fn retry_after(code: Option<i64>) -> RetryAfter {
    match code {
        None => RetryAfter::Absent,
        Some(wait) if wait >= 0 => RetryAfter::Wait(span(wait)),
        Some(_) => RetryAfter::Unusable,
    }
}
