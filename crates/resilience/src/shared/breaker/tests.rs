//! Two processes on one store, on a paused clock; a store that fails, hangs and comes back.

use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use super::*;
use crate::breaker::rules::{HalfOpen, OpenFor, Trip};
use crate::circuit::{BreakerObserver, Cause, Phase, RejectReason, StateChange};
use crate::clock::{Clock, Timestamp};
use crate::shared::{
    Admit, InstanceId, MemoryBreakerStore, Report, SharedBuilder, SharedRules, StoreFailure,
    Transition, View, Watch,
};
use crate::sleep::TokioSleeper;

mod news;
mod outage;
mod unheard;

const START: Timestamp = Timestamp::from_secs(1_000);

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A memory store that can be made to fail, to hang or to lose everything.
#[derive(Clone)]
struct Ailing {
    store: Arc<Mutex<MemoryBreakerStore>>,
    clock: TokioSleeper,
    ailment: Arc<AtomicU8>,
    steps: Arc<AtomicU8>,
}

const FAILS: u8 = 1;
const HANGS: u8 = 2;
const DRAGS: u8 = 3;
/// Lets calls out at once and answers them after 50 ms.
const ANSWERS_LATE: u8 = 4;
/// Calls are let out after 50 ms, though they may have gone by then.
const HEARS_LATE: u8 = 5;

impl Ailing {
    fn new(clock: TokioSleeper) -> Self {
        let store = Arc::new(Mutex::new(MemoryBreakerStore::new(clock)));
        Self { store, clock, ailment: Arc::default(), steps: Arc::default() }
    }

    fn store(&self) -> MemoryBreakerStore {
        self.store.lock().unwrap().clone()
    }

    fn loses_everything(&self) {
        *self.store.lock().unwrap() = MemoryBreakerStore::new(self.clock);
    }

