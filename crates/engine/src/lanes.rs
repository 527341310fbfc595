//! A lane: the due work of one endpoint, as ids in memory, and the rules that make it exact.
//!
//! A lane owns an id from hand-over or refill until the commit of its record is confirmed; ids
//! released while a refill runs stay owned until its result is applied. It counts what is parked
//! (on disk, due, not in memory): while anything is, nothing is handed over directly, so rows on
//! disk are never passed over. It is empty only when a refill returned fewer rows than its limit
//! and nothing was parked since that refill began.
//! Never: await, send, read the store, decide whether a send may start.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use domain::delivery::{Pending, Trigger};
use domain::ids::MessageKey;
use domain::message::Envelope;
use resilience::Timestamp;
use store::queue::DueRows;

#[cfg(test)]
mod tests;

/// Names a row of a lane: what goes, whether as an extra send, and when it is due. A retry that was
/// moved and a replay are rows of their own, and so are two resends of one delivery.
pub type Id = (MessageKey, bool, Timestamp);

/// The name of a row.
pub const fn id_of(row: &Pending) -> Id {
    (row.message, row.trigger.is_extra(), row.due_at)
}

/// One due row in memory.
#[derive(Clone, Debug)]
pub struct Item {
    /// The row.
    pub pending: Pending,
    /// What to send, if it is at hand.
    pub envelope: Option<Arc<Envelope>>,
}

impl Item {
    /// Its name in the lane.
    pub const fn id(&self) -> Id {
        id_of(&self.pending)
    }
}

/// What became of an offered row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// In memory now.
    Taken,
    /// On disk only; a refill will read it.
    Parked,
    /// Already owned.
    Known,
}

/// A refill under way.
#[derive(Clone, Copy, Debug)]
struct Refill {
    parked_before: u64,
    doubts_before: u64,
    limit: usize,
}

/// The due work of one endpoint.
#[derive(Debug, Default)]
pub struct Book {
    ready: VecDeque<Item>,
    manual: VecDeque<Item>,
    owned: HashSet<Id>,
    lingering: Vec<Id>,
    /// Owned rows that were offered again: once released, the disk is asked whether there is a new
    /// one.
    echoes: Vec<Id>,
    /// Messages that were delivered by hand while a refill ran: what it read of them is out of
    /// date.
    settled: Vec<MessageKey>,
    parked: u64,
    /// How often a row on disk may have come before what waits here, and up to which of them that
    /// was looked at.
    doubts: (u64, u64),
    refill: Option<Refill>,
    next_due: Option<Timestamp>,
}

impl Book {
    /// Offers a row that was just committed and is due. `room`: how many ids the lane may hold.
    pub fn offer(&mut self, item: Item, room: usize) -> Offered {
        if self.owned.contains(&item.id()) {
            self.echoes.push(item.id());
            return Offered::Known;
        }
        if self.parked > 0 || self.waiting() >= room {
            self.park();
            return Offered::Parked;
        }
        self.own(item);
        Offered::Taken
    }

    fn own(&mut self, item: Item) {
        self.owned.insert(item.id());
        match item.pending.trigger {
            Trigger::Scheduled | Trigger::Replay | Trigger::Asked => {
                // In order of due time. What is read late goes where it belongs, which is nearly
                // always the end.
                let place = |item: &Item| (item.pending.due_at, item.pending.message);
                let own = place(&item);
                let later = self.ready.iter().rev().take_while(|other| place(other) > own).count();
                self.ready.insert(self.ready.len() - later, item);
            }
            Trigger::Manual => self.manual.push_back(item),
        }
    }

    /// A row that may come before all that waits here is on disk: where it stands is not known.
    pub const fn doubt(&mut self) {
        self.doubts.0 = self.doubts.0.saturating_add(1);
        self.park();
    }

    /// Whether a row on disk may come before all that waits here.
    pub const fn is_in_doubt(&self) -> bool {
        self.doubts.0 != self.doubts.1
    }

    /// Something is due on disk that is not in memory.
    pub const fn park(&mut self) {
        self.parked = self.parked.saturating_add(1);
    }

