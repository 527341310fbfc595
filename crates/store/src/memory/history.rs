//! Reads of what happened, in the reference model.
//!
//! Never: change anything but the row of a resend and a payload or an answer that is expunged.

use std::sync::Arc;

use domain::attempt::Outcome;
use domain::delivery::Trigger;
use domain::ids::{AppKey, AttemptKey, EndpointKey, MessageKey, PublicId, key_floor};
use domain::message::Message;
use resilience::Timestamp;

use super::MemoryStore;
use super::dead_letters::put_due;
use super::prune::withdraw;
use super::state::{State, is_success, page};
use super::writer::Tx;
use crate::directory::IdOrUid;
use crate::history::{
    AttemptCounts, AttemptFilter, AttemptRow, DeliveryRow, EXPUNGED, History, MessageFilter,
    Resent, Sent, SentFilter, payloads_fill,
};
use crate::page::PageOf;
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
    ) -> Reply<'_, Vec<Message>> {
        self.read(move |state| {
            let found = state.messages.values();
            let found = found.filter(|message| message.app == app && wanted(message, &filter));
            let mut listed = Vec::new();
            for message in page(found, &asked, |message| message.key) {
                let mut message = Message::clone(message);
                if !payloads {
                    message.spec.payload.clear();
                }
                listed.push(message);
                if payloads_fill(&listed) {
                    break;
                }
            }
            listed
        })
    }

    fn attempts_of(
        &self,
        message: MessageKey,
        filter: AttemptFilter,
        asked: PageOf<AttemptKey>,
    ) -> Reply<'_, Vec<AttemptRow>> {
        self.read(move |state| {
            let found = state.attempts.values().filter(|row| row.message == message);
            attempts(state, found, &filter, &asked)
        })
    }

    fn attempts_to(
        &self,
        endpoint: EndpointKey,
        filter: AttemptFilter,
        asked: PageOf<AttemptKey>,
    ) -> Reply<'_, Vec<AttemptRow>> {
        self.read(move |state| {
            let found = state.attempts.values().filter(|row| row.endpoint == endpoint);
            attempts(state, found, &filter, &asked)
        })
    }

    fn messages_to(
        &self,
        app: AppKey,
        endpoint: EndpointKey,
        filter: SentFilter,
        asked: PageOf<MessageKey>,
    ) -> Reply<'_, Vec<Sent>> {
        self.read(move |state| {
            let found = state.messages.values();
            let found = found
                .filter(|message| message.app == app && wanted(message, &filter.message))
                .filter_map(|message| Some((message, state.delivery(message.key, endpoint)?)))
                .filter(|(_, row)| filter.takes(row));
            let mut listed: Vec<Sent> = Vec::new();
            for (message, delivery) in page(found, &asked, |(message, _)| message.key) {
                let mut message = Message::clone(message);
                if !filter.payloads {
                    message.spec.payload.clear();
                }
                listed.push(Sent { message, delivery });
                if payloads_fill(listed.iter().map(|sent| &sent.message)) {
                    break;
                }
            }
            listed
        })
    }

    fn count_attempts(
        &self,
        endpoint: EndpointKey,
        from: Timestamp,
        until: Option<Timestamp>,
    ) -> Reply<'_, AttemptCounts> {
        let span = AttemptKey(key_floor(from))..AttemptKey(until.map_or(u64::MAX, key_floor));
        self.read(move |state| {
            let mut counts = AttemptCounts::default();
            let rows = state.attempts.values();
            for row in rows.filter(|row| row.endpoint == endpoint && span.contains(&row.key)) {
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

fn wanted(message: &Message, filter: &MessageFilter) -> bool {
    filter.channel.as_ref().is_none_or(|channel| message.spec.channels.contains(channel))
        && filter.tag.as_ref().is_none_or(|tag| message.spec.tags.contains(tag))
        && (filter.event_types.is_empty() || filter.event_types.contains(&message.spec.event_type))
        && filter.before.is_none_or(|before| message.accepted_at < before)
        && filter.after.is_none_or(|after| message.accepted_at >= after)
}

fn attempts<'a>(
    state: &State,
    found: impl DoubleEndedIterator<Item = &'a AttemptRow>,
    filter: &AttemptFilter,
    asked: &PageOf<AttemptKey>,
) -> Vec<AttemptRow> {
    let found = found.filter(|row| {
        let status = if is_success(&row.attempt) { 0 } else { 2 };
        let class = row.attempt.status() / 100 * 100;
        let message = state.messages.get(&row.message);
        filter.endpoint.is_none_or(|endpoint| endpoint == row.endpoint)
            && filter.status.is_none_or(|asked| asked == status)
            && filter.status_class.is_none_or(|asked| asked == class)
            && message.is_some_and(|message| wanted(message, &filter.message))
    });
    page(found, asked, |row| row.key).into_iter().cloned().collect()
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
