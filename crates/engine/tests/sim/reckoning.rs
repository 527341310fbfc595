//! What must hold at a crash, and once everything has come to rest.
//!
//! Never: excuse more than a crash, a resend or a replay explains.

use std::collections::{BTreeMap, BTreeSet};

use domain::delivery::{DeliveryState, Trigger};
use domain::ids::{EndpointKey, MessageKey};
use futures_util::FutureExt;
use resilience::{Forced, Timestamp};
use store::memory::MemoryStore;
use store::queue::Queue;

use super::oracle::{Oracle, Seen};

impl Oracle {
    /// The process died: what was out or not recorded may be sent again.
    pub fn crashed(&mut self, image: &MemoryStore) {
        let recorded: BTreeSet<(MessageKey, EndpointKey, Timestamp)> = image
            .all_attempts()
            .into_iter()
            .map(|row| (row.message, row.endpoint, row.attempt.started_at))
            .collect();
        let lost: Vec<Seen> = (self.hits.iter())
            .filter(|hit| hit.life == self.life)
            .filter(|hit| !recorded.contains(&(hit.seen.message, hit.seen.endpoint, hit.wall)))
            .filter(|hit| hit.status.is_none_or(|status| status != 0))
            .map(|hit| hit.seen)
            .collect();
        let most = self.limits.sends_max + self.limits.unrecorded_max + self.limits.sends_max;
        if lost.len() > most {
            self.wrong(format!("{} results lost in a crash", lost.len()));
        }
        for seen in lost {
            *self.excused.entry((seen.message, seen.endpoint)).or_default() += 1;
        }
        let lanes = image.lane_states().now_or_never().expect("at once").expect("no failure");
        for (endpoint, known) in &mut self.known {
            known.hold_until = None;
            let kept = lanes.iter().find(|lane| lane.endpoint == *endpoint);
            let forced = kept.and_then(|lane| lane.breaker.forced);
            known.forced_open = known.forced_open && forced == Some(Forced::Open);
        }
        self.note("crash");
    }

    /// Everything has come to rest.
    pub fn at_rest(&mut self, accepted: &BTreeSet<MessageKey>) {
        let stored: BTreeSet<MessageKey> =
            self.store.all_messages().iter().map(|message| message.key).collect();
        for key in accepted.difference(&stored) {
            self.faults.push(format!("{key:?} was acknowledged and is not stored"));
        }
        let deliveries: BTreeMap<(MessageKey, EndpointKey), DeliveryState> = (self.store)
            .all_deliveries()
            .into_iter()
            .map(|(message, row)| ((message, row.endpoint), row.state))
            .collect();
        let endpoints: Vec<(EndpointKey, bool)> =
            self.known.iter().map(|(key, known)| (*key, known.deleted)).collect();
        for &message in &stored {
            for &(endpoint, deleted) in &endpoints {
                match deliveries.get(&(message, endpoint)) {
                    None if !deleted => {
                        self.faults.push(format!("{message:?} to {endpoint:?} is lost"));
                    }
                    Some(DeliveryState::Pending) => {
                        self.faults.push(format!("{message:?} to {endpoint:?} is still pending"));
                    }
                    _ => {}
                }
            }
        }
        self.check_counts();
    }

    fn check_counts(&mut self) {
        let mut received: BTreeMap<(MessageKey, EndpointKey), u32> = BTreeMap::new();
        for hit in self.hits.iter().filter(|hit| hit.status.is_some_and(|status| status / 100 == 2))
        {
            *received.entry((hit.seen.message, hit.seen.endpoint)).or_default() += 1;
        }
        for (delivery, count) in received {
            let excused = self.excused.get(&delivery).copied().unwrap_or(0);
            if count > 1 + excused {
                self.faults
                    .push(format!("{delivery:?} was received {count} times, {excused} excused"));
            }
        }
        let mut made: BTreeMap<(MessageKey, EndpointKey), u32> = BTreeMap::new();
        for row in self.store.all_attempts() {
            if row.attempt.trigger == Trigger::Scheduled {
                *made.entry((row.message, row.endpoint)).or_default() += 1;
            }
        }
        for (delivery, count) in made {
            let replays = self.replays.get(&delivery).copied().unwrap_or(0);
            if count > self.limits.attempts_max * (1 + replays) {
                self.faults.push(format!("{delivery:?}: {count} attempts, {replays} replays"));
            }
        }
    }
}
