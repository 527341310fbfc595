//! Points in time and the one door through which the time of day comes in.
//!
//! A [`Timestamp`] is whole microseconds since the Unix epoch, UTC; all arithmetic saturates.
//! Never: sleep, format, know time zones. Only [`SystemClock`] and [`SteadyClock`] read the
//! machine's clocks, and neither exists where there is none: on a bare WebAssembly host.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// A point in time: microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);
    /// Later than anything that happens.
    pub const MAX: Self = Self(i64::MAX);

    /// From microseconds since the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// From whole seconds since the epoch.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Later by `span`, at most [`Timestamp::MAX`].
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }

    /// Earlier by `span`.
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(micros(span)))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// Where the time of day comes from.
pub trait Clock: Send + Sync {
    /// The wall clock; it may step in either direction.
    fn now(&self) -> Timestamp;
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

/// The machine's wall clock.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    fn now(&self) -> Timestamp {
        let now = std::time::SystemTime::now();
        match now.duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => Timestamp(micros(after)),
            Err(before) => Timestamp(-micros(before.duration())),
        }
    }
}

/// The time of day when it was made, moved on by a clock that is never set: it does not step. It
/// may stand while the machine sleeps.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
#[derive(Clone, Copy, Debug)]
pub struct SteadyClock {
    started: Timestamp,
    instant: std::time::Instant,
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
impl SteadyClock {
    /// Starts at the machine's time of day.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the steady clock")]
    pub fn new() -> Self {
        Self { started: SystemClock.now(), instant: std::time::Instant::now() }
    }
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
impl Default for SteadyClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        self.started.plus(self.instant.elapsed())
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `at`.
    pub const fn new(at: Timestamp) -> Self {
        Self(AtomicI64::new(at.0))
    }

    /// Sets the clock, forwards or back.
    pub fn set(&self, at: Timestamp) {
        self.0.store(at.0, Ordering::SeqCst);
    }

    /// Moves the clock forwards.
    pub fn advance(&self, span: Duration) {
        self.0.fetch_add(micros(span), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::MAX.plus(Duration::from_secs(1)), Timestamp::MAX);
        assert_eq!(Timestamp::EPOCH.plus(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::EPOCH.since(Timestamp::MAX), Duration::ZERO);
        assert_eq!(Timestamp::from_secs(3).since(Timestamp::from_secs(1)), Duration::from_secs(2));
        assert_eq!(Timestamp::from_micros(-1).as_secs(), -1);
    }

    #[test]
    fn a_steady_clock_never_goes_back() {
        let clock = SteadyClock::new();
        let times: Vec<_> = (0..1_000).map(|_| clock.now()).collect();
        assert!(times.is_sorted());
        assert!(Arc::new(&clock).now() >= times[0]);
    }

    #[test]
    fn a_manual_clock_moves_only_when_moved() {
        let clock = ManualClock::new(Timestamp::from_secs(10));
        assert_eq!(clock.now(), Timestamp::from_secs(10));
        clock.advance(Duration::from_millis(1));
        assert_eq!(clock.now().as_micros(), 10_001_000);
        clock.set(Timestamp::from_secs(2));
        assert_eq!(clock.now(), Timestamp::from_secs(2));
    }
}
