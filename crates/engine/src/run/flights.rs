//! Sends in flight: a slot each, and the same ids in a file that outlives the process.
//!
//! The file is written before the sends of a turn start and never synced: it only has to survive a
//! dead process, not a dead machine. Slots that became free are cleared with the next write.
//! Never: be the proof of anything; it only says which deliveries to be careful with.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use domain::delivery::Pending;
use domain::endpoint::Endpoint;
use domain::ids::{EndpointKey, MessageKey};
use tokio::task::AbortHandle;

use crate::admit::Pass;

const ENTRY: usize = 24;
const ORDINARY: u64 = 1;
const ALONE: u64 = 2;
/// Added for a manual send.
const MANUAL: u64 = 4;

/// One send in flight.
pub(super) struct Flight {
    pub(super) pending: Pending,
    pub(super) endpoint: Arc<Endpoint>,
    /// `None` for a manual send, which breaker and holds do not know of.
    pub(super) pass: Option<Pass>,
    pub(super) bytes: usize,
    pub(super) suspect: bool,
    pub(super) task: Option<AbortHandle>,
    /// Looks, one a second, before it is cut off.
    pub(super) looks_left: u64,
}

impl Flight {
    /// Whether it was cut off for being out too long.
    pub(super) const fn is_overdue(&self) -> bool {
        self.looks_left == 0
    }
}

/// A delivery that was in flight when the last process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) endpoint: EndpointKey,
    pub(super) message: MessageKey,
    pub(super) alone: bool,
    pub(super) manual: bool,
}

/// All slots.
pub(super) struct Flights {
    slots: Vec<Option<Flight>>,
    free: Vec<usize>,
    bytes: usize,
    probes: usize,
    mirror: Vec<u8>,
    dirty: Option<(usize, usize)>,
    file: Option<File>,
    found: Vec<Found>,
}

impl Flights {
    /// Opens the file and reads what the last process left in it.
    pub(super) fn open(slots: usize, path: Option<&Path>) -> Self {
        let (mut found, mut file) = (Vec::new(), None);
        if let Some(path) = path {
            found = std::fs::read(path).map(|left| read_found(&left)).unwrap_or_default();
            file = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(path)
                .inspect_err(|error| tracing::warn!(%error, "cannot write the in-flight file"))
                .ok();
        }
        Self {
            slots: (0..slots).map(|_| None).collect(),
            // The lowest slot is used first, so that one write covers few bytes.
            free: (0..slots).rev().collect(),
            bytes: 0,
            probes: 0,
            mirror: vec![0; slots * ENTRY],
            dirty: None,
            file,
            found,
        }
    }

    /// Empties the file: what was found in it is kept elsewhere now.
    pub(super) fn forget_found(&mut self) {
        self.found = Vec::new();
        self.close();
    }

    pub(super) fn found(&self) -> &[Found] {
        &self.found
    }

