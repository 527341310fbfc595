//! The traces that every breaker store must pass, the same for all.
//!
//! Time is no part of them: an open time or a lease of nothing is over at once, one of an hour
//! never.
//! Never: depend on a clock, or on how fast a store is.

use std::time::Duration;

use super::memory::MemoryBreakerStore;
use super::runs::Runs;
use super::store::{Admit, BreakerStore, InstanceId, Report, SharedRules, Transition, View};
use crate::breaker::Forced;
use crate::chance::{Chance, Seeded};
use crate::circuit::{Cause, Phase};
use crate::classify::Vote;
use crate::clock::{ManualClock, Timestamp};

const HOUR: Duration = Duration::from_secs(3_600);

/// Three failures; open times and leases that never end.
const LONG: SharedRules = SharedRules {
    failures: 3,
    open_for: HOUR,
    open_for_max: Duration::from_secs(3_600 * 4),
    close_after: 1,
    lease: HOUR,
};
/// Open times that are over at once.
const DUE: SharedRules =
    SharedRules { open_for: Duration::ZERO, open_for_max: Duration::ZERO, ..LONG };
/// Leases that are over at once, too.
const LAPSED: SharedRules = SharedRules { lease: Duration::ZERO, ..DUE };

/// Every trace. Keys are made up; the store may hold others.
///
/// # Panics
///
/// Where the store does not do as the state machine does.
pub async fn all<S: BreakerStore>(store: &S) {
    opens_and_waits(store).await;
    a_probe_decides(store).await;
    a_lost_probe_is_replaced(store).await;
    a_probe_is_given_back_by_its_holder(store).await;
    what_opened_elsewhere_is_written_down(store).await;
    late_reports_count_for_nothing(store).await;
    forced(store).await;
    several_successes(store).await;
    for seed in 0..6 {
        does_as_the_machine_does(store, seed).await;
    }
}

/// One breaker of a store.
struct Bench<'a, S> {
    store: &'a S,
    key: String,
    me: InstanceId,
}

impl<'a, S: BreakerStore> Bench<'a, S> {
    fn new(store: &'a S, key: &str) -> Self {
        Self { store, key: format!("conformance-{key}"), me: InstanceId::new("one") }
    }

    async fn admit(&self, rules: &SharedRules) -> Admit {
        self.admit_as(&self.me, rules).await
    }

