//! What a notice is about, as a number and the time that belongs to some of them.
//!
//! Never: a number with a second meaning.

use domain::notice::News;
use resilience::Timestamp;

use super::fault::unreadable;
use crate::StoreError;

/// Numbers in the database; they stay as they are.
pub(crate) const fn code(news: News) -> (i64, Option<Timestamp>) {
    match news {
        News::EndpointCreated => (0, None),
        News::EndpointUpdated => (1, None),
        News::EndpointDeleted => (2, None),
        News::EndpointDisabled { failing_since } => (3, Some(failing_since)),
        News::BreakerOpened { until } => (4, Some(until)),
        News::BreakerClosed => (5, None),
        News::AttemptFailing => (6, None),
        News::AttemptExhausted => (7, None),
        News::AttemptRecovered => (8, None),
        News::EndpointFailing { failing_since } => (9, Some(failing_since)),
        News::EndpointSuspended { failing_since } => (10, failing_since),
        News::EndpointResumed => (11, None),
    }
}

/// Reads [`code`].
pub(crate) fn news(code: i64, at: Option<Timestamp>) -> Result<News, StoreError> {
    Ok(match (code, at) {
        (0, _) => News::EndpointCreated,
        (1, _) => News::EndpointUpdated,
        (2, _) => News::EndpointDeleted,
        (3, Some(failing_since)) => News::EndpointDisabled { failing_since },
        (4, Some(until)) => News::BreakerOpened { until },
        (5, _) => News::BreakerClosed,
        (6, _) => News::AttemptFailing,
        (7, _) => News::AttemptExhausted,
        (8, _) => News::AttemptRecovered,
        (9, Some(failing_since)) => News::EndpointFailing { failing_since },
        (10, failing_since) => News::EndpointSuspended { failing_since },
        (11, _) => News::EndpointResumed,
        _ => return Err(unreadable()),
    })
}
