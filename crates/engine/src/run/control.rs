//! Questions and orders from the engine's door: breakers, what is in flight, draining.
//!
//! Never: answer an order before it is stored.

use std::sync::Arc;
use std::time::Duration;

use domain::ids::{EndpointKey, MessageKey};
use resilience::Timestamp;
use store::StoreError;
use store::ledger::LaneState;
use tokio::sync::oneshot;

use super::lane::{Home, Lane, server_gate};
use super::{Asked, Command, Dispatcher, home};
use crate::admit::Gate;
use crate::parts::{BreakerView, ByHand};

/// Failed commits after which draining gives up on results that cannot be stored.
const DRAIN_FAILURES_MAX: u32 = 3;

impl Dispatcher {
    pub(super) fn settled(&mut self, reply: oneshot::Sender<()>) {
        if self.loading == 0 {
            let _gone = reply.send(());
        } else {
            self.settling.push(reply);
        }
    }

    pub(super) fn show_breaker(
        &self,
        endpoint: EndpointKey,
        reply: oneshot::Sender<BreakerView>,
        now: Timestamp,
    ) {
        let _gone = reply.send(self.breaker(endpoint, now));
    }

    /// The breaker of an endpoint, and what else holds its lane.
    pub(super) fn breaker(&self, endpoint: EndpointKey, now: Timestamp) -> BreakerView {
        let home = self.lanes.get(&endpoint).map(|lane| &lane.home);
        let fresh = || Gate::new(server_gate(&self.settings), now);
        let view = match home {
            Some(Home::Known(known)) => view(&known.gate, now),
            _ => view(&self.kept_gate(endpoint, now).unwrap_or_else(fresh), now),
        };
        BreakerView { hold: self.held(endpoint, now), ..view }
    }

    pub(super) fn order(
        &mut self,
        endpoint: EndpointKey,
        order: ByHand,
        reply: oneshot::Sender<Result<(), StoreError>>,
    ) {
        if self.homes.of(endpoint) == home::Home::Elsewhere {
            // It went while the order was on its way.
            let told = self.stores.nodes.order(endpoint, order.into());
            tokio::spawn(async move { reply.send(told.await) });
            return;
        }
        let now = self.clock.now();
        let lane = self.lanes.entry(endpoint).or_insert_with(Lane::new);
        let known = match &mut lane.home {
            Home::Known(known) => known,
            Home::Deleted => {
                let _gone = reply.send(Err(StoreError::Missing("endpoint")));
                return;
            }
            Home::Unknown => return self.order_when_loaded(endpoint, order, reply),
        };
        let before = Box::new(known.gate.kept(endpoint));
        match order {
            ByHand::Forced(forced) => known.gate.force(forced, now),
            ByHand::Suspended => known.gate.suspend(now),
        }
        let state = known.gate.kept(endpoint);
        known.kept = Some(state.clone());
        let kept = self.stores.ledger.keep_lanes(vec![state]);
        self.report(async move { Command::OrderKept(before, kept.await, reply) });
        self.enqueue(endpoint);
    }

    /// What could not be stored is not in force.
    pub(super) fn order_kept(&mut self, before: &LaneState, answer: &Result<(), StoreError>) {
        let (now, endpoint) = (self.clock.now(), before.endpoint);
        if let (Err(_), Some(known)) = (answer, self.known(endpoint)) {
            known.gate.undo(before, now);
            known.kept = None;
            self.enqueue(endpoint);
        }
    }

    fn order_when_loaded(
        &mut self,
        endpoint: EndpointKey,
        order: ByHand,
        reply: oneshot::Sender<Result<(), StoreError>>,
    ) {
        let (directory, commands) = (Arc::clone(&self.stores.directory), self.commands.clone());
        self.begin_loading(endpoint);
        tokio::spawn(async move {
            let read = directory.endpoint(endpoint).await;
            let failed = read.as_ref().err().cloned();
            let _gone = commands.send(Command::Loaded(endpoint, read));
            match failed {
                Some(error) => drop(reply.send(Err(error))),
                None => drop(commands.send(Command::Order(endpoint, order, reply))),
            }
        });
    }

    pub(super) fn suspects_kept(&self, answer: Result<(), StoreError>) {
        if let Err(error) = answer {
            tracing::warn!(%error, "suspects not kept");
        }
    }

    /// Answers at once if a send is in the air, or none is. A result that is on its way to the
    /// ledger may be readable there already; then the answer follows its confirmation.
    pub(super) fn in_flight(&mut self, endpoint: EndpointKey, message: MessageKey, reply: Asked) {
        let unrecorded = |lane: &Lane| lane.unrecorded > 0 && lane.book.is_out(message);
        if self.flights.has(endpoint, message) {
            let _gone = reply.send(Ok(true));
        } else if self.lanes.get(&endpoint).is_some_and(unrecorded) {
            self.asked.push((endpoint, message, reply));
        } else {
            let _gone = reply.send(Ok(false));
        }
    }

    /// Whether a background task may put something into the lane: nothing of it is on disk only,
    /// and its endpoint is not switched off.
    pub(super) fn has_room(&self, endpoint: EndpointKey) -> bool {
        let Some(lane) = self.lanes.get(&endpoint) else { return !self.draining };
        let shut = match &lane.home {
            Home::Known(known) => known.is_shut(),
            Home::Unknown => false,
            Home::Deleted => true,
        };
        !self.draining && !shut && !lane.book.is_parked()
    }

    /// A result of this endpoint is committed: questions that waited for it are asked again.
    pub(super) fn ask_again(&mut self, endpoint: EndpointKey) {
        if self.asked.is_empty() {
            return;
        }
        for (asked_of, message, reply) in std::mem::take(&mut self.asked) {
            if asked_of == endpoint {
                self.in_flight(endpoint, message, reply);
            } else {
                self.asked.push((asked_of, message, reply));
            }
        }
    }

    /// Results cannot be committed now, and neither could what is asked for.
    pub(super) fn refuse_asked(&mut self, error: &StoreError) {
        for (_, _, reply) in self.asked.drain(..) {
            let _gone = reply.send(Err(error.clone()));
        }
    }

    /// No new sends; what is in flight has `grace` to end.
    pub(super) fn drain(&mut self, grace: Duration) {
        self.draining = true;
        self.report(async move {
            tokio::time::sleep(grace).await;
            Command::DrainOver
        });
    }

    /// What is still in flight is dropped and stays pending.
    pub(super) fn drain_over(&mut self) {
        self.flights.abort();
    }

    /// Whether draining is over: nothing in flight, nothing unrecorded that can be recorded.
    pub(super) fn is_done(&self) -> bool {
        self.draining
            && self.flights.count() == 0
            && (self.results.unrecorded == 0 || self.results.failures >= DRAIN_FAILURES_MAX)
    }
}

fn view(gate: &Gate, now: Timestamp) -> BreakerView {
    let snapshot = gate.breaker().snapshot();
    let suspended = gate.suspended();
    let open_until = snapshot.open_until.filter(|_| snapshot.forced.is_none());
    BreakerView {
        state: gate.state_name(now),
        since: suspended.map_or(snapshot.since, |on| on.since),
        open_until: suspended.map_or(open_until, |on| Some(on.probe_at)),
        consecutive_failures: gate.breaker().consecutive_failures(),
        forced: snapshot.forced,
        hold: None,
        as_of: now,
    }
}
