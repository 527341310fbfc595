//! When a breaker opens, for how long, and what closes it again.
//!
//! Each part is a value with defaults; [`Rules`] holds them together and checks what must hold.
//! Never: state.

use std::time::Duration;

use crate::error::ConfigError;
use crate::share::Share;

/// The most consecutive failures that can be asked for; it bounds the keys a breaker remembers.
pub(super) const FAILURES_MAX: u32 = 1_000;
/// The longest window of calls; each call kept takes 2 bytes.
const WINDOW_CALLS_MAX: u32 = 10_000;
/// The most calls that a share can wait for, whatever the window.
pub(super) const CALLS_MIN_MAX: u32 = 1_000_000;
/// The shortest time that can be asked for. Clocks count in microseconds: what is shorter than one
/// is over at once, and what is not much longer is over before anyone looks.
pub(crate) const SPAN_MIN: Duration = Duration::from_millis(1);
/// The rule about it.
pub(crate) const SPAN_RULE: &str = "must be at least 1 ms";
/// The most probes that can be out at once.
const PROBES_MAX: u32 = 64;

/// Which calls a rate is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Those of the time just past, to a twelfth of it.
    Time(Duration),
    /// The last so many, whenever they were.
    Calls(u32),
}

impl Window {
    /// Calls of the last `span`.
    pub const fn time(span: Duration) -> Self {
        Self::Time(span)
    }

    /// The last `count` calls.
    pub const fn calls(count: u32) -> Self {
        Self::Calls(count)
    }
}

/// A call that takes longer is slow; from this share of slow calls on the breaker opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slow {
    /// Longer than this is slow.
    pub(crate) longer_than: Duration,
    /// The share of slow calls that opens it.
    pub(crate) share: Share,
}

/// The part that looks at shares of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// The share of failures that opens it.
    pub(crate) share: Share,
    /// The share counts only from this many calls on.
    pub(crate) calls_min: u32,
    /// Which calls.
    pub(crate) window: Window,
    /// Slow calls, over the same window.
    pub(crate) slow: Option<Slow>,
}

/// What opens a breaker: failures in a row, a share of failures, or slow calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trip {
    /// Failures in a row that open it; none: only the share counts.
    pub(crate) failures: Option<u32>,
    /// How many different keys those failures must involve.
    pub(crate) keys_min: u32,
    /// Shares; none: only failures in a row count.
    pub(crate) rate: Option<Rate>,
    /// An option of the share that was set without one.
    pub(super) misplaced: Option<&'static str>,
}

impl Trip {
    /// Opens after `failures` in a row.
    pub const fn consecutive(failures: u32) -> Self {
        Self { failures: Some(failures), keys_min: 1, rate: None, misplaced: None }
    }

    /// Opens when `share` (above 0, at most 1) of the calls fail: by default of the last 30 s, from
    /// 20 calls on.
    pub fn failure_rate(share: f64) -> Self {
        let window = Window::Time(Duration::from_secs(30));
        let rate = Rate { share: Share::of(share), calls_min: 20, window, slow: None };
        Self { failures: None, keys_min: 1, rate: Some(rate), misplaced: None }
    }

    /// Which calls the share is taken over: a time of at least 1 ms, or 1 to 10,000 calls.
    #[must_use]
    pub const fn window(mut self, window: Window) -> Self {
        match &mut self.rate {
            Some(rate) => rate.window = window,
            None => self.misplaced = Some("trip.window"),
        }
        self
    }

    /// The share counts only from `calls` in the window on; 20 if not set. No more than the window
    /// can hold: its calls, or one for each microsecond of its time, up to 1,000,000.
    #[must_use]
    pub const fn min_calls(mut self, calls: u32) -> Self {
        match &mut self.rate {
            Some(rate) => rate.calls_min = calls,
            None => self.misplaced = Some("trip.min_calls"),
        }
        self
    }

