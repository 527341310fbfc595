//! Whether what is done once in a while is due, by a clock that may step back.
//!
//! Never: read the clock.

use std::time::Duration;

use resilience::Timestamp;

/// Whether the time `at` of what is done once in a `span` has come. One that lies farther ahead
/// than that was set before the clock stepped back: it has come, too.
pub(super) fn is_due(at: Timestamp, span: Duration, now: Timestamp) -> bool {
    at <= now || at > now.plus(span)
}
