//! Reads of what happened, in the reference model.
//!
//! Never: change anything but the row of a resend and a payload or an answer that is expunged.

use std::sync::Arc;

use domain::attempt::Outcome;
use domain::delivery::Trigger;
use domain::ids::{AppKey, AttemptKey, EndpointKey, MessageKey, PublicId};
use domain::message::Message;
use resilience::Timestamp;

use super::MemoryStore;
use super::dead_letters::put_due;
use super::prune::withdraw;
use super::state::{State, is_success, look};
use super::writer::Tx;
use crate::directory::IdOrUid;
use crate::history::{
    AttemptCounts, AttemptFilter, AttemptRow, DeliveryRow, EXPUNGED, History, MessageFilter,
    Resent, Sent, SentFilter, payloads_fill,
};
use crate::page::{Looked, PageOf, keys_within};
use crate::recall::Once;
use crate::{Reply, StoreError};

impl History for MemoryStore {
    fn message(&self, app: AppKey, which: IdOrUid) -> Reply<'_, Option<Arc<Message>>> {
        self.read(move |state| {
            let key = match &which {
                IdOrUid::Id(id) => MessageKey(id.key()),
                IdOrUid::Uid(uid) => *state.event_ids.get(&(app, uid.clone()))?,
            };
            let message = state.messages.get(&key)?;
            let is_it = match which {
                IdOrUid::Id(id) => message.id == id && message.app == app,
                IdOrUid::Uid(_) => true,
            };
            is_it.then(|| Arc::clone(message))
        })
    }

    fn messages(
        &self,
        app: AppKey,
        filter: MessageFilter,
        asked: PageOf<MessageKey>,
        payloads: bool,
    ) -> Reply<'_, Looked<Message, MessageKey>> {
        self.read(move |state| {
            let rows = of_app(state, app, &filter);
            let take = |message| wanted(message, &filter).then(|| shown(message, payloads));
            look(rows, &asked, take, |found| payloads_fill(found))
        })
    }

    fn attempts_of(
        &self,
        message: MessageKey,
        filter: AttemptFilter,
        asked: PageOf<AttemptKey>,
    ) -> Reply<'_, Looked<AttemptRow, AttemptKey>> {
        self.read(move |state| {
            let rows = state.attempts.values().filter(|row| row.message == message);
            attempts(state, rows, &filter, &asked)
        })
    }

    fn attempts_to(
        &self,
        endpoint: EndpointKey,
        filter: AttemptFilter,
        asked: PageOf<AttemptKey>,
    ) -> Reply<'_, Looked<AttemptRow, AttemptKey>> {
        self.read(move |state| {
            let rows = state.attempts.values().filter(|row| row.endpoint == endpoint);
            attempts(state, rows, &filter, &asked)
        })
    }

    fn messages_to(
        &self,
        app: AppKey,
        endpoint: EndpointKey,
        filter: SentFilter,
        asked: PageOf<MessageKey>,
    ) -> Reply<'_, Looked<Sent, MessageKey>> {
        self.read(move |state| {
            let rows = of_app(state, app, &filter.message);
            let take = |message: &Message| {
                let delivery = state.delivery(message.key, endpoint)?;
                (filter.takes(&delivery) && wanted(message, &filter.message))
                    .then(|| Sent { message: shown(message, filter.payloads), delivery })
            };
            let is_full = |found: &[Sent]| payloads_fill(found.iter().map(|sent| &sent.message));
            look(rows, &asked, take, is_full)
        })
    }

    fn count_attempts(
        &self,
        endpoint: EndpointKey,
        from: Timestamp,
        until: Option<Timestamp>,
    ) -> Reply<'_, AttemptCounts> {
        let span = keys_within(Some(from), until);
        self.read(move |state| {
            let mut counts = AttemptCounts::default();
            let rows = state.attempts.values();
            for row in rows.filter(|row| row.endpoint == endpoint && span.contains(&row.key.0)) {
                counts.add(is_success(&row.attempt));
            }
            counts
        })
    }

    fn attempt(&self, message: MessageKey, id: PublicId) -> Reply<'_, Option<AttemptRow>> {
        self.read(move |state| {
            let found = state.attempts.get(&AttemptKey(id.key()))?;
            (found.id == id && found.message == message).then(|| found.clone())
        })
    }

    fn expunge_attempt(&self, message: MessageKey, id: PublicId) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            let found = tx.state.attempts.get_mut(&AttemptKey(id.key()));
            let found = found.filter(|row| row.id == id && row.message == message);
            let row = found.ok_or(StoreError::Missing("attempt"))?;
            if let Outcome::Answered(answer) = &mut row.attempt.outcome {
                (answer.body, answer.cut) = (EXPUNGED.into(), None);
            }
            tx.rows += 1;
            Ok(())
        })
    }

    fn deliveries(&self, message: MessageKey) -> Reply<'_, Vec<DeliveryRow>> {
        self.read(move |state| state.deliveries(message))
    }

    fn waiting(&self, endpoint: EndpointKey, bound: u64) -> Reply<'_, u64> {
        self.read(move |state| {
            u64::try_from(state.pending_to(endpoint).count()).unwrap_or(u64::MAX).min(bound)
        })
    }

    fn resend_once(
        &self,
        (message, endpoint): (MessageKey, EndpointKey),
        once: Once<Resent>,
    ) -> Reply<'static, Resent> {
        self.shared.write_once(once, move |tx| Ok(resend(tx, message, endpoint)))
    }

    fn expunge(&self, message: MessageKey) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            if !tx.state.messages.contains_key(&message) {
                return Err(StoreError::Missing("message"));
            }
            withdraw(tx, message);
            Ok(())
        })
    }
}

