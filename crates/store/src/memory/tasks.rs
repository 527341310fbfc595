//! Background tasks, in the reference model.
//!
//! Never: know why a piece holds what it holds.

use domain::delivery::Trigger;
use domain::ids::{EndpointKey, MessageKey, PublicId, key_floor};

use super::MemoryStore;
use super::dead_letters::{dead, put_due, replay};
use super::history::resend;
use super::prune::withdraw;
use super::state::look;
use super::writer::Tx;
use crate::dead_letters::Replayed;
use crate::history::Resent;
use crate::page::{Looked, PageOf};
use crate::prune::days;
use crate::recall::Once;
use crate::tasks::{
    Act, Moved, PRECEDED, Piece, Started, Tally, Task, TaskFilter, TaskSpec, TaskStatus, Tasks,
    Work,
};
use crate::{Reply, StoreError};
use domain::limits::TASK_DAYS;

impl Tasks for MemoryStore {
    fn start_once(
        &self,
        spec: TaskSpec,
        random: [u8; 12],
        once: Once<Started>,
    ) -> Reply<'static, Started> {
        self.shared.write_once(once, move |tx| Ok(start(tx, spec, random)))
    }

    fn advance(&self, task: PublicId, piece: Piece) -> Reply<'static, Moved> {
        self.shared.write(move |tx| Ok(advance(tx, task, &piece)))
    }

    fn end_once(
        &self,
        task: PublicId,
        (status, error): (TaskStatus, Option<String>),
        once: Once<Option<Box<Task>>>,
    ) -> Reply<'static, Option<Box<Task>>> {
        self.shared.write_once(once, move |tx| {
            let now = tx.now;
            let Some(task) = running(tx, task) else { return Ok(None) };
            (task.status, task.error, task.updated_at) = (status, error, now);
            let ended = Box::new(task.clone());
            tx.rows += 1;
            if let Some(endpoint) = ended.settles() {
                tx.state.recoveries.remove(&endpoint);
            }
            Ok(Some(ended))
        })
    }

    fn task(&self, org: PublicId, id: PublicId) -> Reply<'_, Option<Box<Task>>> {
        self.read(move |state| {
            let found = state.tasks.get(&id.key())?;
            (found.id == id && found.spec.org == org).then(|| Box::new(found.clone()))
        })
    }

    fn tasks(
        &self,
        org: PublicId,
        filter: TaskFilter,
        asked: PageOf<u64>,
    ) -> Reply<'_, Looked<Task, u64>> {
        self.read(move |state| {
            let rows = state.tasks.iter().map(|(key, task)| (*key, task));
            let rows = rows.filter(|(_, task)| task.spec.org == org);
            look(rows, &asked, |task| filter.takes(task).then(|| task.clone()), |_| false)
        })
    }

    fn running(&self, limit: usize) -> Reply<'_, Vec<Task>> {
        self.read(move |state| {
            let found = state.tasks.values();
            let found = found.filter(|task| task.status == TaskStatus::Running);
            found.take(limit).cloned().collect()
        })
    }

    fn waiting_of(
        &self,
        endpoint: EndpointKey,
        messages: Vec<MessageKey>,
    ) -> Reply<'_, Vec<MessageKey>> {
        self.read(move |state| {
            let waits = |message: &MessageKey| {
                state.pending_to(endpoint).any(|row| row.message == *message)
            };
            messages.into_iter().filter(waits).collect()
        })
    }
}

