//! The words in which a breaker speaks: states, answers, permits, changes.
//!
//! Plain values, no rules.
//! Never: transitions, time arithmetic.

use std::time::Duration;

use crate::clock::Timestamp;

/// Where a breaker stands, as it acts: a forced or switched-off breaker shows what that makes of
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Calls go through.
    Closed,
    /// Calls wait.
    Open {
        /// The earliest time of a probe; [`Timestamp::MAX`] when forced open.
        until: Timestamp,
    },
    /// The open time is over: the one probe is due or out.
    HalfOpen,
}

/// A state that someone has set by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forced {
    /// Nothing goes through.
    Open,
    /// Everything goes through.
    Closed,
}

/// Leave for one call. Whoever takes one gives it back exactly once, with the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    pub(super) generation: u64,
    /// The number of the probe, counted from 1; 0 for an ordinary call.
    pub(super) probe: u64,
}

impl Permit {
    /// Leave for an ordinary call of that generation.
    pub(crate) const fn ordinary(generation: u64) -> Self {
        Self { generation, probe: 0 }
    }

    /// Leave for the probe of that number.
    pub(crate) const fn probing(generation: u64, probe: u64) -> Self {
        Self { generation, probe }
    }

    /// The number of the probe; 0 for an ordinary call.
    pub(crate) const fn probe(&self) -> u64 {
        self.probe
    }

    /// The generation in which the call was begun.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether this call decides if a half-open breaker closes.
    pub const fn is_probe(&self) -> bool {
        self.probe != 0
    }
}

/// What a call would be told now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Go.
    Go,
    /// Go, as the one probe.
    Probe,
    /// Not now.
    Wait {
        /// When to ask again; none while a probe is out or the breaker is forced open.
        until: Option<Timestamp>,
    },
}

/// What must survive a restart. Counts do not: they are gathered again within seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The earliest time of a probe; none when closed. A probe that is out is not kept.
    pub open_until: Option<Timestamp>,
    /// How often it has opened and closed.
    pub generation: u64,
    /// The current open time, before jitter: doubled by each failed probe.
    pub open_for: Duration,
    /// The first failure since the last success.
    pub failing_since: Option<Timestamp>,
    /// The state set by hand, if any.
    pub forced: Option<Forced>,
    /// When the state was entered.
    pub since: Timestamp,
}

/// What a result has changed; each is told once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was closed and has opened.
    Opened {
        /// The earliest time of a probe.
        until: Timestamp,
    },
    /// A probe succeeded.
    Closed,
    /// A probe failed.
    Reopened {
        /// The earliest time of the next probe.
        until: Timestamp,
    },
}
