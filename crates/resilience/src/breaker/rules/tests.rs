//! Each rule, broken once.

use super::*;
use crate::breaker::Config;

const MILLISECOND: Duration = Duration::from_millis(1);

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[test]
fn defaults_and_the_engines_settings_are_valid() {
    assert_eq!(Rules::default().validate(), Ok(()));
    assert_eq!(Rules::from(Config::default()).validate(), Ok(()));
}

#[test]
fn the_broken_option_is_named() {
    let rate = Trip::failure_rate(0.5);
    let trips = [
        (Trip { failures: None, ..Trip::consecutive(1) }, "trip"),
        (Trip::consecutive(0), "trip.consecutive"),
        (Trip::consecutive(1_001), "trip.consecutive"),
        (rate.or_consecutive(0), "trip.or_consecutive"),
        (Trip::consecutive(3).distinct_keys(0), "trip.distinct_keys"),
        (Trip::consecutive(3).distinct_keys(4), "trip.distinct_keys"),
        (rate.distinct_keys(2), "trip.distinct_keys"),
        (Trip::failure_rate(0.0), "trip.failure_rate"),
        (Trip::failure_rate(f64::NAN), "trip.failure_rate"),
        (Trip::failure_rate(1.5), "trip.failure_rate"),
        (rate.min_calls(0), "trip.min_calls"),
        (rate.min_calls(u32::MAX), "trip.min_calls"),
        (rate.min_calls(1_001).window(Window::time(MILLISECOND)), "trip.min_calls"),
        (rate.window(Window::time(Duration::ZERO)), "trip.window"),
        (rate.window(Window::time(MILLISECOND / 2)), "trip.window"),
        (rate.window(Window::calls(0)), "trip.window"),
        (rate.window(Window::calls(10_001)), "trip.window"),
        (rate.window(Window::calls(19)), "trip.min_calls"),
        (rate.or_slow(Duration::ZERO, 0.5), "trip.or_slow.longer_than"),
        (rate.or_slow(secs(1), 0.0), "trip.or_slow.share"),
        (Trip::consecutive(3).window(Window::calls(9)), "trip.window"),
        (Trip::consecutive(3).min_calls(9), "trip.min_calls"),
        (Trip::consecutive(3).or_slow(secs(1), 0.5), "trip.or_slow"),
    ];
    for (trip, option) in trips {
        let rules = Rules { trip, ..Rules::default() };
        assert_eq!(rules.validate().unwrap_err().option, option, "{trip:?}");
    }
    let opens = [
        (OpenFor::fixed(Duration::ZERO), "open_for"),
        (OpenFor::fixed(Duration::from_nanos(1)), "open_for"),
        (OpenFor::backoff(secs(2), secs(1)), "open_for.max"),
        (OpenFor::fixed(secs(2)).jitter(1.1), "open_for.jitter"),
        (OpenFor::fixed(secs(2)).jitter(-0.1), "open_for.jitter"),
        (OpenFor::fixed(secs(2)).jitter(f64::NAN), "open_for.jitter"),
    ];
    for (open_for, option) in opens {
        let rules = Rules { open_for, ..Rules::default() };
        assert_eq!(rules.validate().unwrap_err().option, option, "{open_for:?}");
    }
    let halves = [
        (HalfOpen::probes(0), "half_open.probes"),
        (HalfOpen::probes(65), "half_open.probes"),
        (HalfOpen::probes(1).close_after(0), "half_open.close_after"),
        (HalfOpen::probes(1).max_wait(Duration::ZERO), "half_open.max_wait"),
        (HalfOpen::probes(1).max_wait(Duration::from_nanos(1)), "half_open.max_wait"),
    ];
    for (half_open, option) in halves {
        let rules = Rules { half_open, ..Rules::default() };
        assert_eq!(rules.validate().unwrap_err().option, option, "{half_open:?}");
    }
}

#[test]
fn the_most_that_a_window_can_hold_may_be_asked_for() {
    let rate = Trip::failure_rate(0.5);
    let trips = [
        rate.min_calls(1_000).window(Window::time(MILLISECOND)),
        rate.min_calls(1_000_000).window(Window::time(secs(1))),
        rate.min_calls(10_000).window(Window::calls(10_000)),
        rate.or_consecutive(2).distinct_keys(2),
    ];
    for trip in trips {
        assert_eq!(Rules { trip, ..Rules::default() }.validate(), Ok(()), "{trip:?}");
    }
}
