//! Turns: each lane with work may start one send, then the next lane has its turn.
//!
//! A lane that may not start says what it waits for: a time, a result of its own, or room among all
//! sends.
//! Never: a second send for a lane before every other lane with work had its turn.

use domain::ids::EndpointKey;
use domain::nodes::Standing;
use resilience::Timestamp;

use super::Dispatcher;
use super::lane::Home;
use super::step::{Step, TakeOff};
use crate::admit::Decision;

/// Rows a held lane keeps in memory.
const HELD_IDS_MAX: usize = 64;
/// Lanes that wait for room and are asked again after each result. All of them are asked each
/// second.
const FED_MAX: usize = 4;

impl Dispatcher {
    /// Lets lanes start sends until nothing more may start.
    pub(super) fn serve(&mut self, now: Timestamp) {
        let mut starts = Vec::new();
        while !self.is_full(now) {
            let Some(endpoint) = self.turn.pop_front() else { break };
            let Some(lane) = self.lanes.get_mut(&endpoint) else { continue };
            lane.queued = false;
            match self.step(endpoint, now, &mut starts) {
                Step::Again => self.enqueue(endpoint),
                Step::Rest => self.rest(endpoint),
                Step::Until(at) => {
                    self.rest(endpoint);
                    self.set_timer(endpoint, at);
                    self.ask_health(endpoint, now);
                }
                Step::Starved => self.starve(endpoint),
            }
        }
        if self.flights.count() > 1 {
            self.end_solitude(now);
        }
        self.flights.write();
        for start in starts {
            self.take_off(start);
        }
    }

    fn rest(&mut self, endpoint: EndpointKey) {
        if let Some(due) = self.lanes.get(&endpoint).and_then(|lane| lane.book.next_due()) {
            self.set_timer(endpoint, due);
        }
    }

    fn starve(&mut self, endpoint: EndpointKey) {
        if let Some(lane) = self.lanes.get_mut(&endpoint)
            && !std::mem::replace(&mut lane.starved, true)
        {
            self.starved.push_back(endpoint);
        }
    }

    /// After a result there is room: some of the lanes that wait for it get their turn.
    pub(super) fn feed_starved(&mut self) {
        self.feed(FED_MAX);
    }

    /// All lanes that wait for room get their turn.
    pub(super) fn feed_all(&mut self) {
        self.feed(self.starved.len());
    }

    fn feed(&mut self, count: usize) {
        for _ in 0..count {
            let Some(endpoint) = self.starved.pop_front() else { return };
            if let Some(lane) = self.lanes.get_mut(&endpoint) {
                lane.starved = false;
            }
            self.enqueue(endpoint);
        }
    }

    /// Whether no send at all may start now.
    pub(super) fn is_full(&self, now: Timestamp) -> bool {
        let out = self.flights.count();
        self.draining
            || self.share.standing() != Standing::Holds
            || out >= self.settings.sends_max
            || self.flights.bytes() >= self.settings.send_bytes_max
            || self.results.unrecorded >= self.settings.unrecorded_max
            || self.own_fault.paused_until(now).is_some()
            || (self.own_fault.one_at_a_time() && out > 0)
            || self.suspects.wants_silence(now)
            || self.storage.holds_back()
    }

    fn step(&mut self, endpoint: EndpointKey, now: Timestamp, starts: &mut Vec<TakeOff>) -> Step {
        if !self.homes.serves(endpoint) {
            return Step::Rest;
        }
        self.refill_if_wanted(endpoint, now);
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return Step::Rest };
        if lane.unrecorded >= self.settings.lane_unrecorded_max {
            return Step::Rest;
        }
        let known = match &lane.home {
            Home::Unknown if lane.loading == 0 => {
                self.load(endpoint);
                return Step::Rest;
            }
            Home::Unknown => return Step::Rest,
            Home::Deleted => return self.cancel_one(endpoint),
            Home::Known(known) => known,
        };
        let ordered = known.is_ordered();
        let blocked = known.is_strict() && lane.gap.blocks();
        if ordered && (lane.unrecorded > 0 || lane.book.is_in_doubt()) {
            // The next send starts after the commit of the previous result, and when it is known
            // which is next.
            return Step::Rest;
        }
        if known.is_shut() {
            return self.expire_head(endpoint, now).unwrap_or(Step::Rest);
        }
        let in_flight = u32::try_from(lane.in_flight).unwrap_or(u32::MAX);
        if lane.manual_may_go(ordered && !blocked) {
            match known.gate.decide_manual(in_flight, now) {
                Decision::Wait(None) => return Step::Rest,
                Decision::Wait(Some(at)) => return Step::Until(at),
                Decision::Go | Decision::Probe => return self.start_manual(endpoint, now, starts),
            }
        }
        let decision = known.gate.decide(in_flight, now);
        if let Some(step) = self.expire_head(endpoint, now) {
            return step;
        }
        if blocked {
            self.ask_of_gap(endpoint);
            return Step::Rest;
        }
        match decision {
            Decision::Wait(None) => Step::Rest,
            Decision::Wait(Some(at)) => Step::Until(at),
            Decision::Go => self.start(endpoint, false, now, starts),
            Decision::Probe => self.start(endpoint, true, now, starts),
        }
    }

    /// How many ids a lane may hold in memory now.
    pub(super) fn room(&self, endpoint: EndpointKey, now: Timestamp) -> usize {
        let Some(lane) = self.lanes.get(&endpoint) else { return 0 };
        let held = match &lane.home {
            Home::Known(known) => known.is_held(now),
            Home::Unknown | Home::Deleted => true,
        };
        let most = self.settings.lane_ids_max;
        let room = if held { most.min(HELD_IDS_MAX) } else { most };
        if self.ids < self.settings.ids_max { room } else { room.min(1) }
    }

    /// Whether the shares of the others leave room for one more send of this lane.
    pub(super) fn has_share(&self, in_flight: usize, failed_last: bool, probe: bool) -> bool {
        let (out, most) = (self.flights.count(), self.settings.sends_max);
        if probe && self.flights.probes() * 10 >= most.max(10) {
            return false;
        }
        if out * 4 >= most * 3 && (in_flight > 0 || failed_last) {
            return false;
        }
        out * 2 <= most || in_flight < (most / self.busy_lanes.max(1)).max(1)
    }
}
