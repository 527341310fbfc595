//! Once a second every lane is looked at: figures of all, held lanes whose rows grow old, idle ones
//! to forget.
//!
//! With very many lanes that takes its time, so it is done in pieces, one in each turn: what is
//! sent and answered meanwhile waits for a piece and not for all. The figures are shown when the
//! last piece is done.
//! Never: begin a round before the last one has ended.

use resilience::Timestamp;

use super::Dispatcher;
use super::round::{Round, Seen, Wants};

/// Lanes kept before idle ones are forgotten.
const LANES_MAX: usize = 20_000;

impl Dispatcher {
    /// Begins a round, unless one is on its way.
    pub(super) fn look_around(&mut self) {
        self.show();
        self.feed_all();
        if self.round.is_none() {
            self.round = Some(Round::over(self.lanes.keys().copied()));
        }
    }

    /// The next piece of a round, if one is on its way.
    pub(super) fn look_on(&mut self, now: Timestamp) {
        let Some(mut round) = self.round.take() else { return };
        let mut idle = Vec::new();
        for endpoint in round.piece() {
            let Some(lane) = self.lanes.get(&endpoint) else { continue };
            if let Wants::Sweep(blocked) = round.seen.count(lane, now) {
                idle.push((endpoint, blocked));
            } else if self.lanes.len() > LANES_MAX && lane.may_be_forgotten(now) {
                self.lanes.remove(&endpoint);
            }
        }
        idle.sort_unstable();
        for (endpoint, blocked) in idle {
            self.sweep(endpoint, now);
            if blocked {
                self.ask_again_of_gap(endpoint);
            }
        }
        if round.is_over() {
            self.tell_seen(&round.seen);
        } else {
            self.round = Some(round);
        }
    }

    fn tell_seen(&self, seen: &Seen) {
        self.telemetry.lanes_held.set(f64::from(seen.held));
        self.telemetry.holds(seen.holds);
        self.telemetry.breakers_open.set(f64::from(seen.open));
        self.telemetry.breakers_half_open.set(f64::from(seen.half_open));
        self.telemetry.suspended.set(f64::from(seen.suspended));
    }
}