    /// A row will be due then.
    pub fn note_due(&mut self, at: Timestamp) {
        self.next_due = Some(self.next_due.map_or(at, |known| known.min(at)));
    }

    /// When the next row falls due, as far as known.
    pub const fn next_due(&self) -> Option<Timestamp> {
        self.next_due
    }

    /// Parks what has fallen due by `now`.
    pub fn fall_due(&mut self, now: Timestamp) {
        if self.next_due.is_some_and(|due| due <= now) {
            self.next_due = None;
            self.park();
        }
    }

    /// Whether a refill should start when at most `low` rows wait in memory.
    pub fn wants_refill(&self, low: usize) -> bool {
        self.parked > 0 && self.refill.is_none() && (self.waiting() <= low || self.is_in_doubt())
    }

    /// Starts a refill; returns how many rows to read.
    pub fn begin_refill(&mut self, room: usize) -> usize {
        let limit = room.saturating_sub(self.waiting()).max(1) + self.owned.len();
        let (parked_before, doubts_before) = (self.parked, self.doubts.0);
        self.refill = Some(Refill { parked_before, doubts_before, limit });
        limit
    }

    /// Applies what a refill read; returns how many rows were not known before.
    pub fn apply_refill(&mut self, read: DueRows) -> usize {
        let Some(refill) = self.refill.take() else { return 0 };
        let full = read.rows.len() >= refill.limit;
        let before = self.owned.len();
        for pending in read.rows {
            let settled = !pending.trigger.is_extra() && self.settled.contains(&pending.message);
            if !settled && !self.owned.contains(&id_of(&pending)) {
                self.own(Item { pending, envelope: None });
            }
        }
        let found = self.owned.len() - before;
        self.doubts.1 = refill.doubts_before;
        self.end_refill();
        if full {
            self.parked = self.parked.max(1);
        } else {
            if self.parked == refill.parked_before {
                self.parked = 0;
            }
            if let Some(due) = read.next_due {
                self.note_due(due);
            }
        }
        found
    }

    /// A refill could not be read; it is tried again.
    pub fn fail_refill(&mut self) {
        self.refill = None;
        self.end_refill();
    }

    fn end_refill(&mut self) {
        self.settled.clear();
        for id in self.lingering.drain(..) {
            self.owned.remove(&id);
        }
    }

    /// A message was delivered by hand: its scheduled row is gone from the disk, and is dropped if
    /// it waits here.
    pub fn settle(&mut self, message: MessageKey) -> Option<Item> {
        if self.refill.is_some() {
            self.settled.push(message);
        }
        let item = self.take_if(false, |item| item.pending.message == message)?;
        self.release(item.id());
        Some(item)
    }

    /// A row is gone from the disk. It is dropped if it waits here; if its send is out it stays
    /// owned.
    pub fn withdraw(&mut self, row: &Pending) -> Option<Item> {
        if self.refill.is_some() && !row.trigger.is_extra() {
            self.settled.push(row.message);
        }
        let id = id_of(row);
        let rows = if row.trigger.is_extra() { &mut self.manual } else { &mut self.ready };
        let place = rows.iter().position(|item| item.id() == id)?;
        let item = rows.remove(place)?;
        self.release(id);
        Some(item)
    }

    /// The record of a row is committed, or its send was given up: the row is nobody's again.
    pub fn release(&mut self, id: Id) {
        if let Some(place) = self.echoes.iter().position(|echo| *echo == id) {
            self.echoes.swap_remove(place);
            self.park();
        }
        if self.refill.is_some() {
            self.lingering.push(id);
        } else {
            self.owned.remove(&id);
        }
    }

