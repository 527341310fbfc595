//! Starting a send: which row goes, with which care, and the task that makes the attempt.
//!
//! Whatever becomes of the task, the dispatcher hears of it once.
//! Never: decide whether a lane may start; `serve` asked its gate before.

use std::sync::Arc;
use std::time::Duration;

use domain::dead_letter::DeadReason;
use domain::ids::EndpointKey;
use domain::limits::BODY_BYTES_MAX;
use resilience::Timestamp;
use store::queue::Queue;
use tokio::sync::mpsc;

use super::flights::Flight;
use super::lane::{Home, Known, Lane};
use super::step::{Step, TakeOff};
use super::suspects::Care;
use super::{Command, Dispatcher, Ended};
use crate::admit::Pass;
use crate::deliver::{Courier, Errand};
use crate::lanes::Item;

/// A send that is out for so much longer than its deadline is broken off.
const BEYOND: Duration = Duration::from_secs(5);

impl Dispatcher {
    pub(super) fn start(
        &mut self,
        endpoint: EndpointKey,
        probe: bool,
        now: Timestamp,
        starts: &mut Vec<TakeOff>,
    ) -> Step {
        let Some(lane) = self.lanes.get(&endpoint) else { return Step::Rest };
        let Home::Known(known) = &lane.home else { return Step::Rest };
        if !self.has_share(lane.in_flight, known.gate.failed_last(), probe) {
            return Step::Starved;
        }
        let item = match self.choose(endpoint, probe, now) {
            Ok(item) => item,
            Err(step) => return step,
        };
        let care = self.care(&item, now);
        if care == Care::Convicted {
            self.convict(item);
            return Step::Again;
        }
        let begun = self.known(endpoint).and_then(|known| known.gate.begin(now));
        let Some(pass) = begun else {
            // The gate said yes in this very turn; should it ever change its mind, the lane is
            // asked again.
            self.put_back(item);
            return Step::Starved;
        };
        self.launch(item, Some(pass), care == Care::Alone, starts)
    }

    /// Gives up what ended the process again and again. Its sends are counted, though no attempt
    /// tells of them.
    fn convict(&mut self, mut item: Item) {
        let key = (item.pending.endpoint, item.pending.message);
        let cut_off = self.suspects.sends_cut_off(key);
        item.pending.sends = item.pending.sends.saturating_add(cut_off);
        self.give_up(item, DeadReason::Poisonous);
    }

    fn care(&self, item: &Item, now: Timestamp) -> Care {
        if self.suspects.is_empty() {
            return Care::None;
        }
        let key = (item.pending.endpoint, item.pending.message);
        self.suspects.care(key, self.flights.count(), now)
    }

