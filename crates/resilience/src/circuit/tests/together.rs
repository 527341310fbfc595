//! Many threads on one breaker, and a random walk with many probes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::chance::{Chance, Seeded};

/// Permits of all threads together, after which they end.
const ENOUGH: usize = 500;

#[test]
fn cb_01_threads_never_have_more_probes_out_than_may_be() {
    for (probes, threads) in [(1, 8), (3, 8)] {
        let clock = clock();
        let rules = HalfOpen::probes(probes).close_after(1_000);
        let breaker = opened(&clock, builder(&clock).half_open(rules));
        clock.advance(secs(60));
        let (out, most, gate) = (AtomicUsize::new(0), AtomicUsize::new(0), Barrier::new(threads));
        let admitted = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    gate.wait();
                    while admitted.load(Ordering::SeqCst) <= ENOUGH {
                        if let Ok(permit) = breaker.try_acquire() {
                            assert!(permit.is_probe());
                            most.fetch_max(
                                out.fetch_add(1, Ordering::SeqCst) + 1,
                                Ordering::SeqCst,
                            );
                            admitted.fetch_add(1, Ordering::SeqCst);
                            thread::yield_now();
                            out.fetch_sub(1, Ordering::SeqCst);
                            drop(permit);
                        }
                    }
                });
            }
        });
        let most = most.into_inner();
        assert!((1..=usize::try_from(probes).unwrap()).contains(&most), "{most} of {probes}");
        assert_eq!(breaker.snapshot().probes_out, 0);
    }
}

#[test]
fn cb_05_failures_of_many_threads_open_it_once() {
    struct Count(AtomicUsize);
    impl BreakerObserver for Count {
        fn on_state_change(&self, _: &StateChange) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let clock = clock();
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let breaker = builder(&clock).observe(Arc::clone(&count)).build().unwrap();
    let gate = Barrier::new(16);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let permit = breaker.try_acquire().unwrap();
                gate.wait();
                permit.record(Failure);
            });
        }
    });
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert_eq!(breaker.state(), State::Open { until: START.plus(secs(60)) });
}

#[test]
fn changes_are_told_in_order_whoever_makes_them() {
    struct Order(Mutex<Vec<u64>>);
    impl BreakerObserver for Order {
        fn on_state_change(&self, change: &StateChange) {
            let mut seen = self.0.lock().unwrap();
            seen.push(change.seq);
            drop(seen);
            thread::yield_now();
        }
    }
    let order = Arc::new(Order(Mutex::new(Vec::new())));
    let breaker = builder(&clock()).observe(Arc::clone(&order)).build().unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            let handle = breaker.handle();
            scope.spawn(move || {
                for _ in 0..300 {
                    handle.force_open();
                    handle.auto();
                }
            });
        }
    });
    let seen = order.0.lock().unwrap();
    assert!(seen.len() >= 600, "{} changes", seen.len());
    assert!(seen.iter().copied().eq(1..=u64::try_from(seen.len()).unwrap()));
}

/// A walk over one breaker with everything that can happen to it.
struct Walk {
    breaker: CircuitBreaker,
    clock: Arc<ManualClock>,
    dice: Seeded,
    out: Vec<Permit<'static>>,
    probes: usize,
}

impl Walk {
    fn step(&mut self) -> Result<(), TestCaseError> {
        let before = self.breaker.kept();
        match self.dice.below(12) {
            0..=4 => {
                let told = self.breaker.try_acquire_owned();
                let wait = told.as_ref().err().and_then(|rejected| rejected.retry_after);
                prop_assert!(wait.is_none_or(|wait| wait <= secs(600)));
                self.out.extend(told);
            }
            5 => self.clock.advance(Duration::from_millis(self.dice.below(20_000))),
            6 => self
                .clock
                .set(self.clock.now().minus(Duration::from_millis(self.dice.below(9_000)))),
            _ if self.out.is_empty() => {}
            at => {
                let place = usize::try_from(self.dice.below(self.out.len() as u64)).unwrap();
                let permit = self.out.swap_remove(place);
                let late = permit.generation() != before.generation;
                match at {
                    7 => drop(permit),
                    8 | 9 => permit.record(Failure),
                    10 => permit.record(Ignore),
                    _ => permit.success(),
                }
                let after = self.breaker.kept();
                prop_assert!(!late || after == before, "a late result moves nothing");
                let still_open = before.open_until.is_some() && after.open_until.is_some();
                let later = after.open_until > before.open_until;
                prop_assert!(
                    !(still_open && later) || after.generation > before.generation,
                    "only a failed probe begins a longer wait"
                );
            }
        }
        let probes = self.out.iter().filter(|permit| {
            permit.is_probe() && permit.generation() == self.breaker.kept().generation
        });
        prop_assert!(probes.count() <= self.probes);
        prop_assert!(self.breaker.snapshot().probes_out <= self.probes);
        Ok(())
    }

    /// Whatever happened: once all is given back and the time is over, it heals.
    fn heals(mut self) -> Result<(), TestCaseError> {
        self.out.clear();
        for _ in 0..10 {
            self.clock.advance(secs(1_000));
            match self.breaker.try_acquire() {
                Ok(permit) => permit.success(),
                Err(rejected) => prop_assert!(false, "stuck: {rejected}"),
            }
        }
        prop_assert_eq!(self.breaker.state(), State::Closed);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn cb_01_cb_02_cb_06_never_too_many_probes_never_stuck_never_moved_by_the_past(
        seed in any::<u64>(), probes in 1_u32..5, close_after in 1_u32..5, rate in any::<bool>(),
    ) {
        let clock = clock();
        let trip = match rate {
            true => Trip::failure_rate(0.5).window(Window::calls(10)).min_calls(5),
            false => Trip::consecutive(3),
        };
        let breaker = builder(&clock)
            .trip(trip)
            .open_for(OpenFor::backoff(secs(5), secs(300)).jitter(0.3))
            .half_open(HalfOpen::probes(probes).close_after(close_after))
            .build()
            .unwrap();
        let probes = usize::try_from(probes).unwrap();
        let mut walk =
            Walk { breaker, clock, dice: Seeded::new(seed), out: Vec::new(), probes };
        for _ in 0..1_500 {
            walk.step()?;
        }
        prop_assert!(walk.breaker.snapshot().generation > 4, "the walk opened and closed it");
        walk.heals()?;
    }
}
