//! Carries a verdict out, again while the queue does not answer and the lease lasts.
//!
//! Never: decide; settle what is no longer ours.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::lease::{in_time, later};
use super::shared::Shared;
use crate::error::QueueError;
use crate::message::{History, LeaseToken};
use crate::observer::Settlement;
use crate::verdict::{Again, Case, Verdict};

/// Between two tries to settle.
const PAUSE: Duration = Duration::from_millis(200);

/// Settles a message whose lease lasts `until` then.
pub(super) async fn settle(
    shared: &Shared,
    case: &Case<'_>,
    verdict: Verdict,
    until: Instant,
) -> Settlement {
    let mut is_unknown = false;
    loop {
        match once(shared, case, &verdict).await {
            Ok(()) => return settled(verdict, case),
            // The try before has got through, though its answer has not.
            Err(QueueError::Stale) if is_unknown => return settled(verdict, case),
            Err(QueueError::Stale) => return Settlement::LeaseLost,
            Err(error) => {
                shared.observers.tell(|observer| observer.on_queue_error("settle", &error));
                is_unknown = true;
            }
        }
        if later(Instant::now(), PAUSE) >= until {
            return Settlement::LeaseLost;
        }
        sleep(PAUSE).await;
    }
}

async fn once(shared: &Shared, case: &Case<'_>, verdict: &Verdict) -> Result<(), QueueError> {
    let (queue, message) = (&shared.queue, case.message);
    let token: &LeaseToken = &message.token;
    let unbegun = History::default();
    let asked = match verdict {
        Verdict::Complete => queue.dyn_complete(token),
        Verdict::Again(Again { due, history, .. }) => {
            queue.dyn_schedule_at(token, *due, message.attempt, history)
        }
        Verdict::Bury { attempts, reason, description } => {
            queue.dyn_dead_letter(token, *attempts, reason, description)
        }
        Verdict::Return => {
            let attempts = message.attempt.saturating_sub(1);
            // The next receipt is then the first.
            let history = if attempts == 0 { &unbegun } else { &message.history };
            queue.dyn_schedule_at(token, case.now, attempts, history)
        }
    };
    in_time(shared.limits.queue_timeout, asked).await
}

fn settled(verdict: Verdict, case: &Case<'_>) -> Settlement {
    match verdict {
        Verdict::Complete => Settlement::Completed,
        Verdict::Again(Again { due, history, mut session }) => {
            // The retry will be made: what the budget paid is spent.
            session.calling();
            let error = history.last_error.unwrap_or_default();
            Settlement::Scheduled { delay: due.since(case.now), error }
        }
        Verdict::Bury { reason, description, .. } => {
            Settlement::DeadLettered { reason, description }
        }
        Verdict::Return => Settlement::Returned,
    }
}