    /// The row to send: the head, the best probe, or the first that nothing holds back.
    fn choose(&mut self, endpoint: EndpointKey, probe: bool, now: Timestamp) -> Result<Item, Step> {
        let others = self.flights.count();
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return Err(Step::Rest) };
        let Lane { book, manual_out, home, favoured, .. } = lane;
        let ordered = matches!(home, Home::Known(known) if known.is_ordered());
        // Whoever put a delivery back by hand waits for that one.
        let favoured = if probe && !ordered { favoured.take() } else { None };
        let probe = probe && !ordered;
        if self.suspects.is_empty() && manual_out.is_empty() && favoured.is_none() {
            return book.take(probe).ok_or(Step::Rest);
        }
        let suspects = &self.suspects;
        let may_go = |item: &Item| {
            let message = item.pending.message;
            // Two sends of one delivery at once could not be numbered.
            !manual_out.contains(&message)
                && suspects.care((endpoint, message), others, now) != Care::Wait
        };
        if ordered && book.head().is_some_and(|head| !may_go(head)) {
            return Err(Step::Starved);
        }
        let first = |item: &Item| favoured == Some(item.pending.message) && may_go(item);
        let found = favoured.and_then(|_| book.take_if(false, first));
        found.or_else(|| book.take_if(probe, may_go)).ok_or(Step::Starved)
    }

    pub(super) fn start_manual(
        &mut self,
        endpoint: EndpointKey,
        now: Timestamp,
        starts: &mut Vec<TakeOff>,
    ) -> Step {
        let Some(lane) = self.lanes.get(&endpoint) else { return Step::Rest };
        let Some(head) = lane.book.manual_head() else { return Step::Rest };
        let care = self.care(head, now);
        if care == Care::Wait {
            return Step::Starved;
        }
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return Step::Rest };
        let Home::Known(known) = &mut lane.home else { return Step::Rest };
        if care != Care::Convicted && !known.gate.begin_manual(now) {
            return Step::Starved;
        }
        let Some(item) = lane.book.take_manual() else { return Step::Rest };
        if care == Care::Convicted {
            self.convict(item);
            return Step::Again;
        }
        lane.manual_out.push(item.pending.message);
        self.launch(item, None, care == Care::Alone, starts)
    }

    fn launch(
        &mut self,
        item: Item,
        pass: Option<Pass>,
        suspect: bool,
        starts: &mut Vec<TakeOff>,
    ) -> Step {
        self.uncache(&item);
        let now = self.seen_at;
        self.end_solitude(now);
        let Item { pending, envelope } = item;
        let Some(lane) = self.lanes.get_mut(&pending.endpoint) else { return Step::Rest };
        let Home::Known(known) = &lane.home else { return Step::Rest };
        let endpoint = Arc::clone(&known.endpoint);
        // A payload that is not at hand counts as the largest until it has been read.
        let bytes = envelope.as_ref().map_or(BODY_BYTES_MAX, |envelope| envelope.payload.len());
        let deadline = self.courier.deadline_of(&endpoint);
        let flight = Flight {
            pending,
            endpoint: Arc::clone(&endpoint),
            pass,
            bytes,
            suspect,
            task: None,
            looks_left: deadline.saturating_add(BEYOND).as_secs().saturating_add(1),
        };
        let Some(slot) = self.flights.begin(flight) else {
            // `serve` asks for a free slot first, so this is never reached; nothing is lost if it
            // is.
            if let Some(pass) = &pass {
                self.with_gate(pending.endpoint, |known| known.gate.release(pass, now));
            }
            self.put_back(Item { pending, envelope: None });
            return Step::Starved;
        };
        self.busy_lanes += usize::from(lane.in_flight == 0);
        lane.in_flight += 1;
        if suspect {
            self.suspects.begin((pending.endpoint, pending.message), now);
        }
        let errand = Errand { number: pending.sends.saturating_add(1), trigger: pending.trigger };
        starts.push(TakeOff { slot, message: pending.message, endpoint, envelope, errand });
        Step::Again
    }

    /// Another send begins: a suspect that is out for long is alone no more.
    pub(super) fn end_solitude(&mut self, now: Timestamp) {
        if !self.suspects.is_empty() && self.suspects.outlived(now) {
            self.flights.calm();
        }
    }

    pub(super) fn take_off(&mut self, start: TakeOff) {
        let slot = start.slot;
        let landing = Landing { slot, commands: self.commands.clone(), ended: None };
        let (courier, queue) = (Arc::clone(&self.courier), Arc::clone(&self.stores.queue));
        let task = tokio::spawn(make(start, landing, courier, queue));
        self.flights.started(slot, task.abort_handle());
    }

    /// Bytes of a payload that leaves the hand-over cache.
    pub(super) fn uncache(&mut self, item: &Item) {
        if let Some(envelope) = &item.envelope {
            self.cached_bytes = self.cached_bytes.saturating_sub(envelope.payload.len());
        }
    }

    /// Puts an owned row back at the head of its lane. Its payload is read again when its send
    /// starts.
    pub(super) fn put_back(&mut self, item: Item) {
        self.uncache(&item);
        let pending = item.pending;
        if let Some(lane) = self.lanes.get_mut(&pending.endpoint) {
            lane.forget_manual(&pending);
            lane.book.put_back(Item { pending, envelope: None });
        }
    }

    pub(super) fn known(&mut self, endpoint: EndpointKey) -> Option<&mut Known> {
        match &mut self.lanes.get_mut(&endpoint)?.home {
            Home::Known(known) => Some(known),
            Home::Unknown | Home::Deleted => None,
        }
    }

    fn with_gate(&mut self, endpoint: EndpointKey, act: impl FnOnce(&mut Known)) {
        if let Some(known) = self.known(endpoint) {
            act(known);
        }
    }
}

/// Makes one attempt; `landing` reports how it ended.
async fn make(start: TakeOff, mut landing: Landing, courier: Arc<Courier>, queue: Arc<dyn Queue>) {
    let envelope = match start.envelope {
        Some(envelope) => envelope,
        None => match queue.envelope(start.message).await {
            Ok(Some(envelope)) => {
                landing.weigh(envelope.payload.len());
                envelope
            }
            Ok(None) => return landing.ended = Some(Ended::PayloadGone),
            Err(_) => return,
        },
    };
    let attempt = courier.attempt(start.endpoint, &envelope, start.errand).await;
    landing.ended = Some(Ended::Attempted(Box::new(attempt)));
}

/// Reports the end of a task, however it ends: returned, aborted or panicked.
struct Landing {
    slot: usize,
    commands: mpsc::UnboundedSender<Command>,
    ended: Option<Ended>,
}

impl Landing {
    fn weigh(&self, bytes: usize) {
        let _gone = self.commands.send(Command::Weighed(self.slot, bytes));
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        let broken = if std::thread::panicking() { Ended::Broken } else { Ended::NotBegun };
        let ended = self.ended.take().unwrap_or(broken);
        let _gone = self.commands.send(Command::Finished(self.slot, ended));
    }
}
