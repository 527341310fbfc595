//! Incidents: a rule that began to hold, until it is clear again.
//!
//! ```text
//! pending ──held long enough──▶ firing ──clear long enough──▶ resolved
//!    └──── holds no more: gone      ▲ └─ holds again: the wait begins anew
//! ```
//!
//! A rule that fires again soon after it was resolved is flapping: each flap doubles the time until
//! the next resolution. An alert is never late for that; its all-clear is.
//! Never: know a route or a clock.

use std::time::Duration;

use resilience::Timestamp;

use super::reading::Measure;
use super::rule::{Rule, Severity};
use crate::ids::PublicId;
use crate::limits::{ALERT_FLAPS_MAX, ALERT_HOLD_DOWN};

/// How far an incident is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The rule holds, not yet for long enough.
    Pending,
    /// Somebody is told.
    Firing,
    /// It is over.
    Resolved,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Firing, Self::Resolved];

    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Firing => "firing",
            Self::Resolved => "resolved",
        }
    }
}

/// What was told of an incident.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// On these routes.
    pub routes: Vec<String>,
    /// The last time.
    pub at: Option<Timestamp>,
    /// How many endpoints it was about then.
    pub count: u64,
}

/// An incident of one rule; a rule has one at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// Public id, `inc_…`; ids grow with time.
    pub id: PublicId,
    /// The rule.
    pub rule: String,
    /// How bad it is.
    pub severity: Severity,
    /// How far it is.
    pub phase: Phase,
    /// The rule began to hold then.
    pub since: Timestamp,
    /// It fired then.
    pub fired_at: Option<Timestamp>,
    /// It is clear since then.
    pub clear_since: Option<Timestamp>,
    /// It was over then.
    pub resolved_at: Option<Timestamp>,
    /// Somebody said that they look at it.
    pub acknowledged_at: Option<Timestamp>,
    /// How often the rule fired again soon after the incident before.
    pub flaps: u32,
    /// What was told.
    pub told: Told,
    /// Its title when it was told last.
    pub title: String,
}

/// What an evaluation makes of an incident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// There is none.
    None,
    /// This is how it stands.
    Stands(Incident),
    /// It was none after all.
    Gone(PublicId),
}

impl Incident {
    /// Whether it is not over.
    pub fn is_open(&self) -> bool {
        self.phase != Phase::Resolved
    }

    /// The incident of a rule after one more measure; `last` is its newest one, `id` that of a new
    /// one.
    pub fn step(
        rule: &Rule,
        last: Option<&Self>,
        measure: &Measure,
        (now, id): (Timestamp, PublicId),
    ) -> Next {
        let begun = match last {
            Some(open) if open.is_open() => open.clone(),
            _ if !measure.holds() => return Next::None,
            last => Self::begin(rule, last, now, id),
        };
        let mut it = Self { severity: rule.severity, ..begun };
        if it.phase == Phase::Pending {
            if !measure.holds() {
                return Next::Gone(it.id);
            }
            if now.since(it.since) < rule.hold {
                return Next::Stands(it);
            }
            it.phase = Phase::Firing;
            it.fired_at = Some(now);
        }
        if !measure.is_clear(rule) {
            it.clear_since = None;
            return Next::Stands(it);
        }
        let since = *it.clear_since.get_or_insert(now);
        if now.since(since) >= it.clear_wait(rule) {
            it.resolve(now);
        }
        Next::Stands(it)
    }

    /// Ends it, whatever is measured.
    pub fn resolve(&mut self, now: Timestamp) {
        self.phase = Phase::Resolved;
        self.resolved_at = Some(now);
    }

    fn begin(rule: &Rule, last: Option<&Self>, now: Timestamp, id: PublicId) -> Self {
        let soon = |ended: Timestamp| now.since(ended) < ALERT_HOLD_DOWN;
        let before = last.filter(|last| last.resolved_at.is_some_and(soon));
        Self {
            id,
            rule: rule.name.clone(),
            severity: rule.severity,
            phase: Phase::Pending,
            since: now,
            fired_at: None,
            clear_since: None,
            resolved_at: None,
            acknowledged_at: None,
            flaps: before.map_or(0, |before| before.flaps.saturating_add(1)),
            told: Told::default(),
            title: String::new(),
        }
    }

