//! Recording, in the reference model.
//!
//! A result counts when the row it was made for is still there, with the age and budget it was read
//! with; else it is late. Attempts are told apart by the chance in their id, so a repeated record
//! is known.
//! Never: decide what follows.

use domain::attempt::Attempt;
use domain::delivery::{DeliveryState, Pending, Trigger};
use domain::endpoint::{Disabled, Endpoint};
use domain::ids::{AttemptKey, EndpointKey, MessageKey, PublicId};
use domain::notice::News;
use resilience::{Term, Timestamp};

use super::MemoryStore;
use super::directory::put_endpoint;
use super::facts::Fact;
use super::notices::{note, note_by_mail};
use super::recoveries;
use super::state::{Closed, State, is_success, place};
use super::writer::Tx;
use crate::Reply;
use crate::history::AttemptRow;
use crate::ledger::{Follow, LaneState, Ledger, Record, Recorded, Suspect};

impl Ledger for MemoryStore {
    fn record(&self, records: Vec<Record>) -> Reply<'static, Vec<Recorded>> {
        self.shared
            .write(move |tx| Ok(records.into_iter().map(|record| record_one(tx, record)).collect()))
    }

    fn keep_lanes(&self, lanes: Vec<LaneState>) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            lanes.into_iter().for_each(|lane| turn_lane(tx, lane));
            Ok(())
        })
    }

    fn keep_suspects(&self, suspects: Vec<Suspect>) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            tx.rows += suspects.len();
            tx.state.suspects = suspects;
            Ok(())
        })
    }

    fn suspects(&self) -> Reply<'_, Vec<Suspect>> {
        self.read(|state| state.suspects.clone())
    }
}

fn record_one(tx: &mut Tx<'_>, record: Record) -> Recorded {
    let row = tx.state.pending.get(&place(&record.pending)).copied();
    let row = row.filter(|row| {
        (row.budget_used, row.age_from) == (record.pending.budget_used, record.pending.age_from)
    });
    let Pending { message, endpoint, sends: counted, .. } = record.pending;
    let Some(row) = row else {
        if let Some(attempt) = record.attempt {
            let success = is_success(&attempt);
            let kept = keep(tx, (message, endpoint), attempt, record.random);
            if success && kept.is_some() {
                settle(tx.state, message, endpoint);
            }
        }
        return Recorded::Late;
    };
    tx.state.remove_pending(&row);
    tx.rows += 1;
    let failed_at = record.attempt.as_ref().map(|attempt| attempt.started_at);
    let kept =
        record.attempt.and_then(|attempt| keep(tx, (message, endpoint), attempt, record.random));
    let known = row.sends.max(counted);
    let sends =
        kept.and_then(|key| tx.state.attempts.get(&key)).map_or(known, |kept| kept.attempt.number);
    let row = follow(tx, Pending { sends, ..row }, (record.follow, record.run));
    if let Some((key, next)) = kept.zip(row)
        && let Some(attempt) = tx.state.attempts.get_mut(&key)
    {
        attempt.next = Some(next);
    }
    let failing_since = record.lane.as_ref().and_then(|lane| lane.breaker.failing_since);
    if let Some(told) = record.news.delivery {
        note(tx, told, endpoint, Some(message));
    }
    if let Some(why) = record.disable
        && disable(tx, endpoint, why)
    {
        let failing_since = failing_since.or(failed_at).unwrap_or(tx.now);
        note(tx, News::EndpointDisabled { failing_since }, endpoint, Some(message));
    }
    if let Some(told) = record.news.breaker {
        note(tx, told, endpoint, None);
    }
    if let Some(lane) = record.lane {
        turn_lane(tx, lane);
    }
    Recorded::Applied
}

/// Writes a lane's state, and notes what changes of its suspension and its outage.
fn turn_lane(tx: &mut Tx<'_>, lane: LaneState) {
    let before = tx.state.lanes.get(&lane.endpoint).map(LaneState::before).unwrap_or_default();
    let (endpoint, news) = (lane.endpoint, lane.news_after(before.told));
    let turn = lane.turn_after(before.outage);
    let runs = lane.runs_after(before.refused_since);
    tx.state.lanes.insert(endpoint, lane);
    tx.rows += 1;
    if let Some(told) = news {
        note_by_mail(tx, told, endpoint);
    }
    for told in runs {
        note(tx, told, endpoint, None);
    }
    if let Some(turn) = turn {
        recoveries::turn(tx, endpoint, turn);
    }
}

