//! Small numbers that stand for enums in stored rows.
//!
//! A number once given keeps its meaning for ever.
//! Never: derive one from the order of an enum.

use domain::attempt::{Cut, FailureKind};
use domain::classify::Class;
use domain::dead_letter::DeadReason;
use domain::delivery::{CancelReason, Trigger};
use domain::endpoint::{Disabled, Ordering};
use domain::figures::Counted;
use domain::policy::Strategy;
use resilience::{Forced, RetryAfterMode, Term};

use super::fault::unreadable;
use crate::StoreError;
use crate::history::Standing;
use crate::tasks::{TaskKind, TaskStatus};

/// An enum that is stored as a small number.
pub(crate) trait Code: Sized + Copy + PartialEq + 'static {
    /// Every value and its number.
    const CODES: &'static [(Self, i64)];

    /// The number to store.
    fn code(self) -> i64 {
        Self::CODES.iter().find(|(value, _)| *value == self).map_or(-1, |(_, code)| *code)
    }

    /// The value of a stored number.
    fn of(code: i64) -> Result<Self, StoreError> {
        let found = Self::CODES.iter().find(|(_, stored)| *stored == code);
        found.map(|(value, _)| *value).ok_or_else(unreadable)
    }
}

impl Code for FailureKind {
    const CODES: &'static [(Self, i64)] = &[
        (Self::Dns, 1),
        (Self::Connect, 2),
        (Self::Tls, 3),
        (Self::Reset, 4),
        (Self::Timeout, 5),
        (Self::Forbidden, 6),
        (Self::Internal, 7),
    ];
}

impl Code for Cut {
    const CODES: &'static [(Self, i64)] = &[(Self::Cap, 1), (Self::Deadline, 2), (Self::Reset, 3)];
}

impl Code for Trigger {
    const CODES: &'static [(Self, i64)] =
        &[(Self::Scheduled, 0), (Self::Manual, 1), (Self::Replay, 2), (Self::Asked, 3)];
}

impl Code for Term {
    const CODES: &'static [(Self, i64)] =
        &[(Self::Backoff, 1), (Self::RetryAfter, 2), (Self::AgeLimit, 3)];
}

impl Code for DeadReason {
    const CODES: &'static [(Self, i64)] = &[
        (Self::Rejected, 1),
        (Self::Gone, 2),
        (Self::ForbiddenTarget, 3),
        (Self::Exhausted, 4),
        (Self::Expired, 5),
        (Self::Poisonous, 6),
        (Self::PayloadGone, 7),
    ];
}

impl Code for CancelReason {
    const CODES: &'static [(Self, i64)] = &[(Self::EndpointDeleted, 1), (Self::Superseded, 2)];
}

impl Code for Disabled {
    const CODES: &'static [(Self, i64)] = &[(Self::ByOwner, 1), (Self::Gone, 2)];
}

impl Code for Ordering {
    const CODES: &'static [(Self, i64)] =
        &[(Self::Unordered, 0), (Self::Ordered, 1), (Self::Strict, 2)];
}

impl Code for Strategy {
    const CODES: &'static [(Self, i64)] = &[
        (Self::Exponential, 1),
        (Self::Fixed, 2),
        (Self::Linear, 3),
        (Self::FullJitter, 4),
        (Self::DecorrelatedJitter, 5),
        (Self::Schedule, 6),
    ];
}

impl Code for RetryAfterMode {
    const CODES: &'static [(Self, i64)] =
        &[(Self::Exact, 1), (Self::AtLeast, 2), (Self::Ignore, 3)];
}

impl Code for Forced {
    const CODES: &'static [(Self, i64)] = &[(Self::Open, 1), (Self::Closed, 2)];
}

impl Code for Standing {
    const CODES: &'static [(Self, i64)] = &[
        (Self::Delivered, 1),
        (Self::Untried, 2),
        (Self::Dead, 3),
        (Self::Retried, 4),
        (Self::Cancelled, 5),
    ];
}

impl Code for TaskKind {
    const CODES: &'static [(Self, i64)] = &[
        (Self::Recover, 1),
        (Self::Missing, 2),
        (Self::Again, 3),
        (Self::DeadLetters, 4),
        (Self::Purge, 5),
        (Self::Outage, 6),
    ];
}

impl Code for TaskStatus {
    const CODES: &'static [(Self, i64)] = &[
        (Self::Running, 1),
        (Self::Finished, 2),
        (Self::Failed, 3),
        (Self::Cancelled, 4),
        (Self::Stopped, 5),
    ];
}

impl Code for Counted {
    const CODES: &'static [(Self, i64)] = &[
        (Self::Sent(Class::Success), 1),
        (Self::Sent(Class::Throttled), 2),
        (Self::Sent(Class::Transient), 3),
        (Self::Sent(Class::Gone), 4),
        (Self::Sent(Class::Rejected), 5),
        (Self::Sent(Class::Forbidden), 6),
        (Self::Sent(Class::Internal), 7),
        (Self::Dead(DeadReason::Rejected), 11),
        (Self::Dead(DeadReason::Gone), 12),
        (Self::Dead(DeadReason::ForbiddenTarget), 13),
        (Self::Dead(DeadReason::Exhausted), 14),
        (Self::Dead(DeadReason::Expired), 15),
        (Self::Dead(DeadReason::Poisonous), 16),
        (Self::Dead(DeadReason::PayloadGone), 17),
        (Self::Accepted, 21),
    ];
}

/// States of a closed delivery, as stored.
pub(crate) mod closed {
    /// Dead, and in the lists.
    pub(crate) const DEAD: i64 = 1;
    /// Cancelled.
    pub(crate) const CANCELLED: i64 = 2;
    /// Dead, and deleted from the lists.
    pub(crate) const DISCARDED: i64 = 3;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Code + std::fmt::Debug>(all: &[T]) {
        assert_eq!(all.len(), T::CODES.len());
        for value in all {
            assert_eq!(T::of(value.code()).ok(), Some(*value));
        }
        assert!(T::of(-1).is_err());
    }

    #[test]
    fn every_value_has_its_number() {
        check(&FailureKind::ALL);
        check(&DeadReason::ALL);
        check(&CancelReason::ALL);
        check(&Strategy::ALL);
        check(&Trigger::ALL);
        check(&TaskKind::ALL);
        check(&TaskStatus::ALL);
        let sent = Class::ALL.map(Counted::Sent);
        check(&[&sent[..], &DeadReason::ALL.map(Counted::Dead), &[Counted::Accepted]].concat());
    }
}
