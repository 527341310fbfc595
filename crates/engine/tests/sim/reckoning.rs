//! What must hold at a crash, and once everything has come to rest.
//!
//! Never: excuse more than a crash, a resend or a replay explains.

use std::collections::{BTreeMap, BTreeSet};

use domain::dead_letter::DeadReason;
use domain::delivery::{DeliveryState, Trigger};
use domain::ids::{EndpointKey, MessageKey};
use domain::notice::News;
use futures_util::FutureExt;
use resilience::{Clock, Forced, Timestamp};
use store::dead_letters::DeadFilter;
use store::ledger::{LaneState, Told};
use store::memory::MemoryStore;
use store::notices::Notices;
use store::queue::Queue;
use store::recoveries::Recoveries;

use super::oracle::{Oracle, Seen};

impl Oracle {
    /// The process died: what was out or not recorded may be sent again.
    pub fn crashed(&mut self, image: &MemoryStore) {
        self.check_kept(image);
        let recorded: BTreeSet<(MessageKey, EndpointKey, Timestamp)> = image
            .all_attempts()
            .into_iter()
            .map(|row| (row.message, row.endpoint, row.attempt.started_at))
            .collect();
        // What is pruned is not sent again.
        let kept: BTreeSet<MessageKey> =
            image.all_messages().iter().map(|message| message.key).collect();
        let lost: Vec<Seen> = (self.hits.iter())
            .filter(|hit| hit.life == self.life && kept.contains(&hit.seen.message))
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
        self.watch_outages();
        self.check_mails(image, &lanes);
        for (endpoint, known) in &mut self.known {
            known.hold_until = None;
            let kept = lanes.iter().find(|lane| lane.endpoint == *endpoint);
            let forced = kept.and_then(|lane| lane.breaker.forced);
            known.forced_open = known.forced_open && forced == Some(Forced::Open);
        }
        self.note("crash");
    }

    /// What owners were written is what the lanes say, each step once and none left out.
    fn check_mails(&mut self, image: &MemoryStore, lanes: &[LaneState]) {
        let mails =
            image.mails(0, usize::MAX).now_or_never().expect("at once").expect("no failure");
        let mut wrong: Vec<String> = Vec::new();
        for &endpoint in self.known.keys() {
            let mut told = Told::default();
            for mail in mails.iter().filter(|mail| mail.endpoint == endpoint) {
                let (before, at) = (told, Some(mail.at));
                told = match mail.news {
                    News::EndpointFailing { .. } => Told { warned: true, ..before },
                    News::EndpointSuspended { .. } => Told { suspended_since: at, ..before },
                    _ => Told::default(),
                };
                let fits = match mail.news {
                    News::EndpointFailing { .. } | News::EndpointSuspended { .. } => {
                        before.suspended_since.is_none()
                    }
                    _ => before.suspended_since.is_some(),
                };
                if !fits {
                    wrong.push(format!("{mail:?} after {before:?}"));
                }
            }
            let kept = lanes.iter().find(|lane| lane.endpoint == endpoint);
            let on = kept.is_some_and(|lane| lane.suspended.is_some());
            if on != told.suspended_since.is_some() && !self.known[&endpoint].deleted {
                wrong
                    .push(format!("{endpoint:?} is suspended: {on}, and its owner knows {told:?}"));
            }
        }
        wrong.into_iter().for_each(|text| self.wrong(text));
    }

    /// What is gone was old enough, and what is pending or dead has its message and its payload.
    fn check_kept(&mut self, image: &MemoryStore) {
        let (now, keep) = (self.clock.now(), self.limits.retention);
        let messages: BTreeMap<MessageKey, bool> = (image.all_messages().iter())
            .map(|message| (message.key, message.payload_gone))
            .collect();
        let gone = |key: &&MessageKey| !messages.contains_key(key);
        let mut wrong: Vec<String> = Vec::new();
        for key in self.stored.iter().filter(gone) {
            if key.time() >= now.minus(keep.messages) && !self.stepped {
                wrong.push(format!("{key:?} is gone before its time"));
            }
        }
        for (key, _) in messages.iter().filter(|(_, payload_gone)| **payload_gone) {
            let old = key.time() < now.minus(keep.payload) || self.stepped;
            if !old && !self.expunged.contains_key(key) {
                wrong.push(format!("the payload of {key:?} is gone before its time"));
            }
        }
        let waiting = image.all_pending().into_iter().map(|row| row.message);
        let dead = self.letters(DeadFilter::default()).into_iter().map(|letter| letter.message);
        for key in waiting.chain(dead) {
            match messages.get(&key) {
                None => wrong.push(format!("{key:?} is gone and a delivery of it is not over")),
                Some(true) if !self.expunged.contains_key(&key) => {
                    wrong.push(format!("{key:?} has no payload and a delivery of it is not over"));
                }
                Some(_) => {}
            }
        }
        wrong.into_iter().for_each(|text| self.wrong(text));
        self.stored.extend(messages.into_keys());
    }

    /// Everything has come to rest.
    pub fn at_rest(&mut self, accepted: &BTreeSet<MessageKey>) {
        let stored: BTreeSet<MessageKey> =
            self.store.all_messages().iter().map(|message| message.key).collect();
        let oldest = self.clock.now().minus(self.limits.retention.messages);
        for key in accepted.difference(&stored) {
            if key.time() < oldest || self.stepped {
                continue;
            }
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
        self.check_outages();
        self.check_counts();
    }

    /// What died of an outage that is over was put back and arrived, where that is wanted.
    fn check_outages(&mut self) {
        self.watch_outages();
        let gone: BTreeSet<MessageKey> = (self.store.all_messages().iter())
            .filter(|message| message.payload_gone)
            .map(|message| message.key)
            .collect();
        let reasons = vec![DeadReason::Exhausted, DeadReason::Expired];
        for letter in self.letters(DeadFilter { reasons, ..DeadFilter::default() }) {
            let known = &self.known[&letter.endpoint];
            let excused = !known.automatic || known.deleted || known.shut || self.stepped;
            // It failed again and does not work yet: it is owed still.
            let owed = self.store.recovery(letter.endpoint).now_or_never();
            let owed = owed.expect("at once").expect("no failure");
            let waits = owed.is_some_and(|owed| !owed.ready && letter.dead_at >= owed.since);
            if excused || waits || gone.contains(&letter.message) {
                continue;
            }
            let holds = |((endpoint, since), until): (&(EndpointKey, Timestamp), &Option<_>)| {
                let over = until.is_some_and(|until| letter.dead_at <= until);
                *endpoint == letter.endpoint && letter.dead_at >= *since && over
            };
            if self.outages.iter().any(holds) {
                self.faults.push(format!("{letter:?} died of an outage that is over"));
            }
        }
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
        // Of each delivery, and how many of them were the first after a replay.
        let mut made: BTreeMap<(MessageKey, EndpointKey), (u32, u32)> = BTreeMap::new();
        for row in self.store.all_attempts() {
            if !row.attempt.trigger.is_extra() {
                let made = made.entry((row.message, row.endpoint)).or_default();
                made.0 += 1;
                made.1 += u32::from(row.attempt.trigger == Trigger::Replay);
            }
        }
        for (delivery, (count, replays)) in made {
            if count > self.limits.attempts_max * (1 + replays) {
                self.faults.push(format!("{delivery:?}: {count} attempts, {replays} replays"));
            }
        }
    }
}