    /// Opens also when `share` of the calls in the window take longer than `longer_than`.
    #[must_use]
    pub fn or_slow(mut self, longer_than: Duration, share: f64) -> Self {
        match &mut self.rate {
            Some(rate) => rate.slow = Some(Slow { longer_than, share: Share::of(share) }),
            None => self.misplaced = Some("trip.or_slow"),
        }
        self
    }

    /// Opens also after `failures` in a row.
    #[must_use]
    pub const fn or_consecutive(mut self, failures: u32) -> Self {
        self.failures = Some(failures);
        self
    }

    /// Failures in a row count only when they involve `keys` different keys. For a
    /// [`Breaker`](crate::Breaker), which is told the key of each failure; a call under a
    /// [`CircuitBreaker`](crate::CircuitBreaker) has none.
    #[must_use]
    pub const fn distinct_keys(mut self, keys: u32) -> Self {
        self.keys_min = keys;
        self
    }

    /// Whether `took` is slow.
    pub(crate) fn is_slow(&self, took: Duration) -> bool {
        self.slow().is_some_and(|slow| took > slow.longer_than)
    }

    /// The rule about slow calls.
    pub(crate) fn slow(&self) -> Option<Slow> {
        self.rate.and_then(|rate| rate.slow)
    }

    fn validate(&self) -> Result<(), ConfigError> {
        if let Some(option) = self.misplaced {
            return ConfigError::unless(false, option, "must follow failure_rate");
        }
        let some = self.failures.is_some() || self.rate.is_some();
        ConfigError::unless(some, "trip", "must be failures in a row or a share of failures")?;
        const KEYS: &str = "trip.distinct_keys";
        ConfigError::unless(self.keys_min >= 1, KEYS, "must be at least 1")?;
        match self.failures {
            Some(failures) => {
                let bounded = (1..=FAILURES_MAX).contains(&failures);
                ConfigError::unless(bounded, self.in_a_row(), "must be from 1 to 1000")?;
                let holds = self.keys_min <= failures;
                ConfigError::unless(holds, KEYS, "must not be above the failures in a row")?;
            }
            None => {
                let alone = self.keys_min == 1;
                ConfigError::unless(alone, KEYS, "must go with consecutive or or_consecutive")?;
            }
        }
        self.rate.map_or(Ok(()), |rate| rate.validate())
    }

    /// The option that set the failures in a row.
    const fn in_a_row(&self) -> &'static str {
        if self.rate.is_some() { "trip.or_consecutive" } else { "trip.consecutive" }
    }
}

impl Rate {
    fn validate(&self) -> Result<(), ConfigError> {
        const SHARE: &str = "must be above 0 and at most 1";
        const MIN_CALLS: &str = "trip.min_calls";
        ConfigError::unless(self.share.is_valid(), "trip.failure_rate", SHARE)?;
        let bounded = (1..=CALLS_MIN_MAX).contains(&self.calls_min);
        ConfigError::unless(bounded, MIN_CALLS, "must be from 1 to 1000000")?;
        match self.window {
            Window::Time(span) => {
                ConfigError::unless(span >= SPAN_MIN, "trip.window", SPAN_RULE)?;
                let holds = u128::from(self.calls_min) <= span.as_micros();
                let rule = "must not be above one for each microsecond of the window";
                ConfigError::unless(holds, MIN_CALLS, rule)?;
            }
            Window::Calls(calls) => {
                let bounded = (1..=WINDOW_CALLS_MAX).contains(&calls);
                ConfigError::unless(bounded, "trip.window", "must be from 1 to 10000 calls")?;
                let holds = self.calls_min <= calls;
                let rule = "must not be above the calls of the window; it is 20 if not set";
                ConfigError::unless(holds, MIN_CALLS, rule)?;
            }
        }
        let Some(slow) = self.slow else { return Ok(()) };
        ConfigError::unless(slow.share.is_valid(), "trip.or_slow.share", SHARE)?;
        let above = !slow.longer_than.is_zero();
        ConfigError::unless(above, "trip.or_slow.longer_than", "must be above zero")
    }
}

