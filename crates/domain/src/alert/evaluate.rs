//! One evaluation: every rule against one reading, and what follows for incidents and routes.
//!
//! One notification tells of a rule on a route, however many endpoints it is about; those that join
//! later are told together, some minutes apart. What was told to fire is told to be over, silence
//! or not.
//! Never: tell the same twice: what was told stands in the incident, which is stored together with
//! what is to be sent.

use resilience::Timestamp;

use super::incident::{Incident, Next, Phase};
use super::notice::{Notice, Occasion};
use super::reading::{Measure, Reading};
use super::route::Silence;
use super::rule::Rule;
use crate::idempotency::incident_random;
use crate::ids::{PublicId, key_floor};
use crate::limits::ALERT_UPDATE_EVERY;

/// What an evaluation begins from.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// The rules in force.
    pub rules: Vec<Rule>,
    /// The names of all routes.
    pub routes: Vec<String>,
    /// Silences, over or not.
    pub silences: Vec<Silence>,
    /// The newest incident of every rule that had one.
    pub newest: Vec<Incident>,
    /// Which installation this is.
    pub installation: [u8; 16],
}

/// A notification on its way to a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telling {
    /// The route.
    pub route: String,
    /// What is told.
    pub notice: Notice,
}

/// What follows from an evaluation; all of it is stored at once, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// Incidents that changed.
    pub stand: Vec<Incident>,
    /// Incidents that were none.
    pub gone: Vec<PublicId>,
    /// What is told.
    pub tellings: Vec<Telling>,
}

impl Settlement {
    /// Whether nothing follows.
    pub fn is_empty(&self) -> bool {
        self.stand.is_empty() && self.gone.is_empty() && self.tellings.is_empty()
    }
}

/// Evaluates all rules.
pub fn evaluate(standing: &Standing, reading: &Reading, now: Timestamp) -> Settlement {
    let mut settlement = Settlement::default();
    let in_force = || standing.rules.iter().filter(|rule| rule.enabled);
    for rule in in_force() {
        standing.one(rule, reading, now, &mut settlement);
    }
    let left = standing.newest.iter().filter(|incident| incident.is_open());
    for incident in left.filter(|it| in_force().all(|rule| rule.name != it.rule)) {
        standing.end(incident, now, &mut settlement);
    }
    settlement
}

impl Standing {
    /// One rule.
    fn one(&self, rule: &Rule, reading: &Reading, now: Timestamp, out: &mut Settlement) {
        let counts = |endpoint| {
            !self.silences.iter().any(|it| it.covers_endpoint(&rule.name, endpoint, now))
        };
        // What cannot be read is neither well nor ill.
        let measure = Measure::of(&rule.condition, reading, now, counts);
        let Some(measure) = measure else { return };
        let last = self.newest.iter().find(|incident| incident.rule == rule.name);
        let random = incident_random(&self.installation, &rule.name, now.as_micros());
        let id = PublicId::new(key_floor(now), random);
        match Incident::step(rule, last, &measure, (now, id)) {
            Next::None => {}
            Next::Gone(id) => out.gone.push(id),
            Next::Stands(mut incident) => {
                self.tell((rule, &measure), &mut incident, now, out);
                if last != Some(&incident) {
                    out.stand.push(incident);
                }
            }
        }
    }

    /// What is told of an incident as it stands.
    fn tell(
        &self,
        (rule, measure): (&Rule, &Measure),
        incident: &mut Incident,
        now: Timestamp,
        out: &mut Settlement,
    ) {
        let routes: Vec<(String, Occasion)> = match incident.phase {
            Phase::Pending => return,
            Phase::Resolved => self.told(incident).map(|it| (it, Occasion::Resolved)).collect(),
            Phase::Firing if self.silences.iter().any(|it| it.covers_rule(&rule.name, now)) => {
                return;
            }
            Phase::Firing => {
                // One that is set again under its name knows nothing of what the old one was told.
                incident.told.routes.retain(|route| self.routes.contains(route));
                let mut routes = Vec::new();
                for route in self.routes.iter().filter(|route| rule.is_told_on(route)) {
                    if !incident.told.routes.contains(route) {
                        // What is clear already wakes nobody who was not told before.
                        if incident.clear_since.is_none() {
                            routes.push((route.clone(), Occasion::Firing));
                        }
                    } else if has_grown(incident, measure, now) {
                        routes.push((route.clone(), Occasion::Updated));
                    }
                }
                routes
            }
        };
        let Some((_, occasion)) = routes.first() else { return };
        let place = (now, &self.installation);
        let notice = Notice::new((*occasion, incident), rule, measure, place);
        if incident.phase == Phase::Firing {
            incident.told.at = Some(now);
            incident.told.count = measure.value;
            incident.title.clone_from(&notice.title);
        }
        for (route, occasion) in routes {
            if occasion == Occasion::Firing {
                incident.told.routes.push(route.clone());
            }
            // That it is over is told in the words in which it was told to fire.
            let title = match occasion {
                Occasion::Resolved => incident.title.clone(),
                _ => notice.title.clone(),
            };
            let notice = Notice { occasion, title, ..notice.clone() };
            out.tellings.push(Telling { route, notice });
        }
    }

    /// Ends an incident whose rule is not in force any more.
    fn end(&self, incident: &Incident, now: Timestamp, out: &mut Settlement) {
        if incident.phase == Phase::Pending {
            out.gone.push(incident.id);
            return;
        }
        let mut ended = incident.clone();
        ended.resolve(now);
        let place = (now, &self.installation);
        for route in self.told(&ended) {
            let notice = Notice::bare(Occasion::Resolved, &ended, place);
            out.tellings.push(Telling { route, notice });
        }
        out.stand.push(ended);
    }

    /// The routes on which it was told to fire and that are still there.
    fn told<'a>(&'a self, incident: &'a Incident) -> impl Iterator<Item = String> + 'a {
        incident.told.routes.iter().filter(|route| self.routes.contains(route)).cloned()
    }

    /// What is told when somebody says that they look at an incident.
    pub fn acknowledged(&self, incident: &Incident, now: Timestamp) -> Vec<Telling> {
        let notice = || Notice::bare(Occasion::Acknowledged, incident, (now, &self.installation));
        self.told(incident).map(|route| Telling { route, notice: notice() }).collect()
    }
}

/// Whether endpoints joined an incident that nobody looks at, and that was told long enough ago.
fn has_grown(incident: &Incident, measure: &Measure, now: Timestamp) -> bool {
    !measure.subjects.is_empty()
        && measure.value > incident.told.count
        && incident.acknowledged_at.is_none()
        && incident.told.at.is_none_or(|at| now.since(at) >= ALERT_UPDATE_EVERY)
}

#[cfg(test)]
mod tests;
