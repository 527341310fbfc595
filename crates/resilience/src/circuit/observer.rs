//! What a breaker tells those who watch it.
//!
//! Never: let an observer change anything.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use super::rejected::Rejected;
use crate::clock::Timestamp;

/// A state without its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Calls go through.
    Closed,
    /// Calls are rejected.
    Open,
    /// Probes decide.
    HalfOpen,
}

impl Phase {
    /// As one word, for a label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// What made it change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// Too many calls failed, or took too long.
    Tripped,
    /// The open time was over and a probe went out.
    ProbeSent,
    /// Enough probes succeeded.
    ProbeSucceeded,
    /// A probe failed.
    ProbeFailed,
    /// An operator forced it, lifted that, or reset it.
    ByHand,
    /// Another process that shares it changed it.
    Elsewhere,
}

/// A change of state. `seq` counts them from 1, so that none is missed or taken twice.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateChange {
    /// Which breaker.
    pub breaker: Arc<str>,
    /// The state before.
    pub from: Phase,
    /// The state now.
    pub to: Phase,
    /// Why.
    pub cause: Cause,
    /// The number of this change.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// The earliest time of a probe, when it opened by its rules.
    pub open_until: Option<Timestamp>,
}

/// The end of one call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallEvent<'a> {
    /// Which breaker.
    pub breaker: &'a str,
    /// The generation in which it was begun.
    pub generation: u64,
    /// Whether it was a probe.
    pub is_probe: bool,
    /// How long it took.
    pub took: Duration,
}

/// Watches a breaker. Every method does nothing unless written.
///
/// Called without the lock, by the task whose call it was, before that call returns. Changes of
/// state come in order, and before the result that made them; one that another task is just telling
/// may come from that task. A panic is caught and changes nothing.
#[expect(unused_variables, reason = "the names are for those who implement it")]
pub trait BreakerObserver: Send + Sync {
    /// The state changed.
    fn on_state_change(&self, change: &StateChange) {}

    /// A call succeeded.
    fn on_success(&self, call: &CallEvent<'_>) {}

    /// A call failed; the error is there if the caller gave it.
    fn on_failure(&self, call: &CallEvent<'_>, error: Option<&(dyn Error + 'static)>) {}

    /// A call said nothing about health, or was given up.
    fn on_ignored(&self, call: &CallEvent<'_>) {}

    /// A call was not let through.
    fn on_rejected(&self, rejected: &Rejected) {}

    /// A call was not let through because enough probes are out; `on_rejected` is not called too.
    fn on_probe_rejected(&self, rejected: &Rejected) {}

    /// A result came after the breaker had changed; it counted for nothing.
    fn on_late_result(&self, call: &CallEvent<'_>) {}

    /// The store of a shared breaker failed; this process goes on alone for a while.
    fn on_store_error(&self, breaker: &str, error: &(dyn Error + 'static)) {}
}

impl<O: BreakerObserver + ?Sized> BreakerObserver for Arc<O> {
    fn on_state_change(&self, change: &StateChange) {
        (**self).on_state_change(change);
    }

    fn on_success(&self, call: &CallEvent<'_>) {
        (**self).on_success(call);
    }

    fn on_failure(&self, call: &CallEvent<'_>, error: Option<&(dyn Error + 'static)>) {
        (**self).on_failure(call, error);
    }

    fn on_ignored(&self, call: &CallEvent<'_>) {
        (**self).on_ignored(call);
    }

    fn on_rejected(&self, rejected: &Rejected) {
        (**self).on_rejected(rejected);
    }

    fn on_probe_rejected(&self, rejected: &Rejected) {
        (**self).on_probe_rejected(rejected);
    }

    fn on_late_result(&self, call: &CallEvent<'_>) {
        (**self).on_late_result(call);
    }

    fn on_store_error(&self, breaker: &str, error: &(dyn Error + 'static)) {
        (**self).on_store_error(breaker, error);
    }
}
