//! Each rule, broken once.

use super::*;
use crate::breaker::Config;

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
        (Trip::consecutive(0), "failures"),
        (Trip::consecutive(1_001), "failures"),
        (Trip::consecutive(3).distinct_keys(0), "keys_min"),
        (Trip::consecutive(3).distinct_keys(4), "keys_min"),
        (Trip::failure_rate(0.0), "failure_rate"),
        (Trip::failure_rate(f64::NAN), "failure_rate"),
        (Trip::failure_rate(1.5), "failure_rate"),
        (rate.min_calls(0), "min_calls"),
        (rate.window(Window::time(Duration::ZERO)), "window"),
        (rate.window(Window::calls(0)), "window"),
        (rate.window(Window::calls(10_001)), "window"),
        (rate.window(Window::calls(19)), "min_calls"),
        (rate.or_slow(Duration::ZERO, 0.5), "or_slow.longer_than"),
        (rate.or_slow(secs(1), 0.0), "or_slow.share"),
        (Trip::consecutive(3).window(Window::calls(9)), "window"),
        (Trip::consecutive(3).min_calls(9), "min_calls"),
        (Trip::consecutive(3).or_slow(secs(1), 0.5), "or_slow"),
    ];
    for (trip, field) in trips {
        let rules = Rules { trip, ..Rules::default() };
        assert_eq!(rules.validate().unwrap_err().option, field, "{trip:?}");
    }
    let opens = [
        (OpenFor::fixed(Duration::ZERO), "open_for"),
        (OpenFor::backoff(secs(2), secs(1)), "open_for_max"),
        (OpenFor::fixed(secs(2)).jitter(1.1), "open_for.jitter"),
        (OpenFor::fixed(secs(2)).jitter(-0.1), "open_for.jitter"),
        (OpenFor::fixed(secs(2)).jitter(f64::NAN), "open_for.jitter"),
    ];
    for (open_for, field) in opens {
        let rules = Rules { open_for, ..Rules::default() };
        assert_eq!(rules.validate().unwrap_err().option, field, "{open_for:?}");
    }
    let halves = [
        (HalfOpen::probes(0), "half_open.probes"),
        (HalfOpen::probes(65), "half_open.probes"),
        (HalfOpen::probes(1).close_after(0), "half_open.close_after"),
        (HalfOpen::probes(1).max_wait(Duration::ZERO), "half_open.max_wait"),
    ];
    for (half_open, field) in halves {
        let rules = Rules { half_open, ..Rules::default() };
        assert_eq!(rules.validate().unwrap_err().option, field, "{half_open:?}");
    }
}
