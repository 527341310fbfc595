//! The clock that a lease is kept by: it counts from the start of the machine, goes on while that
//! sleeps, and is never set.
//!
//! Never: the time of day.

use resilience::{Clock, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// Time since the machine was started.
pub(super) struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> Timestamp {
        let since = clock_gettime(ClockId::Boottime);
        Timestamp::from_secs(since.tv_sec)
            .plus(std::time::Duration::from_nanos(u64::try_from(since.tv_nsec).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on() {
        let first = BootClock.now();
        assert!(first > Timestamp::EPOCH && BootClock.now() >= first);
    }
}
