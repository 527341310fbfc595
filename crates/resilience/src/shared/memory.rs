//! The store within one process: the reference for all others, and a stand-in for them in tests.
//!
//! It is the state machine itself, one for each key. Not bounded: keys are as many as the caller
//! names.
//! Never: hold the lock over an await.

use std::collections::HashMap;
use std::fmt;
use std::future::{Future, ready};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::runs::Runs;
use super::store::{
    Admit, BreakerStore, InstanceId, Report, SharedRules, StoreError, Transition, View,
};
use super::watch::{Changes, Watch};
use crate::breaker::rules::{HalfOpen, OpenFor, Trip};
use crate::breaker::{Admission, Breaker, Change, Forced, Permit, Rules, Snapshot};
use crate::chance::Seeded;
use crate::circuit::{Cause, Phase};
use crate::classify::Vote;
use crate::clock::{Clock, Timestamp};

/// Shared breakers in memory. Clones are the same store.
#[derive(Clone)]
pub struct MemoryBreakerStore {
    clock: Arc<dyn Clock>,
    breakers: Arc<Mutex<HashMap<String, Record>>>,
    changes: Changes,
}

/// What is kept of a key.
struct Record {
    breaker: Breaker,
    /// The generation of its birth.
    born: u64,
    /// Who was let out as the last probe.
    prober: Option<(InstanceId, Permit)>,
}

impl Record {
    fn new(rules: Option<&SharedRules>, now: Timestamp) -> Self {
        let birth = birth(rules, now);
        let born = birth.generation;
        Self { breaker: Breaker::restore(Rules::default(), birth), born, prober: None }
    }
}

impl MemoryBreakerStore {
    /// An empty store that goes by this clock.
    pub fn new(clock: impl Clock + 'static) -> Self {
        Self { clock: Arc::new(clock), breakers: Arc::default(), changes: Changes::new() }
    }

    /// One step on the breaker of `key`.
    fn step<T>(
        &self,
        key: &str,
        rules: Option<&SharedRules>,
        step: impl FnOnce(&mut Record, Timestamp) -> T,
    ) -> T {
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock: what is compared with it was noted by others who held the lock before.
        let now = self.clock.now();
        let record = breakers.entry(key.to_owned()).or_insert_with(|| Record::new(rules, now));
        if let Some(rules) = rules {
            record.breaker.retune(machine(rules));
        }
        step(record, now)
    }
}

/// Generations begin at the time of birth, so that no two lives of one key share a number.
fn birth(rules: Option<&SharedRules>, now: Timestamp) -> Snapshot {
    let generation = u64::try_from(now.as_micros() / 1_000).unwrap_or(0);
    Snapshot {
        open_until: None,
        generation,
        open_for: rules.map_or(Duration::ZERO, |rules| rules.open_for),
        failing_since: None,
        forced: None,
        since: now,
    }
}

fn machine(rules: &SharedRules) -> Rules {
    Rules {
        enabled: true,
        trip: Trip::consecutive(rules.failures),
        open_for: OpenFor::backoff(rules.open_for, rules.open_for_max),
        half_open: HalfOpen::probes(1).close_after(rules.close_after).max_wait(rules.lease),
    }
}

impl BreakerStore for MemoryBreakerStore {
    fn admit(
        &self,
        key: &str,
        rules: &SharedRules,
        me: &InstanceId,
    ) -> impl Future<Output = Result<Admit, StoreError>> + Send {
        ready(Ok(self.step(key, Some(rules), |record, now| admit(record, me, now))))
    }

    fn release(
        &self,
        key: &str,
        me: &InstanceId,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        ready(Ok(self.step(key, None, |record, now| release(record, me, now))))
    }

    fn report(
        &self,
        key: &str,
        rules: &SharedRules,
        report: &Report,
    ) -> impl Future<Output = Result<Option<Transition>, StoreError>> + Send {
        let told = self
            .step(key, Some(rules), |record, now| take_in(&mut record.breaker, rules, report, now));
        if told.is_some() {
            self.changes.tell(key);
        }
        ready(Ok(told))
    }

    fn snapshot(&self, key: &str) -> impl Future<Output = Result<View, StoreError>> + Send {
        ready(Ok(self.step(key, None, |record, now| view(record, now))))
    }

    fn force(
        &self,
        key: &str,
        forced: Option<Forced>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.step(key, None, |record, now| record.breaker.force(forced, now));
        self.changes.tell(key);
        ready(Ok(()))
    }

