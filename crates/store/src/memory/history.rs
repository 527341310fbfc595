//! Reads of what happened, in the reference model.
//!
//! Never: change anything but the row of a resend and a payload that is expunged.

use std::sync::Arc;

use domain::delivery::Trigger;
use domain::ids::{AppKey, AttemptKey, EndpointKey, MessageKey, PublicId};
use domain::message::Message;

use super::MemoryStore;
use super::dead_letters::put_due;
use super::state::{State, is_success, page};
use super::writer::Tx;
use crate::directory::IdOrUid;
use crate::history::{
    AttemptFilter, AttemptRow, DeliveryRow, History, MessageFilter, Resent, payloads_fill,
};
use crate::page::PageOf;
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

    fn attempt(&self, message: MessageKey, id: PublicId) -> Reply<'_, Option<AttemptRow>> {
        self.read(move |state| {
            let found = state.attempts.get(&AttemptKey(id.key()))?;
            (found.id == id && found.message == message).then(|| found.clone())
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

    fn resend(&self, message: MessageKey, endpoint: EndpointKey) -> Reply<'static, Resent> {
        self.shared.write(move |tx| Ok(resend(tx, message, endpoint)))
    }

    fn expunge(&self, message: MessageKey) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            let found = tx.state.messages.get_mut(&message);
            let message = Arc::make_mut(found.ok_or(StoreError::Missing("message"))?);
            message.spec.payload.clear();
            message.payload_gone = true;
            tx.rows += 1;
            Ok(())
        })
    }
}

fn wanted(message: &Message, filter: &MessageFilter) -> bool {
    filter.channel.as_ref().is_none_or(|channel| message.spec.channels.contains(channel))
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

fn resend(tx: &mut Tx<'_>, message: MessageKey, endpoint: EndpointKey) -> Resent {
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