/// Messages of an application in the span of time that is asked for.
fn of_app<'a>(
    state: &'a State,
    app: AppKey,
    filter: &MessageFilter,
) -> impl DoubleEndedIterator<Item = (MessageKey, &'a Message)> {
    let span = keys_within(filter.after, filter.before);
    let rows = state.messages.iter().map(|(key, message)| (*key, &**message));
    rows.filter(move |(key, message)| message.app == app && span.contains(&key.0))
}

fn shown(message: &Message, payloads: bool) -> Message {
    let mut message = message.clone();
    if !payloads {
        message.spec.payload.clear();
    }
    message
}

/// Whether a message is wanted, its time aside.
fn wanted(message: &Message, filter: &MessageFilter) -> bool {
    filter.channel.as_ref().is_none_or(|channel| message.spec.channels.contains(channel))
        && filter.tag.as_ref().is_none_or(|tag| message.spec.tags.contains(tag))
        && (filter.event_types.is_empty() || filter.event_types.contains(&message.spec.event_type))
}

fn attempts<'a>(
    state: &State,
    rows: impl DoubleEndedIterator<Item = &'a AttemptRow>,
    filter: &AttemptFilter,
    asked: &PageOf<AttemptKey>,
) -> Looked<AttemptRow, AttemptKey> {
    let span = keys_within(filter.message.after, filter.message.before);
    let rows = rows.filter(move |row| span.contains(&row.key.0)).map(|row| (row.key, row));
    let take = |row: &AttemptRow| {
        let status = if is_success(&row.attempt) { 0 } else { 2 };
        let class = row.attempt.status() / 100 * 100;
        let message = state.messages.get(&row.message);
        let is_wanted = filter.endpoint.is_none_or(|endpoint| endpoint == row.endpoint)
            && filter.status.is_none_or(|asked| asked == status)
            && filter.status_class.is_none_or(|asked| asked == class)
            && message.is_some_and(|message| wanted(message, &filter.message));
        is_wanted.then(|| row.clone())
    };
    look(rows, asked, take, |_| false)
}

pub(super) fn resend(tx: &mut Tx<'_>, message: MessageKey, endpoint: EndpointKey) -> Resent {
    let (Some(found), Some(to)) =
        (tx.state.messages.get(&message), tx.state.live_endpoint(endpoint))
    else {
        return Resent::Missing;
    };
    if found.app != to.app {
        return Resent::Missing;
    }
    if found.payload_gone {
        return Resent::PayloadGone;
    }
    let scheduled = tx.state.scheduled(message, endpoint).map_or(0, |row| row.sends);
    let sends = tx.state.sends(message, endpoint).max(scheduled);
    put_due(tx, message, endpoint, (sends, Trigger::Manual));
    Resent::Pending
}