    /// Takes out all that waits, for a lane that is forgotten.
    pub fn empty(&mut self) -> impl Iterator<Item = Item> + '_ {
        self.ready.drain(..).chain(self.manual.drain(..))
    }

    /// Puts an owned row back at the head.
    pub fn put_back(&mut self, item: Item) {
        match item.pending.trigger {
            Trigger::Scheduled | Trigger::Replay | Trigger::Asked => self.ready.push_front(item),
            Trigger::Manual => self.manual.push_front(item),
        }
    }

    /// Whether this row is owned.
    pub fn knows(&self, id: Id) -> bool {
        self.owned.contains(&id)
    }

    /// Owns a row that is about to be recorded without ever having waited here; `false` when it is
    /// owned already.
    pub fn seize(&mut self, id: Id) -> bool {
        self.owned.insert(id)
    }

    /// Takes the next scheduled row that passes: the first, or for a probe the one with the fewest
    /// sends, oldest among equals.
    pub fn take_if(&mut self, probe: bool, pass: impl Fn(&Item) -> bool) -> Option<Item> {
        let mut passing = self.ready.iter().enumerate().filter(|(_, item)| pass(item));
        let found = match probe {
            false => passing.next(),
            true => passing.min_by_key(|(place, item)| (item.pending.sends, *place)),
        };
        let place = found.map(|(place, _)| place)?;
        self.ready.remove(place)
    }

    /// The next scheduled row: the head, or for a probe the one with the fewest sends, oldest among
    /// equals.
    pub fn take(&mut self, probe: bool) -> Option<Item> {
        if probe { self.take_if(true, |_| true) } else { self.ready.pop_front() }
    }

    /// The next manual row.
    pub fn take_manual(&mut self) -> Option<Item> {
        self.manual.pop_front()
    }

    /// The next manual row, to look at.
    pub fn manual_head(&self) -> Option<&Item> {
        self.manual.front()
    }

    /// Whether the next manual row is due before every scheduled one.
    pub fn manual_is_first(&self) -> bool {
        match (self.manual.front(), self.ready.front()) {
            (Some(manual), Some(head)) => manual.pending.due_at < head.pending.due_at,
            (Some(_), None) => self.parked == 0,
            (None, _) => false,
        }
    }

    /// The head of the scheduled rows.
    pub fn head(&self) -> Option<&Item> {
        self.ready.front()
    }

    /// Whether a manual row waits.
    pub fn has_manual(&self) -> bool {
        !self.manual.is_empty()
    }

    /// Rows that wait in memory.
    pub fn waiting(&self) -> usize {
        self.ready.len() + self.manual.len()
    }

    /// Rows owned: waiting, in flight, or with a record that is not committed.
    pub fn owned(&self) -> usize {
        self.owned.len()
    }

    /// Whether a row of this message is owned but does not wait: its send or its record is under
    /// way.
    pub fn is_out(&self, message: MessageKey) -> bool {
        let owned = self.owned.iter().filter(|(owned, ..)| *owned == message).count();
        let waiting = self.ready.iter().chain(&self.manual);
        owned > waiting.filter(|item| item.pending.message == message).count()
    }

    /// Whether an owned row explains that one due at `due` or before is on disk.
    pub fn owns_due(&self, due: Timestamp) -> bool {
        self.owned.iter().any(|(.., at)| *at <= due)
    }

    /// Raises the number of sends of what waits of the same delivery, after `trigger` sent it.
    pub fn raise_sends(&mut self, message: MessageKey, trigger: Trigger, sends: u32) {
        let beside =
            if trigger.is_extra() { self.ready.as_mut_slices() } else { Default::default() };
        let waiting = self.manual.iter_mut().chain(beside.0).chain(beside.1);
        for item in waiting.filter(|item| item.pending.message == message) {
            item.pending.sends = item.pending.sends.max(sends);
        }
    }

    /// Whether a refill runs.
    pub const fn is_refilling(&self) -> bool {
        self.refill.is_some()
    }

    /// Whether anything due is known to be on disk only.
    pub const fn is_parked(&self) -> bool {
        self.parked > 0
    }

    /// Whether nothing is known of: the lane may be forgotten.
    pub fn is_idle(&self) -> bool {
        self.owned.is_empty()
            && self.parked == 0
            && self.refill.is_none()
            && self.next_due.is_none()
    }
}