    pub(super) const fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) const fn probes(&self) -> usize {
        self.probes
    }

    /// Whether a send of this delivery is in the air.
    pub(super) fn has(&self, endpoint: EndpointKey, message: MessageKey) -> bool {
        let of_it = |flight: &Flight| {
            flight.pending.endpoint == endpoint && flight.pending.message == message
        };
        self.slots.iter().flatten().any(of_it)
    }

    /// Takes a slot; `None` when all are in use.
    pub(super) fn begin(&mut self, flight: Flight) -> Option<usize> {
        let slot = self.free.pop()?;
        self.bytes += flight.bytes;
        self.probes += usize::from(flight.pass.as_ref().is_some_and(Pass::is_probe));
        self.mark(slot, words(&flight.pending, if flight.suspect { ALONE } else { ORDINARY }));
        self.slots[slot] = Some(flight);
        Some(slot)
    }

    /// The payload of a send was read: so large it is.
    pub(super) fn weigh(&mut self, slot: usize, bytes: usize) {
        if let Some(Some(flight)) = self.slots.get_mut(slot) {
            self.bytes = self.bytes.saturating_sub(flight.bytes).saturating_add(bytes);
            flight.bytes = bytes;
        }
    }

    /// No send is alone any more.
    pub(super) fn calm(&mut self) {
        for slot in 0..self.slots.len() {
            if let Some(flight) = self.slots[slot].as_ref().filter(|flight| flight.suspect) {
                let words = words(&flight.pending, ORDINARY);
                self.mark(slot, words);
            }
        }
    }

    /// Once a second: a send that outlives its deadline by far is broken off. A transport keeps the
    /// deadline itself; this is for one that does not.
    pub(super) fn cut_overdue(&mut self) {
        for flight in self.slots.iter_mut().flatten().filter(|flight| !flight.is_overdue()) {
            flight.looks_left -= 1;
            if flight.is_overdue()
                && let Some(task) = &flight.task
            {
                task.abort();
            }
        }
    }

    /// Remembers the task of a slot, so that it can be aborted.
    pub(super) fn started(&mut self, slot: usize, task: AbortHandle) {
        if let Some(Some(flight)) = self.slots.get_mut(slot) {
            flight.task = Some(task);
        }
    }

    /// Frees a slot.
    pub(super) fn end(&mut self, slot: usize) -> Option<Flight> {
        let flight = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        self.bytes = self.bytes.saturating_sub(flight.bytes);
        let probe = usize::from(flight.pass.as_ref().is_some_and(Pass::is_probe));
        self.probes = self.probes.saturating_sub(probe);
        self.mark(slot, [0; 3]);
        Some(flight)
    }

    /// Aborts every send.
    pub(super) fn abort(&self) {
        self.abort_those(|_| true);
    }

    /// Aborts sends to some endpoints.
    pub(super) fn abort_those(&self, which: impl Fn(EndpointKey) -> bool) {
        let flights = self.slots.iter().flatten();
        for flight in flights.filter(|flight| which(flight.pending.endpoint)) {
            flight.task.iter().for_each(AbortHandle::abort);
        }
    }

    fn mark(&mut self, slot: usize, words: [u64; 3]) {
        if self.file.is_none() {
            return;
        }
        let at = slot * ENTRY;
        for (place, word) in words.into_iter().enumerate() {
            let from = at + place * 8;
            self.mirror[from..from + 8].copy_from_slice(&word.to_le_bytes());
        }
        let (low, high) = self.dirty.unwrap_or((at, at + ENTRY));
        self.dirty = Some((low.min(at), high.max(at + ENTRY)));
    }

    /// Writes what changed since the last call; before the sends of a turn start.
    pub(super) fn write(&mut self) {
        let (Some((low, high)), Some(file)) = (self.dirty.take(), &self.file) else { return };
        // A full disk must not stop sending: this file only saves care after a crash.
        let _unwritten = file.write_all_at(&self.mirror[low..high], low as u64);
    }

    /// A clean end: nothing is in flight.
    pub(super) fn close(&mut self) {
        if let Some(file) = &self.file {
            let _unwritten = file.set_len(0);
        }
    }
}

fn words(row: &Pending, kind: u64) -> [u64; 3] {
    let manual = if row.trigger.is_extra() { MANUAL } else { 0 };
    [kind | manual, row.endpoint.0.cast_unsigned(), row.message.0]
}

fn read_found(left: &[u8]) -> Vec<Found> {
    let word = |entry: &[u8], place: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&entry[place * 8..place * 8 + 8]);
        u64::from_le_bytes(word)
    };
    left.chunks_exact(ENTRY)
        .filter(|entry| matches!(word(entry, 0) & !MANUAL, ORDINARY | ALONE))
        .map(|entry| Found {
            endpoint: EndpointKey(word(entry, 1).cast_signed()),
            message: MessageKey(word(entry, 2)),
            alone: word(entry, 0) & !MANUAL == ALONE,
            manual: word(entry, 0) & MANUAL != 0,
        })
        .collect()
}
