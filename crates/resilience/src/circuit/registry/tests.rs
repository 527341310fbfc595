//! One breaker for each key, and a bound on their number.

use super::*;
use crate::breaker::rules::Trip;
use crate::classify::Vote;
use crate::clock::ManualClock;

fn registry(keys: usize) -> (Arc<ManualClock>, BreakerRegistry) {
    let clock = Arc::new(ManualClock::new(Timestamp::from_secs(1_000)));
    let own = Arc::clone(&clock);
    let template = move |key: &str| {
        CircuitBreaker::builder(key).trip(Trip::consecutive(1)).clock(Arc::clone(&own)).seed(1)
    };
    let registry = BreakerRegistry::new(Arc::clone(&clock), template).max_keys(keys);
    (clock, registry.idle_ttl(Duration::from_secs(60)))
}

#[test]
fn a_key_has_one_breaker_and_no_other_keys() {
    let (_, registry) = registry(10);
    registry.get("a").unwrap().try_acquire().unwrap().record(Vote::Failure);
    assert!(registry.clone().get("a").unwrap().try_acquire().is_err());
    assert!(registry.get("b").unwrap().try_acquire().is_ok());
    assert_eq!((registry.len(), registry.breakers().len()), (2, 2));
}

#[test]
fn their_number_is_bounded_and_open_ones_stay_longest() {
    let (clock, registry) = registry(32);
    registry.get("open").unwrap().try_acquire().unwrap().record(Vote::Failure);
    for n in 0..1_000 {
        clock.advance(Duration::from_millis(1));
        registry.get(&n.to_string()).unwrap();
        assert!(registry.len() <= 32);
    }
    assert!(registry.get("open").unwrap().try_acquire().is_err());
    assert!(registry.get("999").is_ok() && registry.len() > 24);
}

#[test]
fn what_is_idle_is_forgotten() {
    let (clock, registry) = registry(10);
    registry.get("a").unwrap().try_acquire().unwrap().record(Vote::Failure);
    for n in 0..5 {
        registry.get(&n.to_string()).unwrap();
    }
    clock.advance(Duration::from_secs(60));
    assert!(registry.get("a").unwrap().try_acquire().is_ok(), "a new one");
    assert_eq!(registry.len(), 1, "and the others went with it");
}

#[test]
fn a_bad_template_is_told() {
    let registry = BreakerRegistry::new(ManualClock::default(), |key: &str| {
        CircuitBreaker::builder(key).trip(Trip::consecutive(0))
    });
    assert_eq!(registry.get("a").unwrap_err().option, "trip.consecutive");
    assert!(registry.is_empty());
}

#[test]
fn keys_that_would_be_forgotten_at_once_are_refused() {
    let (_, registry) = registry(10);
    let refused = registry.clone().idle_ttl(Duration::ZERO).get("a").unwrap_err();
    assert_eq!(refused.to_string(), "idle_ttl must be at least 1 ms");
    let refused = registry.max_keys(0).get("a").unwrap_err();
    assert_eq!(refused.to_string(), "max_keys must be at least 1");
}
