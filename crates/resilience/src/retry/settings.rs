//! What a retry policy consists of once it has been checked.
//!
//! Never: checked here; see the builder.

use std::sync::Arc;
use std::time::Duration;

use super::decide::{Limits, Overrun, Waits};
use super::hint::RetryAfterRule;
use super::predicate::{Replay, RetryPredicate};
use crate::backoff::Backoff;
use crate::budget::RetryBudget;
use crate::chance::Chance;
use crate::seeds::Seeds;

/// Where the waits come from.
#[derive(Clone)]
pub(super) enum Shape {
    Backoff(Backoff),
    Custom(Arc<dyn Waits>),
}

impl Waits for Shape {
    fn wait(&self, retry: u32, last: Duration, chance: &mut dyn Chance) -> Duration {
        match self {
            Self::Backoff(backoff) => backoff.delay(retry, last, chance),
            Self::Custom(waits) => waits.wait(retry, last, chance),
        }
    }
}

/// What a policy was built from.
pub(super) struct Settings {
    pub(super) shape: Shape,
    pub(super) calls: u32,
    pub(super) elapsed: Option<Duration>,
    pub(super) timed: bool,
    pub(super) hint: RetryAfterRule,
    pub(super) replay: Replay,
    pub(super) predicate: Option<Arc<dyn RetryPredicate>>,
    pub(super) budget: Option<RetryBudget>,
    pub(super) seeds: Seeds,
}

impl Settings {
    /// Whether the time of calls that do not fail matters to anybody.
    pub(super) const fn is_timed(&self) -> bool {
        self.timed || self.elapsed.is_some() || self.budget.is_some()
    }

    /// The bounds as the decision takes them.
    pub(super) fn limits(&self) -> Limits<'_> {
        Limits {
            waits: &self.shape,
            calls_max: self.calls,
            age_max: self.elapsed,
            overrun: Overrun::Stop,
            hint: self.hint,
        }
    }
}
