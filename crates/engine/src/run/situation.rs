//! Where a delivery is in its lane, for whoever asks why it is not sent.
//!
//! Never: change anything.

use domain::ids::{EndpointKey, MessageKey};
use resilience::Timestamp;
use tokio::sync::oneshot;

use super::Dispatcher;
use super::lane::{Home, Lane};
use crate::parts::{Paused, Situation};

impl Dispatcher {
    pub(super) fn show_situation(
        &self,
        (endpoint, message): (EndpointKey, MessageKey),
        reply: oneshot::Sender<Situation>,
        now: Timestamp,
    ) {
        let _gone = reply.send(self.situation(endpoint, message, now));
    }

    /// What is known of a delivery and of its lane.
    fn situation(&self, endpoint: EndpointKey, message: MessageKey, now: Timestamp) -> Situation {
        let lane = self.lanes.get(&endpoint);
        let gate = lane.and_then(|lane| match &lane.home {
            Home::Known(known) => Some(&known.gate),
            Home::Unknown | Home::Deleted => None,
        });
        let out = lane.map_or(0, |lane| u32::try_from(lane.in_flight).unwrap_or(u32::MAX));
        Situation {
            in_flight: self.flights.has(endpoint, message),
            breaker: self.breaker(endpoint, now),
            next: self.next_send(endpoint, now),
            rate_until: gate.and_then(|gate| gate.rate_until(now)),
            window: (out, gate.map_or(self.settings.window_start, |gate| gate.window())),
            behind: lane.and_then(Lane::first).filter(|first| *first != message),
            paused: self.paused(now),
        }
    }

    /// What keeps every lane back.
    fn paused(&self, now: Timestamp) -> Option<Paused> {
        if self.draining {
            Some(Paused::Stopping)
        } else if self.storage.holds_back() {
            Some(Paused::Storage)
        } else if self.own_fault.paused_until(now).is_some() || self.own_fault.one_at_a_time() {
            Some(Paused::OwnFault)
        } else if self.suspects.wants_silence(now) {
            Some(Paused::Suspect)
        } else {
            self.is_full(now).then_some(Paused::Full)
        }
    }
}

impl Lane {
    /// What a lane in order sends first, or what blocks it.
    fn first(&self) -> Option<MessageKey> {
        let Home::Known(known) = &self.home else { return None };
        let head = || self.book.head().map(|head| head.pending.message);
        if self.is_at_gap() {
            self.gap.dead()
        } else if known.is_ordered() {
            head()
        } else {
            None
        }
    }
}
