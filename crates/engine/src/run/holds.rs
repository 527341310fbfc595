//! Holds: when they end early, what holds a lane, and when what is due in it may be sent.
//!
//! A hold after refusals says something of an endpoint as it was: it ends when what was refused is
//! changed, and is asked again when somebody puts a delivery back by hand.
//! Never: end what a receiver asked for.

use std::sync::Arc;
use std::time::Duration;

use domain::attempt::Attempt;
use domain::classify::Class;
use domain::endpoint::Endpoint;
use domain::ids::{EndpointKey, MessageKey};
use resilience::Timestamp;
use store::StoreError;
use store::ledger::LaneState;
use store::nodes::Order;
use tokio::sync::oneshot;

use super::lane::{Home, Known, Lane, server_gate};
use super::{Command, Dispatcher, home};
use crate::admit::{Decision, Gate, Held, HeldBy, Settled};
use crate::parts::NextSend;

impl Dispatcher {
    /// A copy of an endpoint was read, perhaps a newer one than its lane has.
    pub(super) fn take_in(&mut self, endpoint: &Arc<Endpoint>, now: Timestamp) {
        let key = endpoint.key;
        if !self.homes.serves(key) {
            return;
        }
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        match &mut lane.home {
            Home::Known(known) => {
                let renewed = known.renew(endpoint, &self.settings, now);
                if renewed.is_strict_now {
                    lane.gap.forget();
                }
                if renewed.wait_ended
                    && let Some(state) = known.changed_state()
                {
                    self.keep_lane(state);
                }
            }
            home @ Home::Unknown => {
                let kept = self.kept.remove(&key);
                let known = Known::new(Arc::clone(endpoint), kept, &self.settings, now);
                *home = Home::Known(Box::new(known));
            }
            // A read that was overtaken by a later one.
            Home::Deleted => {}
        }
    }

    /// An endpoint changed that has not been read since the start. How it differs is not known: a
    /// hold after refusals ends in any case, and if its breaker is open or it is suspended a probe
    /// may go.
    pub(super) fn trust_unread(&mut self, endpoint: EndpointKey) {
        let now = self.seen_at;
        // What is known of a lane of another node is only shown.
        if self.homes.of(endpoint) == home::Home::Elsewhere {
            return;
        }
        let Some(kept) = self.kept.get_mut(&endpoint) else { return };
        let before = kept.clone();
        if let Some(on) = &mut kept.suspended {
            on.probe_at = on.probe_at.min(now);
        }
        if let Some(until) = &mut kept.breaker.open_until {
            *until = now.min(*until);
        }
        if kept.rejected_until.take().is_some() {
            kept.rejected_for = Duration::ZERO;
            kept.rejected_since = None;
        }
        if *kept != before {
            let state = kept.clone();
            self.keep_lane(state);
        }
    }

    fn keep_lane(&self, state: LaneState) {
        let endpoint = state.endpoint;
        let kept = self.stores.ledger.keep_lanes(vec![state]);
        self.report(async move { Command::LaneKept(endpoint, kept.await) });
    }

    /// What could not be kept is written with the next result.
    pub(super) fn lane_kept(&mut self, endpoint: EndpointKey, answer: &Result<(), StoreError>) {
        if let Err(error) = answer {
            tracing::warn!(endpoint = endpoint.0, %error, "the end of a hold was not kept");
            if let Some(known) = self.known(endpoint) {
                known.kept = None;
            }
        }
    }

    /// Somebody put this delivery back by hand: if refusals hold its lane, it finds out whether the
    /// receiver still refuses.
    pub(super) fn let_one(&mut self, endpoint: EndpointKey, message: MessageKey) {
        if self.homes.of(endpoint) == home::Home::Elsewhere {
            drop(self.stores.nodes.order(endpoint, Order::LetOne(message)));
            return;
        }
        let now = self.clock.now();
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return };
        match &mut lane.home {
            Home::Known(known) => known.gate.let_one(now),
            Home::Unknown => {
                if let Some(until) =
                    self.kept.get_mut(&endpoint).and_then(|kept| kept.rejected_until.as_mut())
                {
                    *until = now;
                }
            }
            Home::Deleted => return,
        }
        lane.favoured = Some(message);
        self.enqueue(endpoint);
    }

    /// A send by hand says nothing to breaker and window, but its success ends a hold after
    /// refusals, and a suspension.
    pub(super) fn settle_manual(
        &mut self,
        key: EndpointKey,
        attempt: &Attempt,
        class: Class,
    ) -> Settled {
        let now = self.seen_at;
        match (class, self.known(key)) {
            (Class::Success, Some(known)) => known.gate.succeed_by_hand(attempt.started_at, now),
            _ => Settled::default(),
        }
    }

    /// What holds the lane beside its breaker.
    pub(super) fn held(&self, endpoint: EndpointKey, now: Timestamp) -> Option<Held> {
        match self.lanes.get(&endpoint) {
            Some(lane) if !matches!(lane.home, Home::Unknown) => lane.held(now),
            _ => self.kept_gate(endpoint, now)?.held(now),
        }
    }

    /// When what is due in these lanes may be sent.
    pub(super) fn next_sends(
        &self,
        endpoints: &[EndpointKey],
        reply: oneshot::Sender<Vec<NextSend>>,
        now: Timestamp,
    ) {
        let next = endpoints.iter().map(|endpoint| self.next_send(*endpoint, now)).collect();
        let _gone = reply.send(next);
    }

    pub(super) fn next_send(&self, endpoint: EndpointKey, now: Timestamp) -> NextSend {
        let lane = self.lanes.get(&endpoint);
        let waits = match lane.map(|lane| (&lane.home, lane)) {
            Some((Home::Known(known), lane)) if !lane.is_at_gap() => known.gate.waits(now),
            Some((Home::Known(_), _)) => Decision::Wait(None),
            Some((Home::Deleted, _)) => return NextSend::Unknown,
            Some((Home::Unknown, _)) | None => {
                self.kept_gate(endpoint, now).map_or(Decision::Go, |gate| gate.waits(now))
            }
        };
        match waits {
            Decision::Go | Decision::Probe => NextSend::WhenDue,
            Decision::Wait(Some(until)) => NextSend::NotBefore(until),
            Decision::Wait(None) => NextSend::Unknown,
        }
    }

    /// The gate of a lane whose endpoint was not read since the start.
    pub(super) fn kept_gate(&self, endpoint: EndpointKey, now: Timestamp) -> Option<Gate> {
        let kept = self.kept.get(&endpoint)?;
        Some(Gate::restore(server_gate(&self.settings), kept, now))
    }
}

impl Lane {
    /// Whether a dead letter is known that nothing is sent past.
    pub(super) fn is_at_gap(&self) -> bool {
        let strict = matches!(&self.home, Home::Known(known) if known.is_strict());
        strict && self.gap.dead().is_some()
    }

    /// What holds it beside its breaker.
    pub(super) fn held(&self, now: Timestamp) -> Option<Held> {
        let Home::Known(known) = &self.home else { return None };
        let gap = || Some(Held { by: HeldBy::Gap, until: None, run: None });
        if self.is_at_gap() { gap() } else { known.gate.held(now) }
    }
}
