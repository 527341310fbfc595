//! What the receiver saw, message by message: one slot each, without locks on the way of a request.
//!
//! In: arrivals and answers. Out: counts, first-arrival times, repeats.
//! Never: forget a request; what carries no number of ours is counted as a stranger.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::machine::now_us;
use crate::payload::Said;
use crate::stats::Times;

/// One message.
#[derive(Debug, Default)]
struct Slot {
    /// Requests that came.
    requests: AtomicU16,
    /// Requests answered 2xx.
    oks: AtomicU16,
    /// From its send time to its first request.
    latency_us: AtomicU32,
    /// When its first 2xx went out.
    done_at_us: AtomicU64,
}

/// Counts over all messages.
#[derive(Debug, Default)]
pub(crate) struct Board {
    slots: Box<[Slot]>,
    /// Requests that came, strangers included.
    requests: AtomicU64,
    /// Requests whose body was not ours, or whose number was out of range.
    strangers: AtomicU64,
    /// Messages answered 2xx at least once.
    done: AtomicU64,
    /// Requests that ended when their message had been answered 2xx already.
    repeats: AtomicU64,
    /// Requests under way.
    in_flight: AtomicU64,
    /// `webhook-id` by message number, and requests that came under a second one; only when asked
    /// for.
    ids: Option<Mutex<Ids>>,
    /// Flaky paths refuse everything at the moment.
    outage: AtomicBool,
}

#[derive(Debug, Default)]
struct Ids {
    by_seq: HashMap<u32, Box<str>>,
    clashes: u64,
}

/// Counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Requests that came.
    pub(crate) requests: u64,
    /// Requests that carried no number of ours.
    pub(crate) strangers: u64,
    /// Messages answered 2xx at least once.
    pub(crate) done: u64,
    /// Requests that ended when their message had been answered 2xx already.
    pub(crate) repeats: u64,
    /// Requests under way.
    pub(crate) in_flight: u64,
}

impl Board {
    /// For message numbers below `messages`.
    pub(crate) fn new(messages: u32) -> Self {
        let slots = (0..messages).map(|_| Slot::default()).collect();
        Self { slots, ..Self::default() }
    }

    /// The same, and `webhook-id`s are kept too.
    pub(crate) fn with_ids(messages: u32) -> Self {
        Self { ids: Some(Mutex::default()), ..Self::new(messages) }
    }

    /// A request came. Answers how many came for this message before.
    pub(crate) fn arrived(&self, said: Option<Said>, webhook_id: &[u8]) -> u16 {
        self.requests.fetch_add(1, Relaxed);
        self.in_flight.fetch_add(1, Relaxed);
        let Some((said, slot)) = said.and_then(|said| Some((said, self.slot(said.seq)?))) else {
            self.strangers.fetch_add(1, Relaxed);
            return 0;
        };
        let before = slot.requests.fetch_add(1, Relaxed);
        if before == 0 {
            let took = now_us().saturating_sub(said.at_us);
            slot.latency_us.store(u32::try_from(took).unwrap_or(u32::MAX), Relaxed);
        }
        self.note_id(said.seq, webhook_id);
        before
    }

    /// The answer to a request went out, or its connection ended first.
    pub(crate) fn answered(&self, said: Option<Said>, ok: bool) {
        self.in_flight.fetch_sub(1, Relaxed);
        let Some(slot) = said.and_then(|said| self.slot(said.seq)) else { return };
        let before = if ok { slot.oks.fetch_add(1, Relaxed) } else { slot.oks.load(Relaxed) };
        if before > 0 {
            self.repeats.fetch_add(1, Relaxed);
        } else if ok {
            slot.done_at_us.store(now_us(), Relaxed);
            self.done.fetch_add(1, Relaxed);
        }
    }

    /// Begins or ends an outage of the flaky paths.
    pub(crate) fn set_outage(&self, outage: bool) {
        self.outage.store(outage, Relaxed);
    }

    /// Whether the flaky paths have an outage.
    pub(crate) fn outage(&self) -> bool {
        self.outage.load(Relaxed)
    }