/// How long a breaker stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFor {
    /// The first open time; at least 1 ms.
    pub first: Duration,
    /// Each failed probe doubles it, up to this.
    pub max: Duration,
    /// How far below the open time a wait may be drawn.
    pub jitter: Share,
    /// Whether the first opening is drawn too, or only those after a failed probe.
    pub jitter_first: bool,
}

impl OpenFor {
    /// Always `span`.
    pub const fn fixed(span: Duration) -> Self {
        Self::backoff(span, span)
    }

    /// `first`, then twice as long after each failed probe, at most `max`.
    pub const fn backoff(first: Duration, max: Duration) -> Self {
        Self { first, max, jitter: Share::NONE, jitter_first: true }
    }

    /// Draws each wait from `(1 - share) × open time` to the open time, so that many breakers that
    /// opened together do not probe in step.
    #[must_use]
    pub fn jitter(mut self, share: f64) -> Self {
        self.jitter = Share::of(share);
        self
    }

    fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless(self.first >= SPAN_MIN, "open_for", SPAN_RULE)?;
        let grows = self.max >= self.first;
        ConfigError::unless(grows, "open_for.max", "must not be below open_for.first")?;
        let jitter = self.jitter == Share::NONE || self.jitter.is_valid();
        ConfigError::unless(jitter, "open_for.jitter", "must be from 0 to 1")
    }
}

/// What happens when the open time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HalfOpen {
    /// How many probes may be out at once.
    pub probes: u32,
    /// How many of them must succeed before it closes.
    pub close_after: u32,
    /// A probe that is out for longer is given up and its slot is free again; none: it is waited
    /// for as long as it takes.
    pub max_wait: Option<Duration>,
}

impl HalfOpen {
    /// At most `probes` at once; one success closes.
    pub const fn probes(probes: u32) -> Self {
        Self { probes, close_after: 1, max_wait: None }
    }

    /// Closes after `successes` of probes.
    #[must_use]
    pub const fn close_after(mut self, successes: u32) -> Self {
        self.close_after = successes;
        self
    }

    /// Gives a probe up after `wait`, which is at least 1 ms.
    #[must_use]
    pub const fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = Some(wait);
        self
    }

    fn validate(&self) -> Result<(), ConfigError> {
        let probes = (1..=PROBES_MAX).contains(&self.probes);
        ConfigError::unless(probes, "half_open.probes", "must be from 1 to 64")?;
        let close_after = (1..=FAILURES_MAX).contains(&self.close_after);
        ConfigError::unless(close_after, "half_open.close_after", "must be from 1 to 1000")?;
        let waits = self.max_wait.is_none_or(|wait| wait >= SPAN_MIN);
        ConfigError::unless(waits, "half_open.max_wait", SPAN_RULE)
    }
}

/// The rules of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Off: every call is let through and nothing opens.
    pub enabled: bool,
    /// What opens it.
    pub trip: Trip,
    /// For how long.
    pub open_for: OpenFor,
    /// What then closes it.
    pub half_open: HalfOpen,
}

impl Default for Rules {
    /// Five failures in a row, open for 60 s, one probe, one success.
    fn default() -> Self {
        Self {
            enabled: true,
            trip: Trip::consecutive(5),
            open_for: OpenFor::fixed(Duration::from_secs(60)),
            half_open: HalfOpen::probes(1),
        }
    }
}

impl Rules {
    /// Checks every part and names the first option that breaks a rule.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.trip.validate()?;
        self.open_for.validate()?;
        self.half_open.validate()
    }

    /// Whether results matter only when one has failed: nothing is gathered while all is well.
    pub(crate) const fn forgets_successes(&self) -> bool {
        self.trip.rate.is_none()
    }

    /// Whether it matters when an ordinary call succeeded: what is counted is forgotten by time.
    pub(crate) fn dates_successes(&self) -> bool {
        self.trip.rate.is_some_and(|rate| matches!(rate.window, Window::Time(_)))
    }
}

#[cfg(test)]
mod tests;
