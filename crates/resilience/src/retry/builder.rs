//! A retry policy, option by option.
//!
//! Every option has a default; [`RetryBuilder::build`] checks them together and names the first
//! that breaks a rule.
//! Never: panic on an option, correct one silently.

use std::sync::Arc;
use std::time::Duration;

use super::RetryPolicy;
use super::decide::Waits;
use super::hint::RetryAfterRule;
use super::predicate::{Replay, RetryPredicate};
use super::session::Retry;
use super::settings::{Settings, Shape};
use crate::backoff::{Backoff, Factor, Jitter};
use crate::budget::RetryBudget;
use crate::error::ConfigError;
use crate::seeds::Seeds;

/// Calls in all, unless told otherwise.
const CALLS: u32 = 3;
/// The longest wait of a growing sequence, unless told otherwise.
const CAP: Duration = Duration::from_secs(30);

impl RetryPolicy {
    /// Waits `base`, then twice as long each time, at most 30 s.
    pub const fn exponential(base: Duration) -> RetryBuilder {
        RetryBuilder::new("exponential", Shape::Backoff(Backoff::Exponential { base, cap: CAP }))
    }

    /// Waits `base` each time.
    pub const fn fixed(base: Duration) -> RetryBuilder {
        RetryBuilder::new("fixed", Shape::Backoff(Backoff::Fixed { base }))
    }

    /// Waits `step`, then `step` longer each time, at most 30 s.
    pub const fn linear(step: Duration) -> RetryBuilder {
        RetryBuilder::new("linear", Shape::Backoff(Backoff::Linear { base: step, cap: CAP }))
    }

    /// Waits anything from zero to `base`, `2 × base`, `4 × base` …, at most 30 s.
    pub const fn full_jitter(base: Duration) -> RetryBuilder {
        RetryBuilder::new("full_jitter", Shape::Backoff(Backoff::FullJitter { base, cap: CAP }))
    }

    /// Waits anything from `base` to three times the last wait, at most 30 s.
    pub const fn decorrelated_jitter(base: Duration) -> RetryBuilder {
        RetryBuilder::new(
            "decorrelated_jitter",
            Shape::Backoff(Backoff::DecorrelatedJitter { base, cap: CAP }),
        )
    }

    /// Waits as listed, and makes one call more than there are waits.
    pub fn schedule(delays: impl IntoIterator<Item = Duration>) -> RetryBuilder {
        let delays: Vec<_> = delays.into_iter().collect();
        let calls = u32::try_from(delays.len()).unwrap_or(u32::MAX).saturating_add(1);
        RetryBuilder::new("schedule", Shape::Backoff(Backoff::Schedule { delays })).max_calls(calls)
    }

    /// Waits by a rule of your own.
    pub fn custom(waits: impl Waits + 'static) -> RetryBuilder {
        RetryBuilder::new("custom", Shape::Custom(Arc::new(waits)))
    }
}

/// What a [`Retry`] is built from.
#[must_use = "nothing is built before build()"]
pub struct RetryBuilder {
    /// The constructor that brought the waits.
    named: &'static str,
    shape: Shape,
    factor: Option<Factor>,
    cap: Option<Duration>,
    jitter: Jitter,
    calls: u32,
    elapsed: Option<Duration>,
    timed: bool,
    hint: RetryAfterRule,
    replay: Replay,
    predicate: Option<Arc<dyn RetryPredicate>>,
    budget: Option<RetryBudget>,
    seed: Option<u64>,
}

impl RetryBuilder {
    const fn new(named: &'static str, shape: Shape) -> Self {
        Self {
            named,
            shape,
            factor: None,
            cap: None,
            jitter: Jitter::None,
            calls: CALLS,
            elapsed: None,
            timed: false,
            hint: RetryAfterRule::exact(),
            replay: Replay::IdempotentOrKeyed,
            predicate: None,
            budget: None,
            seed: None,
        }
    }