    /// Counts now.
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            requests: self.requests.load(Relaxed),
            strangers: self.strangers.load(Relaxed),
            done: self.done.load(Relaxed),
            repeats: self.repeats.load(Relaxed),
            in_flight: self.in_flight.load(Relaxed),
        }
    }

    /// How many of these messages were answered 2xx.
    pub(crate) fn done_in(&self, seqs: Range<u32>) -> u32 {
        self.count(seqs, |slot| slot.oks.load(Relaxed) > 0)
    }

    /// How many of these messages came at all.
    pub(crate) fn seen_in(&self, seqs: Range<u32>) -> u32 {
        self.count(seqs, |slot| slot.requests.load(Relaxed) > 0)
    }

    /// Whether this message was answered 2xx.
    pub(crate) fn is_done(&self, seq: u32) -> bool {
        self.slot(seq).is_some_and(|slot| slot.oks.load(Relaxed) > 0)
    }

    /// When the last of these messages was answered 2xx for the first time.
    pub(crate) fn last_done_us(&self, seqs: Range<u32>) -> u64 {
        self.range(seqs).iter().map(|slot| slot.done_at_us.load(Relaxed)).max().unwrap_or(0)
    }

    /// When this message was answered 2xx for the first time, if it was.
    pub(crate) fn done_at_us(&self, seq: u32) -> Option<u64> {
        let at = self.slot(seq)?.done_at_us.load(Relaxed);
        (at > 0).then_some(at)
    }

    /// From send time to first request, of those of these messages that came.
    pub(crate) fn latencies(&self, seqs: Range<u32>) -> Times {
        let came = self.range(seqs).iter().filter(|slot| slot.requests.load(Relaxed) > 0);
        Times::new(came.map(|slot| slot.latency_us.load(Relaxed)).collect())
    }

    /// The `webhook-id` a message came with, when ids are kept.
    pub(crate) fn id_of(&self, seq: u32) -> Option<Box<str>> {
        let ids = self.ids.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        ids.by_seq.get(&seq).cloned()
    }

    /// Requests that came for one message under a second `webhook-id`.
    pub(crate) fn id_clashes(&self) -> u64 {
        let Some(ids) = &self.ids else { return 0 };
        ids.lock().unwrap_or_else(PoisonError::into_inner).clashes
    }

    fn note_id(&self, seq: u32, webhook_id: &[u8]) {
        let Some(ids) = &self.ids else { return };
        let text = String::from_utf8_lossy(webhook_id);
        let mut ids = ids.lock().unwrap_or_else(PoisonError::into_inner);
        match ids.by_seq.get(&seq) {
            None => drop(ids.by_seq.insert(seq, text.into())),
            Some(first) if **first != *text => ids.clashes += 1,
            Some(_) => {}
        }
    }

    fn slot(&self, seq: u32) -> Option<&Slot> {
        self.slots.get(usize::try_from(seq).ok()?)
    }

    fn range(&self, seqs: Range<u32>) -> &[Slot] {
        self.slots.get(seqs.start as usize..seqs.end as usize).unwrap_or(&[])
    }

    fn count(&self, seqs: Range<u32>, holds: impl Fn(&Slot) -> bool) -> u32 {
        let count = self.range(seqs).iter().filter(|slot| holds(slot)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_ones_and_repeats_are_told_apart() {
        let board = Board::with_ids(4);
        let said = Some(Said { seq: 1, at_us: 0 });
        assert_eq!(board.arrived(said, b"msg_1"), 0);
        board.answered(said, false);
        assert_eq!(board.arrived(said, b"msg_1"), 1);
        board.answered(said, true);
        assert_eq!(board.arrived(said, b"msg_2"), 2);
        board.answered(said, true);
        board.arrived(Some(Said { seq: 9, at_us: 0 }), b"");
        board.arrived(None, b"");
        let counts = board.counts();
        assert_eq!((counts.requests, counts.strangers, counts.in_flight), (5, 2, 2));
        assert_eq!((counts.done, counts.repeats, board.id_clashes()), (1, 1, 1));
        assert_eq!((board.done_in(0..4), board.seen_in(0..1)), (1, 0));
        assert_eq!(board.latencies(0..4).len(), 1);
        assert_eq!(board.id_of(1).as_deref(), Some("msg_1"));
        assert!(board.is_done(1) && !board.is_done(9));
    }
}
