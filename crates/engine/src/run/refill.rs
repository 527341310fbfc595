//! Reads: rows that fall due, endpoints that changed, and the poll that repairs what the rules
//! missed.
//!
//! Never: trust a read over what a lane owns.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::endpoint::Endpoint;
use domain::ids::{AppKey, EndpointKey};
use resilience::Timestamp;
use store::StoreError;
use store::commits::Fresh;
use store::queue::DueRows;

use super::due::is_due;
use super::lane::{Home, Lane};
use super::{Command, Dispatcher, SLEEP_MAX, home};
use crate::lanes::{Item, Offered, id_of};

/// Endpoints read by one poll.
pub(super) const POLL_MAX: usize = 1_000;
/// A row that is due for less than this may simply be on its way.
const POLL_GRACE: Duration = Duration::from_secs(1);
/// A failed read is made again after this.
pub(super) const READ_AGAIN: Duration = Duration::from_millis(250);

impl Dispatcher {
    /// At start: every endpoint with pending rows gets a lane that knows its next due time.
    pub(super) async fn recover_lanes(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let some = self.stores.queue.endpoints(after, POLL_MAX).await?;
            for (endpoint, due) in &some {
                let lane = self.lanes.entry(*endpoint).or_insert_with(Lane::new);
                lane.book.note_due(*due);
                lane.book.fall_due(now);
                self.rest_or_turn(*endpoint);
            }
            match some.last() {
                Some((last, _)) if some.len() == POLL_MAX => after = Some(*last),
                _ => return Ok(()),
            }
        }
    }

    /// At start: the lanes of suspects have the first turn, while nothing else is in flight.
    pub(super) fn suspects_first(&mut self) {
        for endpoint in self.suspects.endpoints() {
            self.lanes.entry(endpoint).or_insert_with(Lane::new);
            self.enqueue(endpoint);
        }
    }

    pub(super) fn rest_or_turn(&mut self, endpoint: EndpointKey) {
        match self.lanes.get(&endpoint).and_then(|lane| lane.book.next_due()) {
            Some(due) => self.set_timer(endpoint, due),
            None => self.enqueue(endpoint),
        }
    }

    /// Rows that were just committed.
    pub(super) fn fresh(&mut self, rows: Vec<Fresh>, now: Timestamp) {
        for Fresh { pending, endpoint, envelope } in rows {
            let key = pending.endpoint;
            match self.homes.of(key) {
                // It went before this was handled; whoever serves it finds it in the store.
                home::Home::Elsewhere => continue,
                home::Home::Coming => {
                    self.lanes.entry(key).or_insert_with(Lane::new).book.park();
                    continue;
                }
                home::Home::Here => {}
            }
            let lane = self.lanes.entry(key).or_insert_with(Lane::new);
            if let Some(endpoint) = endpoint.filter(|endpoint| lane.lacks(endpoint)) {
                self.take_in(&endpoint, now);
            }
            if !self.until(now).has(&pending) {
                if let Some(lane) = self.lanes.get_mut(&key) {
                    lane.book.note_due(pending.due_at);
                }
                self.set_timer(key, pending.due_at);
                continue;
            }
            if let Some(lane) = self.lanes.get_mut(&key) {
                // What has fallen due meanwhile comes before what is new.
                lane.book.fall_due(now);
                if pending.sends > 0 {
                    // A replay or a resend may close a gap.
                    self.ask_again_of_gap(key);
                }
            }
            let room = self.room(key, now);
            let size = envelope.as_ref().map_or(0, |envelope| envelope.payload.len());
            let fits = self.cached_bytes + size <= self.settings.payload_cache_bytes;
            let item = Item { pending, envelope: envelope.filter(|_| fits) };
            let Some(lane) = self.lanes.get_mut(&key) else { continue };
            let kept = item.envelope.is_some();
            if lane.book.offer(item, room) == Offered::Taken {
                self.ids += 1;
                self.cached_bytes += if kept { size } else { 0 };
            }
            self.enqueue(key);
        }
    }

    /// Starts a refill when a lane runs low and more is due on disk.
    pub(super) fn refill_if_wanted(&mut self, endpoint: EndpointKey, now: Timestamp) {
        let room = self.room(endpoint, now);
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return };
        lane.book.fall_due(now);
        // A manual send of an ordered lane may wait for rows on disk that come before it.
        let ordered = matches!(&lane.home, Home::Known(known) if known.is_ordered());
        let low = if ordered && lane.book.head().is_none() { usize::MAX } else { room / 4 };
        if !lane.book.wants_refill(low) {
            return;
        }
        let limit = lane.book.begin_refill(room);
        let (queue, until) = (Arc::clone(&self.stores.queue), self.until(now));
        self.report(
            async move { Command::Refilled(endpoint, queue.due(endpoint, until, limit).await) },
        );
    }

    /// A refill was read.
    pub(super) fn refilled(
        &mut self,
        endpoint: EndpointKey,
        read: Result<DueRows, StoreError>,
        now: Timestamp,
    ) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return };
        let before = lane.book.owned();
        match read {
            Ok(read) => {
                let doubted = lane.doubted_at.take();
                let missed = doubted.is_some_and(|at| {
                    read.rows.iter().any(|row| {
                        row.due_at.plus(POLL_GRACE) <= at && !lane.book.knows(id_of(row))
                    })
                });
                if missed {
                    self.telemetry.repairs.increment(1);
                    self.repairs.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(endpoint = endpoint.0, "a lane had missed due rows");
                }
                lane.book.apply_refill(read);
                self.ids = (self.ids + lane.book.owned()).saturating_sub(before);
                self.enqueue(endpoint);
            }
            Err(error) => {
                lane.book.fail_refill();
                self.ids = (self.ids + lane.book.owned()).saturating_sub(before);
                tracing::warn!(%error, "due rows not read; trying again");
                self.set_timer(endpoint, now.plus(READ_AGAIN));
            }
        }
    }

    /// Asks for endpoints with pending rows, once a second.
    pub(super) fn poll(&mut self, now: Timestamp) {
        if self.poll.running || !is_due(self.poll.next_at, SLEEP_MAX, now) {
            return;
        }
        self.poll.running = true;
        // A process that stood still has been told of nothing meanwhile: only what was due before
        // could have been missed.
        let asked_at = self.poll.next_at.min(now);
        self.poll.next_at = now.plus(SLEEP_MAX);
        let (queue, after) = (Arc::clone(&self.stores.queue), self.poll.after);
        let asks = async move { Command::Polled(queue.endpoints(after, POLL_MAX).await, asked_at) };
        self.report(asks);
        self.look_around();
        self.flights.cut_overdue();
    }

    /// Endpoints with pending rows: whatever is due and unknown to its lane is asked for.
    pub(super) fn polled(
        &mut self,
        read: Result<Vec<(EndpointKey, Timestamp)>, StoreError>,
        asked_at: Timestamp,
        now: Timestamp,
    ) {
        self.poll.running = false;
        let Ok(read) = read else { return };
        self.poll.after = read.last().filter(|_| read.len() == POLL_MAX).map(|(last, _)| *last);
        for (endpoint, due) in read {
            if !self.homes.serves(endpoint) {
                continue;
            }
            let lane = self.lanes.entry(endpoint).or_insert_with(Lane::new);
            let explained = lane.book.is_parked()
                || lane.book.is_refilling()
                || lane.book.owns_due(due)
                || lane.book.next_due().is_some_and(|known| known <= due.max(now));
            if explained {
                continue;
            }
            if due.plus(POLL_GRACE) <= asked_at {
                lane.doubted_at = Some(asked_at);
                lane.book.park();
                self.enqueue(endpoint);
            } else {
                lane.book.note_due(due);
                self.set_timer(endpoint, due);
            }
        }
    }

    /// The directory changed: lanes read their endpoints again.
    pub(super) fn changed(&mut self, app: AppKey, endpoint: Option<EndpointKey>) {
        let of_app = |lane: &Lane| match &lane.home {
            Home::Known(known) => known.endpoint.app == app,
            // It is being read, and may be read as it was before.
            Home::Unknown => lane.loading > 0,
            Home::Deleted => false,
        };
        let mut affected: Vec<EndpointKey> = match endpoint {
            Some(endpoint) => vec![endpoint],
            None => {
                self.lanes.iter().filter(|(_, lane)| of_app(lane)).map(|(key, _)| *key).collect()
            }
        };
        affected.sort_unstable();
        for endpoint in affected {
            self.trust_unread(endpoint);
            self.load(endpoint);
        }
    }

    /// Reads an endpoint again, if it has a lane.
    pub(super) fn load(&mut self, endpoint: EndpointKey) {
        if self.lanes.contains_key(&endpoint) {
            self.begin_loading(endpoint);
            let directory = Arc::clone(&self.stores.directory);
            self.report(
                async move { Command::Loaded(endpoint, directory.endpoint(endpoint).await) },
            );
        }
    }

    pub(super) fn begin_loading(&mut self, endpoint: EndpointKey) {
        self.loading += 1;
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.loading += 1;
        }
    }

    /// An endpoint was read again, or not: then it is read until it has been.
    pub(super) fn loaded(
        &mut self,
        endpoint: EndpointKey,
        read: Result<Option<Arc<Endpoint>>, StoreError>,
        now: Timestamp,
    ) {
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                tracing::warn!(%error, "endpoint not read; trying again");
                let directory = Arc::clone(&self.stores.directory);
                self.report(async move {
                    tokio::time::sleep(READ_AGAIN).await;
                    Command::Loaded(endpoint, directory.endpoint(endpoint).await)
                });
                return;
            }
        };
        self.rehome(endpoint, read, now);
        self.loading = self.loading.saturating_sub(1);
        if self.loading == 0 {
            for reply in self.settling.drain(..) {
                let _gone = reply.send(());
            }
        }
        self.enqueue(endpoint);
    }

    fn rehome(&mut self, key: EndpointKey, read: Option<Arc<Endpoint>>, now: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        lane.loading = lane.loading.saturating_sub(1);
        match read {
            Some(endpoint) => self.take_in(&endpoint, now),
            None => lane.home = Home::Deleted,
        }
    }
}