    async fn admit_as(&self, me: &InstanceId, rules: &SharedRules) -> Admit {
        self.store.admit(&self.key, rules, me).await.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn release(&self, me: &InstanceId) -> bool {
        self.store.release(&self.key, me).await.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn report(&self, rules: &SharedRules, report: Report) -> Option<Transition> {
        let told = self.store.report(&self.key, rules, &report).await;
        told.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn calls(&self, rules: &SharedRules, failures: u32) -> Option<Transition> {
        let generation = generation_of(self.admit(rules).await);
        let runs = Runs { lead: failures, ..Runs::default() };
        self.report(rules, Report::Calls { generation, runs }).await
    }

    async fn probe(&self, rules: &SharedRules, vote: Vote) -> Option<Transition> {
        match self.admit(rules).await {
            Admit::Probe { generation, lease } => {
                self.report(rules, Report::Probe { generation, lease, vote }).await
            }
            other => panic!("no probe but {other:?}"),
        }
    }

    async fn view(&self) -> View {
        self.store.snapshot(&self.key).await.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn phase(&self) -> Phase {
        self.view().await.phase
    }
}

const fn generation_of(admit: Admit) -> u64 {
    match admit {
        Admit::Closed { generation }
        | Admit::Probe { generation, .. }
        | Admit::Open { generation, .. }
        | Admit::ProbeOut { generation, .. }
        | Admit::ForcedOpen { generation } => generation,
    }
}

async fn opens_and_waits<S: BreakerStore>(store: &S) {
    let bench = Bench::new(store, "opens");
    assert_eq!(bench.phase().await, Phase::Closed);
    assert_eq!(bench.calls(&LONG, 2).await, None);
    let begun = generation_of(bench.admit(&LONG).await);
    let runs = Runs { succeeded: true, trail: 2, ..Runs::default() };
    assert_eq!(bench.report(&LONG, Report::Calls { generation: begun, runs }).await, None);
    let opened = bench.calls(&LONG, 1).await;
    let expected = Transition { generation: begun + 1, to: Phase::Open, cause: Cause::Tripped };
    assert_eq!(opened, Some(expected));
    match bench.admit(&LONG).await {
        Admit::Open { generation, retry_in } => {
            assert_eq!(generation, begun + 1);
            assert!(retry_in > HOUR / 2 && retry_in <= HOUR, "{retry_in:?}");
        }
        other => panic!("not open but {other:?}"),
    }
    assert_eq!(bench.phase().await, Phase::Open);
}

async fn a_probe_decides<S: BreakerStore>(store: &S) {
    let bench = Bench::new(store, "probe");
    bench.calls(&DUE, 3).await;
    let first = bench.admit(&DUE).await;
    assert!(matches!(first, Admit::Probe { .. }), "{first:?}");
    assert_eq!(bench.phase().await, Phase::HalfOpen);
    for _ in 0..3 {
        let other = bench.admit(&DUE).await;
        assert!(
            matches!(other, Admit::ProbeOut { retry_in, .. } if !retry_in.is_zero()),
            "{other:?}"
        );
    }
    let Admit::Probe { generation, lease } = first else { return };
    let ignored = Report::Probe { generation, lease, vote: Vote::Ignore };
    assert_eq!(bench.report(&DUE, ignored).await, None);
    let failed = bench.probe(&DUE, Vote::Failure).await;
    assert_eq!(failed.map(|told| told.cause), Some(Cause::ProbeFailed));
    let closed = bench.probe(&DUE, Vote::Success).await;
    let expected =
        Transition { generation: generation + 2, to: Phase::Closed, cause: Cause::ProbeSucceeded };
    assert_eq!(closed, Some(expected));
    assert_eq!(bench.calls(&DUE, 2).await, None, "counts begin anew");
}

async fn a_lost_probe_is_replaced<S: BreakerStore>(store: &S) {
    let bench = Bench::new(store, "lost");
    bench.calls(&LAPSED, 3).await;
    let Admit::Probe { generation, lease } = bench.admit(&LAPSED).await else { panic!("no probe") };
    let Admit::Probe { lease: second, .. } = bench.admit(&LAPSED).await else {
        panic!("no second")
    };
    assert_ne!(lease, second);
    let late = Report::Probe { generation, lease, vote: Vote::Success };
    assert_eq!(bench.report(&LAPSED, late).await, None, "the first was given up");
    let timely = Report::Probe { generation, lease: second, vote: Vote::Success };
    assert!(bench.report(&LAPSED, timely).await.is_some());
}

async fn a_probe_is_given_back_by_its_holder<S: BreakerStore>(store: &S) {
    let bench = Bench::new(store, "given-back");
    let [one, other] = ["one", "other"].map(InstanceId::new);
    assert!(!bench.release(&one).await, "there is none");
    bench.calls(&DUE, 3).await;
    let Admit::Probe { generation, lease } = bench.admit_as(&one, &DUE).await else {
        panic!("no probe")
    };
    assert!(!bench.release(&other).await, "it is not the other's");
    assert!(matches!(bench.admit_as(&other, &DUE).await, Admit::ProbeOut { .. }));
    assert!(bench.release(&one).await);
    assert!(!bench.release(&one).await, "once");
    let late = Report::Probe { generation, lease, vote: Vote::Success };
    assert_eq!(bench.report(&DUE, late).await, None, "it has been given back");
    assert!(matches!(bench.admit_as(&other, &DUE).await, Admit::Probe { .. }), "at once");
    assert!(!bench.release(&one).await, "it is the other's now");
}

async fn what_opened_elsewhere_is_written_down<S: BreakerStore>(store: &S) {
    let bench = Bench::new(store, "elsewhere");
    let View { generation, fresh, .. } = bench.view().await;
    assert!(fresh, "nothing has happened yet");
    let opened = |generation, left| Report::Opened { generation, open_for: HOUR * 2, left };
    let late = opened(generation.wrapping_sub(1), HOUR);
    assert_eq!(bench.report(&LONG, late).await, None, "of another life");
    let told = bench.report(&LONG, opened(generation, HOUR + HOUR / 2)).await;
    let expected =
        Transition { generation: generation + 1, to: Phase::Open, cause: Cause::Tripped };
    assert_eq!(told, Some(expected));
    let View { retry_in, fresh, .. } = bench.view().await;
    assert!(retry_in > HOUR && retry_in <= HOUR + HOUR / 2 && !fresh, "{retry_in:?}");
    assert_eq!(bench.report(&LONG, opened(generation + 1, HOUR)).await, None, "it is open");

    let over = Bench::new(store, "elsewhere-over");
    let generation = generation_of(over.admit(&LONG).await);
    over.report(&LONG, opened(generation, Duration::ZERO)).await;
    let failed = over.probe(&LONG, Vote::Failure).await;
    assert_eq!(failed.map(|told| told.cause), Some(Cause::ProbeFailed));
    let left = over.view().await.retry_in;
    assert!(left > HOUR * 3 && left <= HOUR * 4, "twice what it had come to: {left:?}");

    let by_hand = Bench::new(store, "elsewhere-by-hand");
    let generation = generation_of(by_hand.admit(&LONG).await);
    let forced = store.force(&by_hand.key, Some(Forced::Closed)).await;
    forced.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(by_hand.report(&LONG, opened(generation, HOUR)).await, None);
}

async fn late_reports_count_for_nothing<S: BreakerStore>(store: &S) {
    let bench = Bench::new(store, "late");
    let old = generation_of(bench.admit(&DUE).await);
    bench.calls(&DUE, 3).await;
    let Admit::Probe { generation, lease } = bench.admit(&DUE).await else { panic!("no probe") };
    for runs in [Runs::one(false), Runs { lead: 9, ..Runs::default() }] {
        assert_eq!(bench.report(&DUE, Report::Calls { generation: old, runs }).await, None);
    }
    assert_eq!(bench.phase().await, Phase::HalfOpen, "the slot is still taken");
    let probe = Report::Probe { generation, lease, vote: Vote::Success };
    assert!(bench.report(&DUE, probe).await.is_some());
    assert_eq!(bench.report(&DUE, probe).await, None, "a probe counts once");
    assert_eq!(bench.phase().await, Phase::Closed);
}

async fn forced<S: BreakerStore>(store: &S) {
    let bench = Bench::new(store, "forced");
    let force = async |forced| {
        store.force(&bench.key, forced).await.unwrap_or_else(|error| panic!("{error}"));
    };
    force(Some(Forced::Open)).await;
    assert!(matches!(bench.admit(&LONG).await, Admit::ForcedOpen { .. }));
    assert_eq!(bench.phase().await, Phase::Open);
    force(Some(Forced::Closed)).await;
    assert_eq!(bench.calls(&LONG, 9).await, None);
    assert!(matches!(bench.admit(&LONG).await, Admit::Closed { .. }));
    force(None).await;
    let tripped = bench.calls(&LONG, 1).await;
    assert_eq!(tripped.map(|told| told.cause), Some(Cause::Tripped), "it had gone on counting");
}

async fn several_successes<S: BreakerStore>(store: &S) {
    let bench = Bench::new(store, "several");
    let rules = SharedRules { close_after: 3, ..DUE };
    bench.calls(&rules, 3).await;
    assert_eq!(bench.probe(&rules, Vote::Success).await, None);
    assert_eq!(bench.probe(&rules, Vote::Success).await, None);
    assert!(bench.probe(&rules, Vote::Failure).await.is_some(), "a failure undoes them");
    for closes in [false, false, true] {
        assert_eq!(bench.probe(&rules, Vote::Success).await.is_some(), closes);
    }
}

/// Any steps in any order have the effect that they have on the state machine.
async fn does_as_the_machine_does<S: BreakerStore>(store: &S, seed: u64) {
    let model = MemoryBreakerStore::new(ManualClock::new(Timestamp::from_secs(1)));
    let (real, model) = (Bench::new(store, &format!("walk-{seed}")), Bench::new(&model, "walk"));
    let dice = &mut Seeded::new(seed);
    let (offset, start) =
        (generation_of(real.admit(&LONG).await), generation_of(model.admit(&LONG).await));
    let mut known: Vec<(Admit, Admit)> = Vec::new();
    for step in 0..250 {
        let rules = match dice.below(4) {
            0 => LONG,
            1 => LAPSED,
            _ => DUE,
        };
        let me = InstanceId::new(dice.below(3).to_string());
        match dice.below(11) {
            0..=3 => {
                let told = (real.admit_as(&me, &rules).await, model.admit_as(&me, &rules).await);
                assert_eq!(shape(told.0, offset), shape(told.1, start), "seed {seed}, step {step}");
                known.push(told);
            }
            4 => {
                let forced = [None, None, Some(Forced::Open), Some(Forced::Closed)];
                let forced = forced.get(usize::try_from(dice.below(4)).unwrap_or(0)).copied();
                for told in [
                    real.store.force(&real.key, forced.flatten()).await,
                    model.store.force(&model.key, forced.flatten()).await,
                ] {
                    told.unwrap_or_else(|error| panic!("{error}"));
                }
            }
            5 => {
                let were_out = (real.release(&me).await, model.release(&me).await);
                assert_eq!(were_out.0, were_out.1, "seed {seed}, step {step}");
            }
            _ => {
                let place = usize::try_from(dice.below(known.len() as u64)).unwrap_or(0);
                let Some((of_real, of_model)) = known.get(place).copied() else { continue };
                let told = any_end(dice);
                let told = (
                    real.report(&rules, told.report(of_real)).await,
                    model.report(&rules, told.report(of_model)).await,
                );
                let relative = |told: Option<Transition>, from: u64| {
                    told.map(|told| (told.generation - from, told.to, told.cause))
                };
                let (got, expected) = (relative(told.0, offset), relative(told.1, start));
                assert_eq!(got, expected, "seed {seed}, step {step}");
            }
        }
        let (real, model) = (real.view().await, model.view().await);
        let seen = |view: View| (view.phase, view.forced, view.fresh);
        assert_eq!(seen(real), seen(model), "seed {seed}, step {step}");
    }
}

/// An answer without what differs between two stores.
fn shape(admit: Admit, from: u64) -> (&'static str, u64, u64) {
    let (name, lease) = match admit {
        Admit::Closed { .. } => ("closed", 0),
        Admit::Probe { lease, .. } => ("probe", lease),
        Admit::Open { .. } => ("open", 0),
        Admit::ProbeOut { .. } => ("probe out", 0),
        Admit::ForcedOpen { .. } => ("forced", 0),
    };
    (name, generation_of(admit) - from, lease)
}

/// How a call that was let out may end, or that the breaker opened elsewhere meanwhile.
struct End {
    runs: Runs,
    vote: Vote,
    opened: Option<Duration>,
}

impl End {
    fn report(&self, admit: Admit) -> Report {
        let generation = generation_of(admit);
        match (admit, self.opened) {
            (_, Some(left)) => Report::Opened { generation, open_for: HOUR, left },
            (Admit::Probe { lease, .. }, None) => {
                Report::Probe { generation, lease, vote: self.vote }
            }
            (_, None) => Report::Calls { generation, runs: self.runs },
        }
    }
}

fn any_end(dice: &mut Seeded) -> End {
    let opened = match dice.below(12) {
        0 => Some(Duration::ZERO),
        1 => Some(HOUR),
        _ => None,
    };
    End { runs: any_runs(dice), vote: any_vote(dice), opened }
}

fn any_runs(dice: &mut Seeded) -> Runs {
    let mut runs = Runs::default();
    for _ in 0..=dice.below(6) {
        runs.add(dice.below(3) > 0);
    }
    runs
}

fn any_vote(dice: &mut Seeded) -> Vote {
    match dice.below(3) {
        0 => Vote::Success,
        1 => Vote::Failure,
        _ => Vote::Ignore,
    }
}