fn start(tx: &mut Tx<'_>, spec: TaskSpec, random: [u8; 12]) -> Started {
    let owed = spec.endpoint.and_then(|endpoint| tx.state.recoveries.get(&endpoint));
    if let Work::Outage(since) = spec.work
        && owed.is_none_or(|owed| !owed.ready || owed.since != since)
    {
        return Started::NotOwed;
    }
    let same = |task: &&Task| {
        task.status == TaskStatus::Running
            && task.spec.app == spec.app
            && task.spec.work.kind().overlaps(spec.work.kind())
            && (task.spec.endpoint.is_none()
                || spec.endpoint.is_none()
                || task.spec.endpoint == spec.endpoint)
    };
    let kind = spec.work.kind();
    let others: Vec<Task> = tx.state.tasks.values().filter(same).cloned().collect();
    if let Some(other) = others.iter().find(|other| !other.makes_way(kind)) {
        return Started::Overlaps(other.id);
    }
    let now = tx.now;
    for other in others {
        if let Some(task) = running(tx, other.id) {
            (task.status, task.updated_at) = (TaskStatus::Stopped, now);
            task.error = Some(PRECEDED.to_owned());
        }
    }
    let floor = key_floor(tx.now.minus(days(TASK_DAYS)));
    tx.state.tasks.retain(|key, task| *key >= floor || task.status == TaskStatus::Running);
    let id = PublicId::new(tx.draw(), random);
    let task = Task {
        id,
        spec,
        status: TaskStatus::Running,
        cursor: [].into(),
        tally: Tally::default(),
        error: None,
        updated_at: tx.now,
    };
    tx.state.tasks.insert(id.key(), task.clone());
    tx.rows += 1;
    Started::New(Box::new(task))
}

fn running<'t>(tx: &'t mut Tx<'_>, id: PublicId) -> Option<&'t mut Task> {
    let task = tx.state.tasks.get_mut(&id.key())?;
    (task.id == id && task.status == TaskStatus::Running).then_some(task)
}

fn advance(tx: &mut Tx<'_>, id: PublicId, piece: &Piece) -> Moved {
    let at = |task: &Task| task.cursor.get(&piece.endpoint).copied().unwrap_or(0);
    if running(tx, id).is_none_or(|task| at(task) > piece.from) {
        return Moved::Stopped;
    }
    let (mut tally, mut waiting) = (Tally::default(), Vec::new());
    for (place, message, act) in &piece.acts {
        let before = if *act == Act::Return { place.saturating_add(1) } else { id.key() };
        match perform(tx, before, (piece.endpoint, *message), *act) {
            Ok(true) => {
                tally.done += 1;
                waiting.extend((*act != Act::Purge).then_some(*message));
            }
            Ok(false) => {}
            Err(_) => tally.failed += 1,
        }
    }
    let now = tx.now;
    if let Some(task) = running(tx, id) {
        task.cursor.insert(piece.endpoint, piece.reached);
        task.tally.done += tally.done;
        task.tally.failed += tally.failed;
        task.updated_at = now;
    }
    tx.rows += 1;
    Moved::On { reached: piece.reached, waiting }
}

/// Whether something was done; an error when it cannot be.
fn perform(
    tx: &mut Tx<'_>,
    before: u64,
    (endpoint, message): (EndpointKey, MessageKey),
    act: Act,
) -> Result<bool, StoreError> {
    let gone = || StoreError::Missing("payload");
    match act {
        Act::Replay | Act::Return => {
            if dead(tx.state, message, endpoint).is_none_or(|(closed, _)| closed.place >= before) {
                return Ok(false);
            }
            match replay(tx, message, endpoint) {
                Replayed::Pending => Ok(true),
                Replayed::NotDead | Replayed::NoEndpoint => Ok(false),
                Replayed::PayloadGone => Err(gone()),
            }
        }
        Act::Send => {
            let known = tx.state.delivery(message, endpoint).is_some()
                || tx.state.sends(message, endpoint) > 0;
            let to = tx.state.live_endpoint(endpoint).map(|to| to.app);
            let Some(found) = tx.state.messages.get(&message) else { return Ok(false) };
            if known || to != Some(found.app) {
                return Ok(false);
            }
            if found.payload_gone {
                return Err(gone());
            }
            put_due(tx, message, endpoint, (0, Trigger::Asked));
            Ok(true)
        }
        Act::Resend => match resend(tx, message, endpoint) {
            Resent::Pending => Ok(true),
            Resent::Missing => Ok(false),
            Resent::PayloadGone => Err(gone()),
        },
        Act::Purge => {
            let there =
                tx.state.messages.get(&message).is_some_and(|message| !message.payload_gone);
            if there {
                withdraw(tx, message);
            }
            Ok(there)
        }
    }
}
