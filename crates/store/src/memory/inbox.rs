//! Accepting, in the reference model.
//!
//! Never: change anything before every check has passed.

use std::sync::Arc;
use std::time::Duration;

use domain::delivery::Pending;
use domain::idempotency::IngestKey;
use domain::ids::{MessageKey, PublicId};
use domain::limits;
use domain::message::{Envelope, Message};

use super::MemoryStore;
use super::facts::Fact;
use super::state::UsedKey;
use super::writer::Tx;
use crate::Reply;
use crate::commits::Fresh;
use crate::inbox::{Accepted, Inbox, NewMessage};

impl Inbox for MemoryStore {
    fn accept(&self, message: NewMessage) -> Reply<'static, Accepted> {
        self.shared.write(move |tx| Ok(accept(tx, message)))
    }

    fn used(&self, key: IngestKey) -> Reply<'static, Option<Accepted>> {
        self.shared.write(move |tx| Ok(used(tx, &key)))
    }

    fn probe(&self) -> Reply<'static, ()> {
        self.shared.write(|_| Ok(()))
    }
}

/// Accepts `new`, or says why not.
pub(super) fn accept(tx: &mut Tx<'_>, new: NewMessage) -> Accepted {
    if let Some(refusal) = check(tx, &new) {
        return refusal;
    }
    let now = tx.now;
    let Some(due_at) = new.spec.due_at(now) else { return Accepted::DeliverAtOutside };
    let key = MessageKey(tx.draw());
    let (id, trigger) = (PublicId::new(key.0, new.random), new.trigger());
    if let Some(event_id) = new.spec.event_id.clone() {
        tx.state.event_ids.insert((new.app, event_id), key);
    }
    if let Some(used) = &new.key {
        let row = UsedKey { message: key, body: used.body, at: now };
        tx.state.ingest_keys.insert(used.scope, row);
    }
    let message = Arc::new(Message {
        key,
        id,
        app: new.app,
        spec: new.spec,
        payload_gone: false,
        accepted_at: now,
        edited_from: new.edited_from,
    });
    let envelope = Arc::new(envelope(&message));
    tx.state.facts.push(Fact::accepted(key, new.app));
    tx.rows += 1 + new.targets.len();
    for endpoint in new.targets {
        let pending = tx.state.insert_pending(Pending {
            endpoint: endpoint.key,
            due_at,
            message: key,
            age_from: due_at,
            sends: 0,
            budget_used: 0,
            last_delay: Duration::ZERO,
            trigger,
        });
        let envelope = Some(Arc::clone(&envelope));
        tx.fresh.push(Fresh { pending, endpoint: Some(endpoint), envelope });
    }
    tx.state.messages.insert(key, message);
    Accepted::New { key, id, accepted_at: now }
}

/// Idempotency key, application and version, event id, in this order.
fn check(tx: &Tx<'_>, new: &NewMessage) -> Option<Accepted> {
    if let Some(outcome) = new.key.as_ref().and_then(|key| used(tx, key)) {
        return Some(outcome);
    }
    let Some(app) = tx.state.live_app(new.app) else { return Some(Accepted::NoApplication) };
    if app.version != new.app_version {
        return Some(Accepted::Stale);
    }
    if new.spec.due_at(tx.now).is_none() {
        return Some(Accepted::DeliverAtOutside);
    }
    let event_id = new.spec.event_id.clone()?;
    tx.state.event_ids.contains_key(&(new.app, event_id)).then_some(Accepted::EventIdTaken)
}

/// What the post under this key came to, if the key lives.
fn used(tx: &Tx<'_>, key: &IngestKey) -> Option<Accepted> {
    let used = tx.state.ingest_keys.get(&key.scope)?;
    if tx.now.since(used.at) >= limits::IDEMPOTENCY_WINDOW {
        return None;
    }
    if used.body != key.body {
        return Some(Accepted::BodyDiffers);
    }
    let message = tx.state.messages.get(&used.message)?;
    Some(Accepted::Repeated(Box::new(Message::clone(message))))
}

/// What a send needs of a message.
pub(super) fn envelope(message: &Message) -> Envelope {
    Envelope {
        id: message.id,
        payload: message.spec.payload.clone(),
        content_type: message.spec.content_type.clone(),
        trace: message.spec.trace.clone(),
    }
}
