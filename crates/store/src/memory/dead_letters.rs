//! Dead letters, in the reference model.
//!
//! Never: touch an attempt.

use std::time::Duration;

use domain::attempt::Outcome;
use domain::dead_letter::{DeadLetter, DeadReason};
use domain::delivery::{CancelReason, DeliveryState, Pending, Trigger};
use domain::edit::Edit;
use domain::ids::{EndpointKey, MessageKey, PublicId};

use super::MemoryStore;
use super::inbox::accept;
use super::state::{Closed, State, look};
use super::writer::Tx;
use crate::Reply;
use crate::commits::Fresh;
use crate::dead_letters::{DeadFilter, DeadLetters, Edited, Replayed};
use crate::inbox::Accepted;
use crate::page::{Looked, PageOf, keys_within};
use crate::recall::Once;

impl DeadLetters for MemoryStore {
    fn list(
        &self,
        org: PublicId,
        filter: DeadFilter,
        asked: PageOf<u64>,
    ) -> Reply<'_, Looked<DeadLetter, u64>> {
        self.read(move |state| {
            let mut found: Vec<_> = (state.closed.keys())
                .filter(|(message, _)| is_of(state, org, *message, &filter))
                .filter_map(|&(message, endpoint)| dead_letter(state, message, endpoint))
                .map(|letter| (letter.place, letter))
                .collect();
            found.sort_by_key(|(place, _)| *place);
            let take = |letter| Some(letter).filter(|letter| matches(&filter, letter));
            look(found.into_iter(), &asked, take, |_| false)
        })
    }

    fn count(&self, org: PublicId, filter: DeadFilter) -> Reply<'_, u64> {
        self.read(move |state| {
            let found = (state.closed.keys())
                .filter(|(message, _)| is_of(state, org, *message, &filter))
                .filter_map(|&(message, endpoint)| dead_letter(state, message, endpoint))
                .filter(|letter| matches(&filter, letter));
            u64::try_from(found.count()).unwrap_or(u64::MAX)
        })
    }

    fn dead_letter(
        &self,
        message: MessageKey,
        endpoint: EndpointKey,
    ) -> Reply<'_, Option<DeadLetter>> {
        self.read(move |state| dead_letter(state, message, endpoint))
    }

    fn replay_once(
        &self,
        (message, endpoint): (MessageKey, EndpointKey),
        once: Once<Replayed>,
    ) -> Reply<'static, Replayed> {
        self.shared.write_once(once, move |tx| Ok(replay(tx, message, endpoint)))
    }

    fn replay_edited_once(
        &self,
        (message, endpoint): (MessageKey, EndpointKey),
        edited: Edited,
        once: Once<Option<Accepted>>,
    ) -> Reply<'static, Option<Accepted>> {
        self.shared.write_once(once, move |tx| {
            if dead(tx.state, message, endpoint).is_none() {
                return Ok(None);
            }
            let accepted = accept(tx, edited.message);
            if let Accepted::New { key, .. } = accepted {
                tx.state.edits.insert(key, edited.edit);
                tx.rows += 1;
            }
            if matches!(accepted, Accepted::New { .. })
                && let Some(closed) = tx.state.closed.get_mut(&(message, endpoint))
            {
                closed.state = DeliveryState::Cancelled(CancelReason::Superseded);
            }
            Ok(Some(accepted))
        })
    }

    fn edit(&self, message: MessageKey) -> Reply<'_, Option<Edit>> {
        self.read(move |state| state.edits.get(&message).cloned())
    }

    fn delete(&self, message: MessageKey, endpoint: EndpointKey) -> Reply<'static, bool> {
        self.shared.write(move |tx| {
            if dead(tx.state, message, endpoint).is_none() {
                return Ok(false);
            }
            tx.rows += 1;
            let closed = tx.state.closed.entry((message, endpoint));
            closed.and_modify(|closed| closed.discarded = true);
            Ok(true)
        })
    }
}

