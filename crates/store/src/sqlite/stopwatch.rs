//! How long something takes.
//!
//! Never: what time it is; the store's clock says that.

use std::time::Instant;

/// The beginning of a measurement.
#[expect(clippy::disallowed_methods, reason = "measures a span; never says what time it is")]
pub(super) fn started() -> Instant {
    Instant::now()
}
