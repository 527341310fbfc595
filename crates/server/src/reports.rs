//! Background tasks that only count: statistics of an organisation, shown like any other task.
//!
//! In: what is counted, and later its outcome. Out: where each stands. They read and change
//! nothing, so that a restart may forget them: who still wants one asks again.
//! Never: more than a bound, in numbers and in bytes; the oldest that has ended goes first.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::ids::PublicId;
use resilience::Timestamp;

/// Reports that are remembered.
const REPORTS_MAX: usize = 1_000;
/// What all of them hold.
const BYTES_MAX: usize = 32 << 20;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Messages to endpoints, by application.
    Applications,
    /// Subscriptions, by application.
    EventTypes,
}

/// Where a report stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is being counted.
    Running,
    /// What was found, as JSON.
    Finished(String),
    /// Why it could not be.
    Failed(String),
}

/// One report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) id: PublicId,
    pub(crate) kind: Kind,
    pub(crate) standing: Standing,
    pub(crate) updated_at: Timestamp,
}

impl Report {
    const fn bytes(&self) -> usize {
        match &self.standing {
            Standing::Running => 0,
            Standing::Finished(text) | Standing::Failed(text) => text.len(),
        }
    }
}

/// All of them, by key of their id, with the organisation of each.
#[derive(Default)]
pub(crate) struct Reports(Mutex<BTreeMap<u64, (PublicId, Report)>>);

impl Reports {
    /// Adds one, under a later id where its own is taken or passed; or gives the id of one of the
    /// same kind that still runs for the organisation.
    pub(crate) fn begin(&self, org: PublicId, mut report: Report) -> Result<Report, PublicId> {
        let mut all = self.all();
        let runs = |(owner, other): &&(PublicId, Report)| {
            *owner == org && other.kind == report.kind && other.standing == Standing::Running
        };
        if let Some((_, other)) = all.values().find(runs) {
            return Err(other.id);
        }
        let after = all.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
        if report.id.key() < after {
            report.id = PublicId::new(after, report.id.random());
        }
        all.insert(report.id.key(), (org, report.clone()));
        make_room(&mut all);
        Ok(report)
    }

    /// Says how one ended.
    pub(crate) fn end(&self, id: PublicId, standing: Standing, now: Timestamp) {
        let mut all = self.all();
        if let Some((_, report)) = all.get_mut(&id.key()) {
            (report.standing, report.updated_at) = (standing, now);
        }
        make_room(&mut all);
    }

    /// One of an organisation.
    pub(crate) fn one(&self, org: PublicId, id: PublicId) -> Option<Report> {
        let all = self.all();
        let (owner, report) = all.get(&id.key())?;
        (*owner == org && report.id == id).then(|| report.clone())
    }

    /// Those of an organisation, oldest first.
    pub(crate) fn of(&self, org: PublicId) -> Vec<Report> {
        let all = self.all();
        let of_org = all.values().filter(|(owner, _)| *owner == org);
        of_org.map(|(_, report)| report.clone()).collect()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, (PublicId, Report)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn make_room(all: &mut BTreeMap<u64, (PublicId, Report)>) {
    let mut bytes: usize = all.values().map(|(_, report)| report.bytes()).sum();
    while all.len() > REPORTS_MAX || bytes > BYTES_MAX {
        let ended =
            |(_, (_, report)): &(&u64, &(PublicId, Report))| report.standing != Standing::Running;
        let Some((key, (_, report))) = all.iter().find(ended) else { return };
        bytes -= report.bytes();
        let key = *key;
        all.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(key: u64, standing: Standing) -> Report {
        let id = PublicId::new(key, [0; 12]);
        Report { id, kind: Kind::Applications, standing, updated_at: Timestamp::EPOCH }
    }

    #[test]
    fn one_of_a_kind_runs_at_a_time_for_an_organisation() {
        let (one, other) = (PublicId::new(1, [1; 12]), PublicId::new(2, [2; 12]));
        let reports = Reports::default();
        let first = report(1, Standing::Running);
        assert_eq!(reports.begin(one, first.clone()), Ok(first.clone()));
        assert_eq!(reports.begin(one, report(2, Standing::Running)), Err(first.id));
        assert!(reports.begin(other, report(3, Standing::Running)).is_ok());
        let finished = Standing::Finished("{}".into());
        reports.end(first.id, finished.clone(), Timestamp::from_secs(1));
        // Of the same moment, and later all the same.
        let next = reports.begin(one, report(3, Standing::Running)).unwrap();
        assert_eq!(next.id.key(), 4);
        assert_eq!(reports.one(one, first.id).unwrap().standing, finished);
        assert_eq!(reports.one(other, first.id), None);
        assert_eq!(reports.of(one).len(), 2);
    }

    #[test]
    fn the_oldest_that_has_ended_makes_room() {
        let org = PublicId::new(1, [1; 12]);
        let reports = Reports::default();
        reports.begin(org, report(1, Standing::Running)).unwrap();
        let large = || Standing::Finished("x".repeat(BYTES_MAX / 2));
        for key in 2..5 {
            let _added =
                reports.begin(org, Report { kind: Kind::EventTypes, ..report(key, large()) });
        }
        let left: Vec<_> = reports.of(org).iter().map(|report| report.id.key()).collect();
        assert_eq!(left, [1, 3, 4]);
    }
}