    /// By what each wait of an exponential is longer than the one before; 2 if not set.
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = Some(Factor::of(factor));
        self
    }

    /// The longest wait; 30 s if not set. Only for waits that grow: `build()` refuses it for those
    /// of `fixed` and `schedule`, where each wait is what you say, and for `custom`. How long a
    /// receiver's own wish is followed is bounded by [`RetryAfterRule::cap`] in any case.
    pub fn cap(mut self, longest: Duration) -> Self {
        self.cap = Some(longest);
        self
    }

    /// How each wait is spread; not at all if not set.
    pub const fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// All calls together, the first included; 3 if not set.
    pub const fn max_calls(mut self, calls: u32) -> Self {
        self.calls = calls;
        self
    }

    /// Calls after the first; `max_retries(2)` is `max_calls(3)`.
    pub const fn max_retries(self, retries: u32) -> Self {
        self.max_calls(retries.saturating_add(1))
    }

    /// Wall time from the first call on, waits included. A wait that does not fit is not begun. No
    /// limit if not set.
    pub const fn max_elapsed(mut self, elapsed: Duration) -> Self {
        self.elapsed = Some(elapsed);
        self
    }

    /// A [`Runner`](super::Runner) measures the time for [`RetryInfo`](super::RetryInfo), though no
    /// limit needs it; two looks at the clock a call.
    pub const fn timed(mut self) -> Self {
        self.timed = true;
        self
    }

    /// What the receiver's `Retry-After` does; `RetryAfterRule::exact()` if not set.
    pub const fn retry_after(mut self, rule: RetryAfterRule) -> Self {
        self.hint = rule;
        self
    }

    /// Which calls may be made twice; those that are idempotent or carry a key if not set.
    pub const fn replay(mut self, replay: Replay) -> Self {
        self.replay = replay;
        self
    }

    /// Decides in place of the class whether a failure is worth a retry: a function of the
    /// [`Outcome`](crate::classify::Outcome), or a type.
    pub fn retry_if(mut self, predicate: impl RetryPredicate + 'static) -> Self {
        self.predicate = Some(Arc::new(predicate));
        self
    }

    /// Every retry is paid for from this budget; give the same one, cloned, to all policies of one
    /// receiver. None if not set.
    pub fn budget(mut self, budget: RetryBudget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Seeds the sessions' chance, so that a run can be repeated; from the system if not set.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Checks all options and gives the policy.
    pub fn build(self) -> Result<Retry, ConfigError> {
        let shape = self.shape()?;
        ConfigError::unless(self.calls >= 1, "max_calls", "must be at least 1")?;
        let elapsed = self.elapsed.is_none_or(|elapsed| !elapsed.is_zero());
        ConfigError::unless(elapsed, "max_elapsed", "must be above zero")?;
        self.hint.validate()?;
        self.budget.as_ref().map_or(Ok(()), RetryBudget::validate)?;
        Ok(Retry::new(Settings {
            shape,
            calls: self.calls,
            elapsed: self.elapsed,
            timed: self.timed,
            hint: self.hint,
            replay: self.replay,
            predicate: self.predicate,
            budget: self.budget,
            seeds: Seeds::new(self.seed)?,
        }))
    }

    /// The waits with factor, cap and jitter in.
    fn shape(&self) -> Result<Shape, ConfigError> {
        let Shape::Backoff(backoff) = self.shape.clone() else {
            const RULE: &str = "must not be set where waits are custom";
            ConfigError::unless(self.factor.is_none(), "factor", RULE)?;
            ConfigError::unless(self.cap.is_none(), "cap", RULE)?;
            ConfigError::unless(self.jitter == Jitter::None, "jitter", RULE)?;
            return Ok(self.shape.clone());
        };
        let backoff = self.grown(self.capped(backoff)?)?;
        let backoff = match self.jitter {
            Jitter::None => backoff,
            jitter => Backoff::Spread { of: Box::new(backoff), jitter },
        };
        backoff.validate().map_err(|fault| self.as_written(fault))?;
        let waits = !self.repeats_nothing();
        ConfigError::unless(
            waits,
            "schedule",
            "must not end with a wait of nothing that is repeated",
        )?;
        Ok(Shape::Backoff(backoff))
    }

    /// Whether a schedule ends with a wait of nothing that would stand before all further calls.
    fn repeats_nothing(&self) -> bool {
        let Shape::Backoff(Backoff::Schedule { delays }) = &self.shape else { return false };
        let retries = usize::try_from(self.calls.saturating_sub(1)).unwrap_or(usize::MAX);
        delays.last() == Some(&Duration::ZERO) && retries > delays.len()
    }

    /// A fault of the waits, under the name of the option that was called.
    fn as_written(&self, fault: ConfigError) -> ConfigError {
        match (fault.option, self.cap) {
            ("backoff.base" | "backoff.delays", _) => ConfigError::new(self.named, fault.rule),
            ("backoff.cap", Some(_)) => ConfigError::new("cap", "must not be below the first wait"),
            ("backoff.cap", None) => {
                ConfigError::new(self.named, "must not be above 30 s where no cap is set")
            }
            _ => fault,
        }
    }

    fn capped(&self, mut backoff: Backoff) -> Result<Backoff, ConfigError> {
        let Some(longest) = self.cap else { return Ok(backoff) };
        match &mut backoff {
            Backoff::Linear { cap, .. }
            | Backoff::Exponential { cap, .. }
            | Backoff::FullJitter { cap, .. }
            | Backoff::DecorrelatedJitter { cap, .. }
            | Backoff::Geometric { cap, .. } => *cap = longest,
            Backoff::Fixed { .. } | Backoff::Schedule { .. } | Backoff::Spread { .. } => {
                ConfigError::unless(false, "cap", "must not be set where waits do not grow")?;
            }
        }
        Ok(backoff)
    }

    fn grown(&self, backoff: Backoff) -> Result<Backoff, ConfigError> {
        match (backoff, self.factor) {
            (Backoff::Exponential { base, cap }, Some(factor)) => {
                Ok(Backoff::Geometric { base, factor, cap })
            }
            (backoff, None) => Ok(backoff),
            (_, Some(_)) => {
                Err(ConfigError::new("factor", "must not be set where waits are not exponential"))
            }
        }
    }
}
