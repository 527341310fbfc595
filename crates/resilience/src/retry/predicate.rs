//! Which failures are worth a retry.
//!
//! Never: count, wait.

use crate::classify::Outcome;

/// Says whether a failure is worth a retry, in place of its class.
pub trait RetryPredicate: Send + Sync {
    /// Whether to try again after this.
    fn should_retry(&self, outcome: &Outcome<'_>) -> bool;
}

impl<F: Fn(&Outcome<'_>) -> bool + Send + Sync> RetryPredicate for F {
    fn should_retry(&self, outcome: &Outcome<'_>) -> bool {
        self(outcome)
    }
}

/// Which calls may be made twice although the first may have been acted on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replay {
    /// Those whose method is idempotent, and those with an idempotency key. Any other too where the
    /// first was certainly not sent.
    #[default]
    IdempotentOrKeyed,
    /// All.
    Always,
}

impl Replay {
    /// Whether this call may be made again.
    pub(super) const fn allows(self, outcome: &Outcome<'_>) -> bool {
        match self {
            Self::Always => true,
            Self::IdempotentOrKeyed => outcome.is_not_sent() || outcome.call.may_repeat(),
        }
    }
}
