//! What is counted, in the reference model: one fact for each row that was ever committed.
//!
//! Never: a sum.

use domain::attempt::{Attempt, Outcome};
use domain::classify::usual_class;
use domain::dead_letter::DeadReason;
use domain::figures::{Counted, Tally};
use domain::ids::{AppKey, AttemptKey, EndpointKey, MessageKey, key_time};
use resilience::Timestamp;

use crate::counts::minute_of;

/// Something that is counted.
#[derive(Clone, Debug)]
pub(super) struct Fact {
    /// Its minute or, later on, its hour.
    pub(super) at: Timestamp,
    pub(super) owner: Owner,
    pub(super) what: Counted,
    pub(super) tally: Tally,
}

/// Whom it counts for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    App(AppKey),
    Endpoint(EndpointKey),
}

impl Fact {
    pub(super) fn sent(key: AttemptKey, endpoint: EndpointKey, attempt: &Attempt) -> Self {
        let failure = match &attempt.outcome {
            Outcome::Answered(_) => None,
            Outcome::Failed(failure) => Some(failure.kind),
        };
        let mut tally = Tally::default();
        tally.send(attempt.took, attempt.number);
        let what = Counted::Sent(usual_class(attempt.status(), failure));
        Self::new(key.0, Owner::Endpoint(endpoint), what, tally)
    }

    pub(super) fn dead(place: u64, endpoint: EndpointKey, reason: DeadReason) -> Self {
        Self::new(place, Owner::Endpoint(endpoint), Counted::Dead(reason), Tally::one())
    }

    pub(super) fn accepted(key: MessageKey, app: AppKey) -> Self {
        Self::new(key.0, Owner::App(app), Counted::Accepted, Tally::one())
    }

    fn new(key: u64, owner: Owner, what: Counted, tally: Tally) -> Self {
        Self { at: minute_of(key_time(key)), owner, what, tally }
    }
}