    /// How long it must be clear.
    fn clear_wait(&self, rule: &Rule) -> Duration {
        rule.clear_after.saturating_mul(1 << self.flaps.min(ALERT_FLAPS_MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::alert::rule::Condition;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(1_800_000_000).plus(Duration::from_secs(secs))
    }

    fn rule(hold: u64) -> Rule {
        let rule = Rule::new("a", Condition::SendingPaused, Severity::High);
        Rule { hold: Duration::from_secs(hold), ..rule }
    }

    fn measure(value: u64) -> Measure {
        Measure { value, threshold: 10, ..Measure::default() }
    }

    /// How long it must hold, what is measured, how it stands after each.
    type Row<'a> = (u64, &'a [u64], &'a [Option<Phase>]);

    /// One evaluation each 15 s.
    fn run(rule: &Rule, values: &[u64]) -> Vec<Option<Phase>> {
        let (mut last, mut phases) = (None, Vec::new());
        for (place, value) in (0..).zip(values) {
            let id = PublicId::new(place, [0; 12]);
            let next = Incident::step(rule, last.as_ref(), &measure(*value), (at(place * 15), id));
            phases.push(match next {
                Next::None => None,
                Next::Stands(it) => {
                    let phase = it.phase;
                    last = Some(it);
                    Some(phase)
                }
                Next::Gone(_) => {
                    last = None;
                    None
                }
            });
        }
        phases
    }

    #[test]
    fn an_incident_fires_holds_on_and_is_resolved() {
        use Phase::{Firing, Pending, Resolved};
        let rows: [Row<'_>; 5] = [
            (0, &[0, 11, 11], &[None, Some(Firing), Some(Firing)]),
            (30, &[11, 11, 11], &[Some(Pending), Some(Pending), Some(Firing)]),
            (30, &[11, 0, 11], &[Some(Pending), None, Some(Pending)]),
            // Clear for a minute: five evaluations.
            (
                0,
                &[11, 8, 8, 8, 8, 8, 8],
                &[
                    Some(Firing),
                    Some(Firing),
                    Some(Firing),
                    Some(Firing),
                    Some(Firing),
                    Some(Resolved),
                    None,
                ],
            ),
            // In between is neither: the wait begins anew.
            (0, &[11, 8, 8, 8, 9, 8, 8, 8, 8], &[Some(Firing); 9]),
        ];
        for (hold, values, phases) in rows {
            assert_eq!(run(&rule(hold), values), phases, "{values:?}");
        }
    }

    #[test]
    fn a_flap_doubles_the_wait_for_the_all_clear() {
        let rule = rule(0);
        let step = |last: Option<&Incident>, value, secs| {
            let id = PublicId::new(secs, [0; 12]);
            Incident::step(&rule, last, &measure(value), (at(secs), id))
        };
        let stands = |next| match next {
            Next::Stands(it) => it,
            other => panic!("{other:?}"),
        };
        let (mut now, mut last) = (0, None::<Incident>);
        for flaps in 0..8_u32 {
            let fired = stands(step(last.as_ref(), 11, now));
            assert_eq!((fired.phase, fired.flaps), (Phase::Firing, flaps), "at once, always");
            let cleared = stands(step(Some(&fired), 0, now + 1));
            let wait = 60 << flaps.min(ALERT_FLAPS_MAX);
            let early = stands(step(Some(&cleared), 0, now + wait));
            assert_eq!(early.phase, Phase::Firing);
            let over = stands(step(Some(&early), 0, now + 1 + wait));
            assert_eq!(over.phase, Phase::Resolved);
            (now, last) = (now + 2 + wait, Some(over));
        }
        let late = stands(step(last.as_ref(), 11, now + ALERT_HOLD_DOWN.as_secs()));
        assert_eq!(late.flaps, 0, "what was quiet for long is no flap");
    }

    #[test]
    fn a_clock_that_steps_back_resolves_nothing() {
        let fired = |it: Next| match it {
            Next::Stands(it) => it,
            other => panic!("{other:?}"),
        };
        let id = PublicId::new(1, [0; 12]);
        let it = fired(Incident::step(&rule(0), None, &measure(11), (at(100), id)));
        let it = fired(Incident::step(&rule(0), Some(&it), &measure(0), (at(115), id)));
        let it = fired(Incident::step(&rule(0), Some(&it), &measure(0), (at(10), id)));
        assert_eq!(it.phase, Phase::Firing);
    }

    proptest! {
        #[test]
        fn whatever_is_measured_the_phases_follow_each_other(
            values in prop::collection::vec(0_u64..20, 1..80),
        ) {
            let phases = run(&rule(30), &values);
            for (pair, values) in phases.windows(2).zip(values.windows(2)) {
                let follows = match (pair[0], pair[1]) {
                    // It begins, and goes on, only while it holds.
                    (None | Some(Phase::Resolved), Some(Phase::Pending)) => values[1] > 10,
                    (None | Some(Phase::Resolved), None) => values[1] <= 10,
                    (Some(Phase::Pending), Some(Phase::Pending | Phase::Firing)) => values[1] > 10,
                    (Some(Phase::Pending), None) => values[1] <= 10,
                    (Some(Phase::Firing), Some(Phase::Firing)) => true,
                    (Some(Phase::Firing), Some(Phase::Resolved)) => values[1] <= 8,
                    _ => false,
                };
                prop_assert!(follows, "{pair:?} {values:?}");
            }
        }
    }
}
