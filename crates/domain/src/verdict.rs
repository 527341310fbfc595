//! The decision: what follows from an attempt.
//!
//! In: the facts of one send, its class, the policy, the row of work as it was before the send, the
//! time and a source of chance. Out: one of five verdicts, which `record` turns into rows.
//! Never: have an effect, read a clock, look at breakers, holds or other deliveries.

use std::time::Duration;

use resilience::{Chance, Next, RetryPolicy, Stop, Term, Timestamp, Tried};

use crate::attempt::Attempt;
use crate::classify::Class;
use crate::dead_letter::DeadReason;
use crate::delivery::{Pending, Trigger};
use crate::limits::AGE_GRACE;

/// What follows from an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A receiver has it.
    Delivered,
    /// It is sent again.
    Retry {
        /// Not before then; never past the age limit.
        due_at: Timestamp,
        /// How long that is from now; the next decision builds on it.
        delay: Duration,
        /// Which term set the delay, for the attempt's row.
        term: Term,
        /// Sends counted against the limit, this one included.
        budget_used: u32,
    },
    /// It is given up and becomes a dead letter.
    Dead(DeadReason),
    /// Our own fault: pending as it was, nothing counted.
    Stay,
    /// An extra send that failed: back to the state it had.
    Unchanged,
}

/// What is judged.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The facts.
    pub attempt: &'a Attempt,
    /// What they mean.
    pub class: Class,
    /// The endpoint's policy.
    pub policy: &'a RetryPolicy,
    /// The row of work as it was before this send.
    pub pending: &'a Pending,
    /// The time of the decision; a retry's delay runs from here.
    pub now: Timestamp,
}

/// Judges one attempt.
pub fn judge(case: &Case<'_>, chance: &mut dyn Chance) -> Verdict {
    match (case.class, case.attempt.trigger) {
        (Class::Success, _) => Verdict::Delivered,
        (Class::Internal, _) => Verdict::Stay,
        (_, Trigger::Manual) => Verdict::Unchanged,
        (Class::Gone, _) => Verdict::Dead(DeadReason::Gone),
        (Class::Rejected, _) => Verdict::Dead(DeadReason::Rejected),
        (Class::Forbidden, _) => Verdict::Dead(DeadReason::ForbiddenTarget),
        (Class::Throttled | Class::Transient, _) => again(case, chance),
    }
}

/// Whether a row that is read `now` is past its age and is closed instead of sent.
///
/// A row due before the limit and read after it is. The last try, scheduled at the limit itself, is
/// necessarily read after it and is still made, up to [`AGE_GRACE`] late.
pub fn expired(pending: &Pending, age_max: Duration, now: Timestamp) -> bool {
    let limit = pending.age_from.plus(age_max);
    if pending.due_at < limit { now > limit } else { now > pending.due_at.plus(AGE_GRACE) }
}

fn again(case: &Case<'_>, chance: &mut dyn Chance) -> Verdict {
    let budget_used = case.pending.budget_used.saturating_add(1);
    let tried = Tried {
        calls: budget_used,
        last_delay: case.pending.last_delay,
        begun: case.pending.age_from,
    };
    match case.policy.next(tried, case.attempt.retry_after(), case.now, chance) {
        Next::Again { at, delay, term } => Verdict::Retry { due_at: at, delay, term, budget_used },
        Next::Stop(Stop::Calls) => Verdict::Dead(DeadReason::Exhausted),
        Next::Stop(Stop::Age) => Verdict::Dead(DeadReason::Expired),
    }
}

#[cfg(test)]
mod tests;
