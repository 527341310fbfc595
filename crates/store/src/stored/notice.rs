//! What a notice is about, as a number, and the time and the endpoint that belong to some of them.
//!
//! Never: a number with a second meaning.

use domain::ids::EndpointKey;
use domain::notice::{News, Run};
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
        News::RefusalsHeld(run) => (12, Some(run.since)),
        News::RefusalsEnded(run) => (13, Some(run.since)),
    }
}

/// The endpoint that a run is of.
pub(crate) const fn endpoint(news: News) -> Option<EndpointKey> {
    match news {
        News::RefusalsHeld(run) | News::RefusalsEnded(run) => Some(run.endpoint),
        _ => None,
    }
}

/// Reads [`code`] and [`endpoint`].
pub(crate) fn whole(
    code: i64,
    at: Option<Timestamp>,
    endpoint: Option<EndpointKey>,
) -> Result<News, StoreError> {
    let run = || match (endpoint, at) {
        (Some(endpoint), Some(since)) => Ok(Run { endpoint, since }),
        _ => Err(unreadable()),
    };
    match code {
        12 => run().map(News::RefusalsHeld),
        13 => run().map(News::RefusalsEnded),
        _ => news(code, at),
    }
}

/// Reads [`code`] of news that name no run.
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
