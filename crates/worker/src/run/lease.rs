//! The lease of one message, as its consumer sees it.
//!
//! It is prolonged while the handler runs, and counts as lost when the queue says so or when it
//! must have lapsed because no heartbeat got through.
//! Never: hold on to a message whose lease may be another's.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use super::shared::Shared;
use crate::error::QueueError;
use crate::message::LeaseToken;

/// Until when a message is ours.
pub(super) struct Lease {
    pub(super) until: Instant,
}

impl Lease {
    /// Begun just now.
    pub(super) fn begun(length: Duration) -> Self {
        Self { until: later(Instant::now(), length) }
    }

    /// Prolongs the lease for ever; comes back only when it is lost.
    pub(super) async fn keep(&mut self, shared: &Shared, token: &LeaseToken) {
        let limits = shared.limits;
        let mut beat = later(Instant::now(), limits.heartbeat);
        loop {
            sleep_until(beat.min(self.until)).await;
            let asked = Instant::now();
            if asked >= self.until {
                return;
            }
            beat = later(asked, limits.heartbeat);
            // An answer that is late makes room for the next heartbeat.
            let limit = limits.queue_timeout.min(limits.heartbeat);
            match in_time(limit, shared.queue.dyn_extend(token, limits.lease)).await {
                Ok(()) => self.until = later(asked, limits.lease),
                Err(QueueError::Stale) => return,
                Err(error) => shared.observers.tell(|o| o.on_queue_error("extend", &error)),
            }
        }
    }
}

/// The answer of the queue, if it comes within the limit.
pub(super) async fn in_time<T>(
    limit: Duration,
    asked: impl Future<Output = Result<T, QueueError>>,
) -> Result<T, QueueError> {
    let late = || QueueError::unavailable(format!("no answer within {limit:?}"));
    timeout(limit, asked).await.unwrap_or_else(|_| Err(late()))
}

/// A clock cannot show every time that a span can lead to.
pub(super) fn later(at: Instant, span: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(100 * 366 * 86_400);
    at + span.min(FAR)
}
