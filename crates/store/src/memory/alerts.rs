//! Alerts, in the reference model.
//!
//! Never: evaluate.

use std::ops::Bound;

use domain::alert::evaluate::{Settlement, Telling};
use domain::alert::incident::{Incident, Phase};
use domain::alert::reading::Failing;
use domain::alert::route::{Route, Silence};
use domain::alert::rule::Rule;
use domain::ids::{AppKey, PublicId};
use resilience::Timestamp;

use super::MemoryStore;
use super::inbox::accept;
use super::state::{self, Live};
use super::writer::Tx;
use crate::Reply;
use crate::alerts::{Alerts, Configured, FORGOTTEN_MAX, Kept};
use crate::inbox::{Accepted, NewMessage};
use crate::page::PageOf;

impl Alerts for MemoryStore {
    fn configured(&self, resolved_since: Timestamp) -> Reply<'_, Configured> {
        self.read(move |state| {
            let recent = |it: &&Incident| it.resolved_at.is_none_or(|at| at >= resolved_since);
            Configured {
                rules: state.alert_rules.values().cloned().collect(),
                routes: state.alert_routes.values().cloned().collect(),
                silences: state.silences.values().cloned().collect(),
                recent: state.incidents.values().rev().filter(recent).cloned().collect(),
            }
        })
    }

    fn put_rule(&self, rule: Rule) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            tx.state.alert_rules.insert(rule.name.clone(), rule);
            tx.rows += 1;
            Ok(())
        })
    }

    fn delete_rule(&self, name: String) -> Reply<'static, bool> {
        self.shared.write(move |tx| {
            let was = tx.state.alert_rules.remove(&name).is_some();
            tx.rows += usize::from(was);
            Ok(was)
        })
    }

    fn put_route(&self, route: Route) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            tx.state.alert_routes.insert(route.name.clone(), route);
            tx.rows += 1;
            Ok(())
        })
    }

    fn delete_route(&self, name: String) -> Reply<'static, bool> {
        self.shared.write(move |tx| {
            let was = tx.state.alert_routes.remove(&name).is_some();
            tx.rows += usize::from(was);
            Ok(was)
        })
    }

    fn put_silence(&self, silence: Silence) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            let now = tx.now;
            tx.state.silences.retain(|_, it| it.until > now);
            tx.state.silences.insert(silence.id, silence);
            tx.rows += 1;
            Ok(())
        })
    }

    fn delete_silence(&self, id: PublicId) -> Reply<'static, bool> {
        self.shared.write(move |tx| {
            let was = tx.state.silences.remove(&id).is_some();
            tx.rows += usize::from(was);
            Ok(was)
        })
    }

    fn incidents(&self, page: PageOf<PublicId>) -> Reply<'_, Vec<Incident>> {
        self.read(move |state| {
            let found = state::page(state.incidents.values(), &page, |it| it.id);
            found.into_iter().cloned().collect()
        })
    }

    fn incident(&self, id: PublicId) -> Reply<'_, Option<Incident>> {
        self.read(move |state| state.incidents.get(&id).cloned())
    }

    fn acknowledge(
        &self,
        id: PublicId,
        at: Timestamp,
        tellings: Vec<Telling>,
    ) -> Reply<'static, bool> {
        self.shared.write(move |tx| {
            let found = tx.state.incidents.get_mut(&id);
            let fires =
                |it: &&mut Incident| it.phase == Phase::Firing && it.acknowledged_at.is_none();
            let Some(incident) = found.filter(fires) else { return Ok(false) };
            incident.acknowledged_at = Some(at);
            tx.rows += 1;
            keep(tx, tellings);
            Ok(true)
        })
    }

    fn settle(&self, settlement: Settlement, forget_before: Timestamp) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            for mut incident in settlement.stand {
                let old = tx.state.incidents.get(&incident.id);
                incident.acknowledged_at = old.and_then(|old| old.acknowledged_at);
                tx.state.incidents.insert(incident.id, incident);
                tx.rows += 1;
            }
            for id in settlement.gone {
                tx.rows += usize::from(tx.state.incidents.remove(&id).is_some());
            }
            let old = tx.state.incidents.values();
            let old = old.filter(|it| it.resolved_at.is_some_and(|at| at < forget_before));
            let mut old: Vec<_> = old.map(|it| (it.resolved_at, it.id)).collect();
            old.sort_unstable();
            for (_, id) in old.into_iter().take(FORGOTTEN_MAX) {
                tx.state.incidents.remove(&id);
                tx.rows += 1;
            }
            keep(tx, settlement.tellings);
            Ok(())
        })
    }

    fn tellings(&self, after: u64, limit: usize) -> Reply<'_, Vec<Kept>> {
        self.read(move |state| {
            let beyond = (Bound::Excluded(after), Bound::Unbounded);
            let kept = state.tellings.range(beyond);
            let kept = kept.map(|(&place, telling)| Kept { place, telling: telling.clone() });
            kept.take(limit).collect()
        })
    }

    fn post_telling(&self, place: u64, message: NewMessage) -> Reply<'static, Option<Accepted>> {
        self.shared.write(move |tx| {
            if !tx.state.tellings.contains_key(&place) {
                return Ok(None);
            }
            let accepted = accept(tx, message);
            if !matches!(accepted, Accepted::Stale | Accepted::NoApplication) {
                forget(tx, place);
            }
            Ok(Some(accepted))
        })
    }

    fn discard_telling(&self, place: u64) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            forget(tx, place);
            Ok(())
        })
    }

    fn failing(
        &self,
        since: Timestamp,
        but_of: Option<AppKey>,
        limit: usize,
    ) -> Reply<'_, Vec<Failing>> {
        self.read(move |state| {
            let lanes = state.lanes.values().filter_map(|lane| {
                let failing_since = lane.breaker.failing_since.filter(|at| *at <= since)?;
                let endpoint = state.endpoints.get(&lane.endpoint).and_then(Live::alive)?;
                let app = state.live_app(endpoint.app)?;
                let counts = endpoint.spec.disabled.is_none() && Some(app.key) != but_of;
                counts.then_some((failing_since, lane.endpoint, endpoint, app))
            });
            let mut lanes: Vec<_> = lanes.collect();
            lanes.sort_by_key(|(failing_since, key, ..)| (*failing_since, *key));
            let failing = lanes.into_iter().map(|(since, _, endpoint, app)| Failing {
                endpoint: endpoint.id,
                endpoint_uid: endpoint.spec.uid.clone(),
                origin: endpoint.spec.target.origin(),
                app: app.id,
                app_name: app.spec.name.clone(),
                since,
            });
            failing.take(limit).collect()
        })
    }
}

fn keep(tx: &mut Tx<'_>, tellings: Vec<Telling>) {
    for telling in tellings {
        let place = tx.draw();
        tx.state.tellings.insert(place, telling);
        tx.rows += 1;
        tx.noted = true;
    }
}

fn forget(tx: &mut Tx<'_>, place: u64) {
    tx.rows += usize::from(tx.state.tellings.remove(&place).is_some());
}