/// The closed row of a dead letter, and why it died.
pub(super) fn dead(
    state: &State,
    message: MessageKey,
    endpoint: EndpointKey,
) -> Option<(&Closed, DeadReason)> {
    let closed = state.closed.get(&(message, endpoint))?;
    match closed.state {
        DeliveryState::Dead(reason) if !closed.discarded => Some((closed, reason)),
        _ => None,
    }
}

fn is_of(state: &State, org: PublicId, message: MessageKey, filter: &DeadFilter) -> bool {
    state.messages.get(&message).is_some_and(|message| {
        let of_org = state.apps.get(&message.app).is_some_and(|app| app.row.org == org);
        of_org && filter.app.is_none_or(|app| app == message.app)
    })
}

fn matches(filter: &DeadFilter, letter: &DeadLetter) -> bool {
    filter.endpoint.is_none_or(|endpoint| endpoint == letter.endpoint)
        && (filter.reasons.is_empty() || filter.reasons.contains(&letter.reason))
        && (filter.event_types.is_empty() || filter.event_types.contains(&letter.event_type))
        && filter.run.is_none_or(|run| letter.run == Some(run))
        && keys_within(filter.after, filter.before).contains(&letter.place)
}

fn dead_letter(
    state: &State,
    message_key: MessageKey,
    endpoint_key: EndpointKey,
) -> Option<DeadLetter> {
    let (closed, reason) = dead(state, message_key, endpoint_key)?;
    let message = state.messages.get(&message_key)?;
    let endpoint = &state.endpoints.get(&endpoint_key)?.row;
    let mut attempts = state.attempts_for(message_key, endpoint_key);
    let first = attempts.next();
    let last = state.attempts_for(message_key, endpoint_key).next_back();
    let last_failure = last.and_then(|last| match &last.attempt.outcome {
        Outcome::Failed(failure) => Some(failure.text.clone()),
        Outcome::Answered(_) => None,
    });
    Some(DeadLetter {
        message: message_key,
        message_id: message.id,
        endpoint: endpoint_key,
        endpoint_id: endpoint.id,
        event_id: message.spec.event_id.clone(),
        event_type: message.spec.event_type.clone(),
        url: endpoint.spec.target.as_str().to_owned(),
        reason,
        sends: closed.sends.max(state.sends(message_key, endpoint_key)),
        last_status: last.map_or(0, |last| last.attempt.status()),
        last_error: closed.error.clone().or(last_failure),
        first_attempt_at: first.map(|first| first.attempt.started_at),
        last_attempt_at: last.map(|last| last.attempt.started_at),
        dead_at: closed.at,
        place: closed.place,
        run: closed.run,
    })
}

pub(super) fn replay(tx: &mut Tx<'_>, message: MessageKey, endpoint: EndpointKey) -> Replayed {
    let Some((closed, _)) = dead(tx.state, message, endpoint) else { return Replayed::NotDead };
    let sends = closed.sends.max(tx.state.sends(message, endpoint));
    if tx.state.live_endpoint(endpoint).is_none() {
        return Replayed::NoEndpoint;
    }
    if tx.state.messages.get(&message).is_none_or(|message| message.payload_gone) {
        return Replayed::PayloadGone;
    }
    tx.state.closed.remove(&(message, endpoint));
    put_due(tx, message, endpoint, (sends, Trigger::Replay));
    Replayed::Pending
}

/// Adds a pending row that is due now, with budget and age at their beginning.
pub(super) fn put_due(
    tx: &mut Tx<'_>,
    message: MessageKey,
    endpoint: EndpointKey,
    (sends, trigger): (u32, Trigger),
) {
    let pending = tx.state.insert_pending(Pending {
        endpoint,
        due_at: tx.now,
        message,
        age_from: tx.now,
        sends,
        budget_used: 0,
        last_delay: Duration::ZERO,
        trigger,
    });
    tx.rows += 1;
    tx.fresh.push(Fresh { pending, endpoint: None, envelope: None });
}
