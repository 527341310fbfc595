//! Figures, in the reference model: every fact is kept and counted anew for each read.
//!
//! Never: roll anything up; that is what other backends are compared with.

use std::sync::Arc;

use domain::figures::Figures;
use resilience::Timestamp;

use super::MemoryStore;
use super::facts::Owner;
use super::state::State;
use crate::Reply;
use crate::counts::{Collected, Counts, Of, Rolled, StepFigures, Steps, hours_from, minutes_from};

const HOUR_MICROS: i64 = 3_600 * 1_000_000;

impl Counts for MemoryStore {
    fn roll_up(&self) -> Reply<'static, Rolled> {
        Box::pin(async { Ok(Rolled::default()) })
    }

    fn thin(&self, now: Timestamp) -> Reply<'static, Rolled> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let (minutes, hours) = (minutes_from(now), hours_from(now));
            let facts = &mut shared.state().facts;
            facts.retain(|fact| fact.at >= hours);
            for fact in facts.iter_mut().filter(|fact| fact.at < minutes) {
                let at = fact.at.as_micros();
                fact.at = Timestamp::from_micros(at - at.rem_euclid(HOUR_MICROS));
            }
            Ok(Rolled::default())
        })
    }

    fn read(&self, of: Of, steps: Steps) -> Reply<'_, Vec<StepFigures>> {
        self.read(move |state| counted(state, of, &steps))
    }

    fn recent(&self, now: Timestamp, minutes: u32) -> Reply<'_, Figures> {
        self.read(move |state| {
            let steps = Steps::recent(now, minutes);
            let mut sum = Figures::default();
            for fact in state.facts.iter().filter(|fact| steps.has(fact.at)) {
                sum.add(fact.what, &fact.tally);
            }
            sum
        })
    }
}

fn counted(state: &State, of: Of, steps: &Steps) -> Vec<StepFigures> {
    let mut collected = Collected::default();
    for fact in &state.facts {
        if steps.has(fact.at) && is_of(fact.owner, state, of) {
            collected.at(steps, fact.at).add(fact.what, &fact.tally);
        }
    }
    collected.done()
}

/// Whether figures of an owner are among those asked for.
fn is_of(owner: Owner, state: &State, of: Of) -> bool {
    let app = match owner {
        Owner::App(app) => Some(app),
        Owner::Endpoint(endpoint) => {
            state.endpoints.get(&endpoint).map(|endpoint| endpoint.row.app)
        }
    };
    match (of, owner) {
        (Of::All, _) => true,
        (Of::Endpoint(wanted), Owner::Endpoint(endpoint)) => wanted == endpoint,
        (Of::Endpoint(_), Owner::App(_)) => false,
        (Of::App(wanted), _) => app == Some(wanted),
        (Of::Org(org), _) => {
            app.and_then(|app| state.apps.get(&app)).is_some_and(|app| app.row.org == org)
        }
    }
}