    fn watch(&self, key: &str) -> Watch {
        self.changes.watch(key)
    }
}

fn admit(record: &mut Record, me: &InstanceId, now: Timestamp) -> Admit {
    let breaker = &mut record.breaker;
    let Snapshot { generation, forced, .. } = breaker.snapshot();
    match (breaker.admission(now), breaker.take(now)) {
        (_, Some(permit)) if permit.is_probe() => {
            record.prober = Some((me.clone(), permit));
            Admit::Probe { generation, lease: permit.probe() }
        }
        (_, Some(_)) => Admit::Closed { generation },
        (_, None) if forced == Some(Forced::Open) => Admit::ForcedOpen { generation },
        (Admission::Wait { until }, None) => {
            let retry_in = until.map_or(Duration::ZERO, |until| until.since(now));
            match breaker.probes_out() {
                0 => Admit::Open { generation, retry_in },
                _ => Admit::ProbeOut { generation, retry_in },
            }
        }
        (Admission::Go | Admission::Probe, None) => Admit::Closed { generation },
    }
}

fn release(record: &mut Record, me: &InstanceId, now: Timestamp) -> bool {
    let held = match &record.prober {
        Some((prober, permit)) if prober == me => *permit,
        Some(_) | None => return false,
    };
    let is_out = !record.breaker.is_late(held);
    record.breaker.neutral(held, now);
    is_out
}

fn take_in(
    breaker: &mut Breaker,
    rules: &SharedRules,
    report: &Report,
    now: Timestamp,
) -> Option<Transition> {
    let chance = &mut Seeded::new(0);
    let change = match *report {
        Report::Calls { generation, runs } => {
            take_runs(breaker, rules, Permit::ordinary(generation), runs, now)
        }
        Report::Probe { generation, lease, vote } => {
            let permit = Permit::probing(generation, lease);
            match vote {
                Vote::Success => breaker.success(permit, now),
                Vote::Failure => breaker.failure(permit, 0, now, chance),
                Vote::Ignore => {
                    breaker.neutral(permit, now);
                    None
                }
            }
        }
        Report::Opened { generation, open_for, left } => {
            let current = !breaker.is_late(Permit::ordinary(generation));
            current.then(|| breaker.open_as(open_for, left, now)).flatten()
        }
    };
    let (to, cause) = match change? {
        Change::Opened { .. } => (Phase::Open, Cause::Tripped),
        Change::Closed => (Phase::Closed, Cause::ProbeSucceeded),
        Change::Reopened { .. } => (Phase::Open, Cause::ProbeFailed),
    };
    Some(Transition { generation: breaker.snapshot().generation, to, cause })
}

/// Plays the results again; of a long run no more than can matter.
fn take_runs(
    breaker: &mut Breaker,
    rules: &SharedRules,
    permit: Permit,
    runs: Runs,
    now: Timestamp,
) -> Option<Change> {
    let chance = &mut Seeded::new(0);
    let mut fail = |breaker: &mut Breaker, run: u32| {
        (0..run.min(rules.failures)).find_map(|_| breaker.failure(permit, 0, now, chance))
    };
    if let Some(change) = fail(breaker, runs.lead) {
        return Some(change);
    }
    if !runs.succeeded {
        return None;
    }
    for run in [runs.longest, runs.trail] {
        breaker.success(permit, now);
        if let Some(change) = fail(breaker, run) {
            return Some(change);
        }
    }
    None
}

fn view(Record { breaker, born, .. }: &Record, now: Timestamp) -> View {
    let Snapshot { open_until, generation, forced, .. } = breaker.snapshot();
    let phase = match (forced, open_until) {
        (Some(Forced::Open), _) => Phase::Open,
        (Some(Forced::Closed), _) | (None, None) => Phase::Closed,
        (None, Some(_)) if breaker.probes_out() > 0 => Phase::HalfOpen,
        (None, Some(_)) => Phase::Open,
    };
    let retry_in = open_until.map_or(Duration::ZERO, |until| until.since(now));
    let (failures, fresh) = (breaker.consecutive_failures(), generation == *born);
    View { phase, generation, forced, retry_in, failures, fresh }
}

impl fmt::Debug for MemoryBreakerStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.breakers.lock().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_struct("MemoryBreakerStore").field("breakers", &kept).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::shared::conformance;

    #[tokio::test]
    async fn it_passes_the_suite() {
        conformance::all(&MemoryBreakerStore::new(ManualClock::new(Timestamp::from_secs(9)))).await;
    }
}