/// Keeps an attempt once. A number taken by another send (a manual one beside a scheduled one)
/// gives way to the next.
fn keep(
    tx: &mut Tx<'_>,
    (message, endpoint): (MessageKey, EndpointKey),
    mut attempt: Attempt,
    random: [u8; 12],
) -> Option<AttemptKey> {
    if tx.state.attempts_for(message, endpoint).any(|row| row.id.random() == random) {
        return None;
    }
    if tx.state.numbers.contains_key(&(message, endpoint, attempt.number)) {
        attempt.number = tx.state.sends(message, endpoint) + 1;
    }
    let message_id = tx.state.messages.get(&message)?.id;
    let endpoint_id = tx.state.endpoints.get(&endpoint)?.row.id;
    let key = AttemptKey(tx.draw());
    let url = tx.state.url(endpoint, attempt.started_at);
    tx.state.facts.push(Fact::sent(key, endpoint, &attempt));
    tx.state.numbers.insert((message, endpoint, attempt.number), key);
    let id = PublicId::new(key.0, random);
    let row = AttemptRow {
        key,
        id,
        message,
        message_id,
        endpoint,
        endpoint_id,
        url,
        attempt,
        next: None,
    };
    tx.state.attempts.insert(key, row);
    tx.rows += 1;
    Some(key)
}

/// What follows for a delivery whose row was just taken out; answers with the next attempt's time
/// and its rule.
fn follow(
    tx: &mut Tx<'_>,
    row: Pending,
    (follow, run): (Follow, Option<Timestamp>),
) -> Option<(Timestamp, Term)> {
    match follow {
        Follow::Delivered => settle(tx.state, row.message, row.endpoint),
        Follow::Retry { due_at, tried_at, budget_used, delay, term } => {
            let trigger = Trigger::Scheduled;
            let next = Pending { due_at, budget_used, last_delay: delay, trigger, ..row };
            tx.state.insert_pending(next);
            return Some((tried_at, term));
        }
        // A manual send ends nothing but itself; the next send of a row that waits is counted on.
        Follow::Unchanged | Follow::Dead { .. } | Follow::Cancelled(_)
            if row.trigger.is_extra() =>
        {
            if let Some(beside) = tx.state.scheduled(row.message, row.endpoint) {
                let sends = beside.sends.max(row.sends);
                tx.state.pending.insert(place(&beside), Pending { sends, ..beside });
            }
        }
        Follow::Unchanged => {}
        Follow::Dead { reason, error } => {
            close(tx, row, DeliveryState::Dead(reason), error);
            if let Some(closed) = tx.state.closed.get_mut(&(row.message, row.endpoint)) {
                closed.run = run;
            }
        }
        Follow::Cancelled(reason) => close(tx, row, DeliveryState::Cancelled(reason), None),
    }
    None
}

/// Delivered: whatever said otherwise goes.
fn settle(state: &mut State, message: MessageKey, endpoint: EndpointKey) {
    state.closed.remove(&(message, endpoint));
    if let Some(row) = state.scheduled(message, endpoint) {
        state.remove_pending(&row);
    }
}

/// Ends a delivery otherwise than delivered.
pub(super) fn close(tx: &mut Tx<'_>, row: Pending, state: DeliveryState, error: Option<String>) {
    let (at, place) = (tx.now, tx.draw());
    if let DeliveryState::Dead(reason) = state {
        tx.state.facts.push(Fact::dead(place, row.endpoint, reason));
    }
    let closed = Closed { state, at, place, sends: row.sends, error, discarded: false, run: None };
    tx.state.closed.insert((row.message, row.endpoint), closed);
}

/// Switches an endpoint off, unless it is off or gone.
fn disable(tx: &mut Tx<'_>, key: EndpointKey, why: Disabled) -> bool {
    let live = tx.state.live_endpoint(key).filter(|it| it.spec.disabled.is_none());
    let Some(endpoint) = live else { return false };
    let mut endpoint = Endpoint::clone(endpoint);
    endpoint.spec.disabled = Some(why);
    put_endpoint(tx, endpoint);
    true
}
