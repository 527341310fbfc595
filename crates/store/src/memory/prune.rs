//! Retention, in the reference model.
//!
//! Never: be quick about it; every piece looks through everything.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::dead_letter::DeadReason;
use domain::delivery::{DeliveryState, Pending};
use domain::ids::{EndpointKey, MessageKey, key_floor};
use domain::limits::{IDEMPOTENCY_WINDOW, PRUNE_ROWS_MAX};
use domain::message::{Message, hours};
use domain::notice::News;
use resilience::Timestamp;

use super::MemoryStore;
use super::ledger::close;
use super::notices::note;
use super::state::{Closed, State};
use super::writer::Tx;
use crate::Reply;
use crate::prune::{Counts, Cursor, PAYLOAD_GONE, Prune, Pruned, Retention};

impl Prune for MemoryStore {
    fn prune(&self, now: Timestamp, keep: Retention, from: Cursor) -> Reply<'static, Pruned> {
        self.shared.write(move |tx| Ok(prune(tx, now, &keep, from)))
    }
}

fn prune(tx: &mut Tx<'_>, now: Timestamp, keep: &Retention, from: Cursor) -> Pruned {
    let mut counts = Counts::default();
    let named = named(tx.state, now);
    let needed = needed(tx.state);
    let answers = forget_answers(tx, now);
    if answers > 0 {
        counts.answers = answers;
        return Pruned { counts, reached: from, more: true };
    }
    if !named.is_empty() {
        counts.payloads = named.len();
        named.into_iter().for_each(|message| withdraw(tx, message));
        return Pruned { counts, reached: from, more: true };
    }
    let letters = dead_letters(tx.state, from.dead_letters, keep.dead_letter_floor(now));
    if let Some(&(last, ..)) = letters.last() {
        counts.dead_letters = letters.len();
        for (_, delivery) in letters {
            tx.rows += 1;
            tx.state.closed.entry(delivery).and_modify(|closed| closed.discarded = true);
        }
        return Pruned { counts, reached: Cursor { dead_letters: last, ..from }, more: true };
    }
    let of_default = |message: &Message| message.spec.retention_hours.is_none();
    // What is older goes with its message.
    let oldest = from.payloads.max(keep.message_floor(now).saturating_sub(1));
    let payloads = due(tx.state, oldest, keep.payload_floor(now), |message| {
        of_default(message) && !message.payload_gone && !needed.contains(&message.key)
    });
    if let Some(last) = payloads.last().filter(|_| keep.payloads_go_first()) {
        counts.payloads = payloads.len();
        let reached = Cursor { payloads: last.0, ..from };
        payloads.iter().for_each(|message| clear(tx, *message));
        return Pruned { counts, reached, more: true };
    }
    let messages = due(tx.state, from.messages, keep.message_floor(now), |message| {
        (of_default(message) || message.payload_gone) && !needed.contains(&message.key)
    });
    let Some(last) = messages.last() else { return Pruned { reached: from, ..Pruned::default() } };
    let reached = Cursor { messages: last.0, ..from };
    counts.messages = messages.len();
    counts.attempts = messages.into_iter().map(|message| remove(tx, message)).sum();
    Pruned { counts, reached, more: true }
}

/// Removes answers whose time is over, the oldest first; answers with their number.
fn forget_answers(tx: &mut Tx<'_>, now: Timestamp) -> usize {
    let until = now.minus(IDEMPOTENCY_WINDOW);
    let over = tx.state.answers.iter().filter(|(_, kept)| kept.at <= until);
    let over: BTreeSet<_> = over.map(|(scope, kept)| (kept.at, *scope)).collect();
    let over: Vec<_> = over.into_iter().take(PRUNE_ROWS_MAX).collect();
    for (_, scope) in &over {
        tx.state.answers.remove(scope);
    }
    tx.rows += over.len();
    over.len()
}

/// Messages that named their period and are past their day.
fn named(state: &State, now: Timestamp) -> Vec<MessageKey> {
    let due = state.messages.values().filter_map(|message| {
        let period = message.spec.retention_hours.filter(|_| !message.payload_gone)?;
        (message.key.0 < key_floor(now.minus(hours(period)))).then_some((period, message.key))
    });
    let due: BTreeSet<_> = due.collect();
    due.into_iter().map(|(_, message)| message).take(PRUNE_ROWS_MAX).collect()
}

/// Dead letters of a range of places.
fn dead_letters(state: &State, after: u64, before: u64) -> Vec<(u64, (MessageKey, EndpointKey))> {
    let due = state
        .closed
        .iter()
        .filter(|(_, closed)| is_letter(closed) && closed.place > after && closed.place < before);
    let due: BTreeSet<_> = due.map(|(delivery, closed)| (closed.place, *delivery)).collect();
    due.into_iter().take(PRUNE_ROWS_MAX).collect()
}

fn is_letter(closed: &Closed) -> bool {
    matches!(closed.state, DeliveryState::Dead(_)) && !closed.discarded
}

/// Messages with a delivery that waits or is a dead letter.
fn needed(state: &State) -> BTreeSet<MessageKey> {
    let dead = state.closed.iter().filter(|(_, closed)| is_letter(closed));
    let waiting = state.pending.values().map(|row| row.message);
    dead.map(|(delivery, _)| delivery.0).chain(waiting).collect()
}

/// Messages of a range of keys that pass.
fn due(state: &State, after: u64, before: u64, pass: impl Fn(&Message) -> bool) -> Vec<MessageKey> {
    let all = state.messages.values().map(Arc::as_ref);
    let due = all.filter(|message| message.key.0 > after && message.key.0 < before);
    due.filter(|message| pass(message)).map(|message| message.key).take(PRUNE_ROWS_MAX).collect()
}

/// Deletes a payload; what waits for it dies with it, unless its endpoint is deleted.
pub(super) fn withdraw(tx: &mut Tx<'_>, message: MessageKey) {
    clear(tx, message);
    let of_message = |row: &&Pending| row.message == message;
    let rows: Vec<Pending> = tx.state.pending.values().filter(of_message).copied().collect();
    for row in rows {
        if tx.state.live_endpoint(row.endpoint).is_none() {
            continue;
        }
        tx.state.remove_pending(&row);
        tx.rows += 1;
        if !row.trigger.is_extra() {
            let state = DeliveryState::Dead(DeadReason::PayloadGone);
            close(tx, row, state, Some(PAYLOAD_GONE.to_owned()));
            note(tx, News::AttemptExhausted, row.endpoint, Some(message));
        }
        tx.withdrawn.push(row);
    }
}

fn clear(tx: &mut Tx<'_>, message: MessageKey) {
    if let Some(message) = tx.state.messages.get_mut(&message) {
        let message = Arc::make_mut(message);
        message.spec.payload.clear();
        message.payload_gone = true;
        tx.rows += 1;
    }
}

/// Removes a message with everything that belongs to it; answers with the number of attempts.
fn remove(tx: &mut Tx<'_>, key: MessageKey) -> usize {
    let state = &mut *tx.state;
    let before = state.attempts.len();
    state.attempts.retain(|_, row| row.message != key);
    state.numbers.retain(|(message, ..), _| *message != key);
    state.closed.retain(|(message, _), _| *message != key);
    state.event_ids.retain(|_, message| *message != key);
    state.ingest_keys.retain(|_, used| used.message != key);
    state.messages.remove(&key);
    state.edits.remove(&key);
    let attempts = before - state.attempts.len();
    tx.rows += 1 + attempts;
    attempts
}
