//! Accepting, in SQLite.
//!
//! A message to one endpoint is two inserts; its idempotency key stands in its own row.
//! Never: look up what an insert would tell anyway.

use std::sync::Arc;
use std::time::Duration;

use domain::delivery::Pending;
use domain::idempotency::IngestKey;
use domain::ids::{MessageKey, PublicId};
use domain::limits::IDEMPOTENCY_WINDOW;
use domain::message::{ContentType, Envelope, Message, MessageSpec};
use resilience::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::rows::{MESSAGE, bytes_at, message, one, time_at};
use super::tx::Tx;
use crate::commits::Fresh;
use crate::inbox::{Accepted, Inbox, NewMessage};
use crate::stored::codes::Code as _;
use crate::stored::labels::labels;
use crate::stored::numbers::micros;
use crate::{Reply, StoreError};

impl Inbox for SqliteStore {
    fn accept(&self, message: NewMessage) -> Reply<'static, Accepted> {
        self.shared.door.accept(message)
    }

    fn used(&self, key: IngestKey) -> Reply<'static, Option<Accepted>> {
        self.shared.door.change(move |tx| tx.recall(&key))
    }

    fn probe(&self) -> Reply<'static, ()> {
        self.shared.door.change(|tx| tx.probe())
    }
}

impl Tx<'_> {
    /// Accepts `new`, or says why not; an error is a fault of the database.
    pub(super) fn accept(&mut self, new: NewMessage) -> Result<Accepted, StoreError> {
        if let Some(ingest) = &new.key
            && let Some(outcome) = self.recall(ingest)?
        {
            return Ok(outcome);
        }
        match self.version_of(new.app)? {
            None => return Ok(Accepted::NoApplication),
            Some(version) if version != new.app_version => return Ok(Accepted::Stale),
            Some(_) => {}
        }
        let Some(due_at) = new.spec.due_at(self.now) else {
            return Ok(Accepted::DeliverAtOutside);
        };
        let key = MessageKey(self.draw());
        if !self.insert_message(key, &new)? {
            return Ok(Accepted::EventIdTaken);
        }
        if let Some(ingest) = &new.key {
            self.used.add(ingest.scope, key);
        }
        let id = PublicId::new(key.0, new.random);
        self.fan_out((key, id), due_at, new)?;
        Ok(Accepted::New { key, id, accepted_at: self.now })
    }

    /// The outcome of an earlier post under the same key, unless the key ran out.
    fn recall(&self, ingest: &IngestKey) -> Result<Option<Accepted>, StoreError> {
        let Some(key) = self.used.find(self.conn, &ingest.scope)? else { return Ok(None) };
        let sql = "SELECT key_body, accepted_at FROM message WHERE key = ?1 AND key_scope = ?2";
        let mut statement = self.conn.prepare_cached(sql)?;
        let values = params![key.0.cast_signed(), ingest.scope];
        let used = one(&mut statement.query(values)?, |row| {
            Ok((bytes_at::<16>(row, 0)?, time_at(row, 1)?))
        })?;
        let used = used.filter(|(_, at)| self.now.since(*at) < IDEMPOTENCY_WINDOW);
        match used {
            None => Ok(None),
            Some((body, _)) if body != ingest.body => Ok(Some(Accepted::BodyDiffers)),
            Some(_) => Ok(read_message(self.conn, key)?.map(Box::new).map(Accepted::Repeated)),
        }
    }

    /// `false` when the event id is taken.
    fn insert_message(&mut self, key: MessageKey, new: &NewMessage) -> Result<bool, StoreError> {
        let spec = &new.spec;
        let content_type = match &spec.content_type {
            ContentType::Json => None,
            ContentType::Other(text) => Some(text.as_str()),
        };
        let inserted = self.hot.insert_message.execute(params![
            key.0.cast_signed(),
            &new.random[..],
            new.app.0,
            self.now.as_micros(),
            spec.event_type,
            spec.event_id,
            labels(spec),
            content_type,
            spec.retention_hours,
            new.edited_from.as_ref().map(|id| &id.as_bytes()[..]),
            new.key.as_ref().map(|key| &key.scope[..]),
            new.key.as_ref().map(|key| &key.body[..]),
            &spec.payload[..],
        ])?;
        if inserted == 1 {
            self.batch.rows += 1;
            self.batch.messages.push((new.app.0, key.0.cast_signed()));
        }
        Ok(inserted == 1)
    }

    fn fan_out(
        &mut self,
        (message, id): (MessageKey, PublicId),
        due_at: Timestamp,
        new: NewMessage,
    ) -> Result<(), StoreError> {
        // What is found by its message's time of acceptance must be due then.
        let moved = due_at != self.now;
        let trigger = new.trigger();
        let MessageSpec { payload, content_type, trace, .. } = new.spec;
        let envelope = Arc::new(Envelope { id, payload, content_type, trace });
        for endpoint in new.targets {
            let pending = Pending {
                endpoint: endpoint.key,
                due_at,
                message,
                age_from: due_at,
                sends: 0,
                budget_used: 0,
                last_delay: Duration::ZERO,
                trigger,
            };
            let pending = self.put_pending(pending, moved)?;
            let envelope = Some(Arc::clone(&envelope));
            self.batch.fresh.push(Fresh { pending, endpoint: Some(endpoint), envelope });
        }
        Ok(())
    }

    /// Adds a pending row; a second manual send at the very same time is due 1 µs later.
    pub(super) fn put_pending(
        &mut self,
        mut row: Pending,
        moved: bool,
    ) -> Result<Pending, StoreError> {
        while self.hot.insert_pending.execute(params![
            row.endpoint.0,
            row.due_at.as_micros(),
            row.message.0.cast_signed(),
            row.trigger.code(),
            row.age_from.as_micros(),
            row.sends,
            row.budget_used,
            micros(row.last_delay),
            moved,
        ])? == 0
        {
            row.due_at = row.due_at.plus(Duration::from_micros(1));
        }
        self.batch.rows += 1;
        self.batch.depth += 1;
        Ok(row)
    }

    /// Removes a pending row if it is still as it was read; a number of sends that was raised
    /// meanwhile does not matter.
    pub(super) fn remove_pending(&mut self, row: &Pending) -> Result<bool, StoreError> {
        let removed = self.hot.delete_pending.execute(params![
            row.endpoint.0,
            row.due_at.as_micros(),
            row.message.0.cast_signed(),
            row.trigger.code(),
            row.budget_used,
            row.age_from.as_micros(),
        ])?;
        if removed == 1 {
            self.batch.rows += 1;
            self.batch.depth -= 1;
        }
        Ok(removed == 1)
    }
}

/// A whole message.
pub(super) fn read_message(
    conn: &Connection,
    key: MessageKey,
) -> Result<Option<Message>, StoreError> {
    let sql = format!("SELECT {MESSAGE} FROM message WHERE key = ?1");
    let mut statement = conn.prepare_cached(&sql)?;
    one(&mut statement.query([key.0.cast_signed()])?, message)
}