    async fn ail(&self) -> Result<(), StoreError> {
        self.steps.fetch_add(1, Ordering::SeqCst);
        match self.ailment.load(Ordering::SeqCst) {
            FAILS => Err(StoreError::new("down")),
            HANGS => std::future::pending().await,
            DRAGS => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn becomes(&self, ailment: u8) {
        self.ailment.store(ailment, Ordering::SeqCst);
    }

    fn steps(&self) -> u8 {
        self.steps.swap(0, Ordering::SeqCst)
    }
}

impl BreakerStore for Ailing {
    async fn admit(
        &self,
        key: &str,
        rules: &SharedRules,
        me: &InstanceId,
    ) -> Result<Admit, StoreError> {
        self.ail().await?;
        let late = || tokio::time::sleep(Duration::from_millis(50));
        let (store, key, rules, me) = (self.store(), key.to_owned(), *rules, me.clone());
        let admit = async move { store.admit(&key, &rules, &me).await };
        match self.ailment.load(Ordering::SeqCst) {
            ANSWERS_LATE => {
                let admit = admit.await;
                late().await;
                admit
            }
            HEARS_LATE => {
                let on_its_way = async move {
                    late().await;
                    admit.await
                };
                tokio::spawn(on_its_way).await.unwrap()
            }
            _ => admit.await,
        }
    }

    async fn release(&self, key: &str, me: &InstanceId) -> Result<bool, StoreError> {
        self.ail().await?;
        self.store().release(key, me).await
    }

    async fn report(
        &self,
        key: &str,
        rules: &SharedRules,
        report: &Report,
    ) -> Result<Option<Transition>, StoreError> {
        self.ail().await?;
        self.store().report(key, rules, report).await
    }

    async fn snapshot(&self, key: &str) -> Result<View, StoreError> {
        self.ail().await?;
        self.store().snapshot(key).await
    }

    async fn force(&self, key: &str, forced: Option<Forced>) -> Result<(), StoreError> {
        self.ail().await?;
        self.store().force(key, forced).await
    }

    fn watch(&self, key: &str) -> Watch {
        self.store().watch(key)
    }
}

type Shared = SharedBreaker<Ailing, TokioSleeper>;

struct Bench {
    sleeper: TokioSleeper,
    store: Ailing,
}

impl Bench {
    fn new() -> Self {
        let sleeper = TokioSleeper::starting_at(START);
        Self { sleeper, store: Ailing::new(sleeper) }
    }

    fn builder(&self) -> SharedBuilder<Ailing, TokioSleeper> {
        SharedBreaker::builder("k", self.store.clone(), self.sleeper)
            .trip(Trip::consecutive(3))
            .open_for(OpenFor::fixed(secs(10)))
            .half_open(HalfOpen::probes(1).max_wait(secs(5)))
    }

    fn breaker(&self) -> Shared {
        self.builder().build().unwrap()
    }

    /// A process, with its driver.
    fn process(&self) -> Shared {
        let breaker = self.breaker();
        tokio::spawn(breaker.driver());
        breaker
    }
}

async fn vote(breaker: &Shared, vote: Vote, times: u32) {
    for _ in 0..times {
        breaker.acquire().await.unwrap().record(vote).await;
    }
}

async fn reason(breaker: &Shared) -> RejectReason {
    breaker.acquire().await.unwrap_err().reason
}

#[tokio::test(start_paused = true)]
async fn what_one_process_finds_out_the_other_knows() {
    let bench = Bench::new();
    let (one, other) = (bench.process(), bench.process());
    vote(&other, Vote::Success, 1).await;
    vote(&one, Vote::Failure, 2).await;
    tokio::time::advance(secs(1)).await;
    vote(&other, Vote::Success, 1).await;
    vote(&one, Vote::Failure, 1).await;
    assert!(matches!(one.state(), State::Open { .. }), "three in a row here");
    one.refresh().await;
    other.refresh().await;
    assert_eq!(other.state(), one.state());
}

#[tokio::test(start_paused = true)]
async fn failures_of_all_processes_count_together() {
    let bench = Bench::new();
    let all = [bench.breaker(), bench.breaker(), bench.breaker()];
    for breaker in &all {
        vote(breaker, Vote::Failure, 1).await;
        breaker.refresh().await;
    }
    for breaker in &all {
        breaker.refresh().await;
        assert_eq!(reason(breaker).await, RejectReason::Open);
    }
}

#[tokio::test(start_paused = true)]
async fn cb_01_one_process_probes_and_the_others_wait_for_it() {
    let bench = Bench::new();
    let (one, other) = (bench.process(), bench.process());
    vote(&one, Vote::Failure, 3).await;
    one.refresh().await;
    other.refresh().await;
    tokio::time::sleep(secs(10)).await;
    let probe = one.acquire().await.unwrap();
    assert!(probe.is_probe());
    assert_eq!(reason(&other).await, RejectReason::ProbeInFlight);
    assert_eq!(reason(&one).await, RejectReason::ProbeInFlight);
    probe.success().await;
    assert_eq!(one.state(), State::Closed);
    other.refresh().await;
    assert!(!other.acquire().await.unwrap().is_probe());
}

#[tokio::test(start_paused = true)]
async fn cb_02_a_probe_that_is_dropped_or_dies_is_replaced() {
    let bench = Bench::new();
    let (one, other) = (bench.breaker(), bench.breaker());
    vote(&one, Vote::Failure, 3).await;
    one.refresh().await;
    other.refresh().await;
    tokio::time::advance(secs(10)).await;
    drop(one.acquire().await.unwrap());
    one.refresh().await;
    let dies = other.acquire().await.unwrap();
    assert!(dies.is_probe(), "the dropped one was told of");
    std::mem::forget(dies);
    assert_eq!(reason(&one).await, RejectReason::ProbeInFlight);
    tokio::time::advance(secs(5)).await;
    let last = one.acquire().await.unwrap();
    assert!(last.is_probe(), "its lease has run out");
    last.success().await;
    assert_eq!(one.state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_probe_is_told_of_before_the_next_is_asked_for() {
    let bench = Bench::new();
    let one = bench.breaker();
    vote(&one, Vote::Failure, 3).await;
    one.refresh().await;
    tokio::time::advance(secs(10)).await;
    let probe = one.acquire().await.unwrap();
    assert!(probe.is_probe());
    drop(probe);
    assert!(one.acquire().await.unwrap().is_probe(), "without a driver, too");
}

#[tokio::test(start_paused = true)]
async fn a_closed_breaker_does_not_wait_for_the_store() {
    let bench = Bench::new();
    let breaker = bench.process();
    vote(&breaker, Vote::Success, 1).await;
    bench.store.steps();
    bench.store.becomes(HANGS);
    let begun = bench.sleeper.now();
    vote(&breaker, Vote::Success, 100).await;
    assert_eq!((bench.sleeper.now(), bench.store.steps()), (begun, 0));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_or_hangs_fails_no_call() {
    for ailment in [FAILS, HANGS] {
        for sharing in [
            Sharing::Eventual { flush: Duration::from_millis(200), max_stale: secs(1) },
            Sharing::Strict,
        ] {
            let bench = Bench::new();
            let breaker = bench.builder().sharing(sharing).build().unwrap();
            bench.store.becomes(ailment);
            let begun = bench.sleeper.now();
            vote(&breaker, Vote::Success, 50).await;
            vote(&breaker, Vote::Failure, 3).await;
            assert!(bench.sleeper.now().since(begun) < secs(1), "it is left alone meanwhile");
            assert_eq!(reason(&breaker).await, RejectReason::Open, "its own breaker decides");
            tokio::time::advance(secs(10)).await;
            vote(&breaker, Vote::Success, 1).await;
            assert_eq!(breaker.state(), State::Closed);
            bench.store.becomes(0);
            tokio::time::advance(secs(2)).await;
            vote(&breaker, Vote::Failure, 3).await;
            breaker.refresh().await;
            let view = bench.store.snapshot("k").await.unwrap();
            assert_eq!(view.phase, Phase::Open, "and it is heard again when it is back");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_it_asks_does_not_end_the_asking() {
    let bench = Bench::new();
    let breaker = bench.breaker();
    bench.store.becomes(HANGS);
    let dropped = tokio::time::timeout(Duration::from_millis(50), breaker.acquire()).await;
    assert!(dropped.is_err());
    bench.store.becomes(0);
    tokio::time::advance(secs(1)).await;
    bench.store.steps();
    vote(&breaker, Vote::Success, 1).await;
    assert_eq!(bench.store.steps(), 1);
}

#[tokio::test(start_paused = true)]
async fn news_that_do_not_know_of_the_last_failures_yet_close_nothing() {
    let bench = Bench::new();
    let breaker = bench.breaker();
    vote(&breaker, Vote::Success, 1).await;
    bench.store.becomes(DRAGS);
    let (asking, clone) = (breaker.clone(), breaker.clone());
    let news = tokio::spawn(async move { asking.refresh().await });
    tokio::task::yield_now().await;
    vote(&clone, Vote::Failure, 3).await;
    news.await.unwrap();
    assert!(matches!(breaker.state(), State::Open { .. }));
    breaker.refresh().await;
    assert_eq!(bench.store.store().snapshot("k").await.unwrap().phase, Phase::Open);
}

#[tokio::test(start_paused = true)]
async fn without_a_guard_if_so_wished() {
    let bench = Bench::new();
    let through = bench.builder().on_store_error(StoreFailure::LetThrough);
    let breaker = through.sharing(Sharing::Strict).build().unwrap();
    bench.store.becomes(FAILS);
    vote(&breaker, Vote::Failure, 50).await;
    assert!(breaker.acquire().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn strictly_shared_every_call_asks() {
    let bench = Bench::new();
    let strict = || bench.builder().sharing(Sharing::Strict).build().unwrap();
    let (one, other) = (strict(), strict());
    vote(&one, Vote::Failure, 2).await;
    vote(&other, Vote::Failure, 1).await;
    assert_eq!(reason(&one).await, RejectReason::Open);
    let opened = one.call(async { Ok::<_, StoreError>(()) }).await;
    assert!(matches!(opened, Err(CallError::Rejected(_))));
}

#[tokio::test(start_paused = true)]
async fn forced_for_all() {
    let bench = Bench::new();
    let (one, other) = (bench.breaker(), bench.breaker());
    one.force(Some(Forced::Open)).await.unwrap();
    other.refresh().await;
    assert_eq!(
        (reason(&one).await, reason(&other).await),
        (RejectReason::Forced, RejectReason::Forced)
    );
    other.force(None).await.unwrap();
    one.refresh().await;
    vote(&one, Vote::Success, 1).await;
}

#[tokio::test(start_paused = true)]
async fn watchers_hear_of_changes_elsewhere_and_of_the_stores_failures() {
    #[derive(Clone, Default)]
    struct Spy(Arc<Mutex<Vec<String>>>);
    impl BreakerObserver for Spy {
        fn on_state_change(&self, change: &StateChange) {
            assert_eq!(change.cause, Cause::Elsewhere);
            self.0.lock().unwrap().push(change.to.as_str().into());
        }

        fn on_store_error(&self, _: &str, error: &(dyn Error + 'static)) {
            self.0.lock().unwrap().push(error.to_string());
        }
    }
    let (bench, spy) = (Bench::new(), Spy::default());
    let (one, watched) = (bench.breaker(), bench.builder().observe(spy.clone()).build().unwrap());
    vote(&one, Vote::Failure, 3).await;
    one.refresh().await;
    watched.refresh().await;
    bench.store.becomes(FAILS);
    watched.refresh().await;
    bench.store.becomes(HANGS);
    watched.refresh().await;
    let heard = spy.0.lock().unwrap().clone();
    assert_eq!(heard, ["open", "breaker store: down", "breaker store: no answer in time"]);
}

#[tokio::test(start_paused = true)]
async fn the_driver_ends_with_its_breaker() {
    let bench = Bench::new();
    let breaker = bench.breaker();
    let driver = tokio::spawn(breaker.driver());
    tokio::time::sleep(secs(1)).await;
    assert!(!driver.is_finished() && bench.store.steps() >= 4);
    drop(breaker);
    driver.await.unwrap();
}

#[tokio::test]
async fn a_guarded_call_can_be_spawned() {
    let breaker = Bench::new().breaker();
    let task = tokio::spawn(async move { breaker.call(async { Ok::<_, StoreError>(1) }).await });
    assert_eq!(task.await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn what_a_store_cannot_carry_out_is_named() {
    let bench = Bench::new();
    let field = |builder: SharedBuilder<Ailing, TokioSleeper>| builder.build().unwrap_err().option;
    assert_eq!(field(bench.builder().trip(Trip::failure_rate(0.5))), "trip");
    assert_eq!(field(bench.builder().trip(Trip::consecutive(5).distinct_keys(2))), "trip");
    assert_eq!(field(bench.builder().half_open(HalfOpen::probes(2))), "half_open.probes");
    let jitter = OpenFor::fixed(secs(1)).jitter(0.1);
    assert_eq!(field(bench.builder().open_for(jitter)), "open_for.jitter");
    assert_eq!(field(bench.builder().store_timeout(Duration::ZERO)), "store_timeout");
    let brief = HalfOpen::probes(1).max_wait(Duration::from_millis(100));
    assert_eq!(field(bench.builder().half_open(brief)), "store_timeout", "over before the answer");
    let instance = |name: &'static str| bench.builder().instance(InstanceId::new(name));
    assert_eq!(field(instance("a\0b")), "instance");
    for key in [String::new(), "a\0b".to_owned(), "k".repeat(1_025)] {
        let builder = SharedBreaker::builder(key, bench.store.clone(), bench.sleeper);
        assert_eq!(field(builder), "key");
    }
    let sharing = |flush, max_stale| Sharing::Eventual { flush, max_stale };
    assert_eq!(field(bench.builder().sharing(sharing(Duration::ZERO, secs(1)))), "sharing.flush");
    assert_eq!(field(bench.builder().sharing(sharing(secs(2), secs(1)))), "sharing.max_stale");
}
