//! The fields of a message's hash, and what they stand for.
//!
//! Names of attributes are kept apart from ours by a prefix, so that any name may be used.
//! Never: guess at a field that is missing or odd.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use resilience::Timestamp;

use crate::error::QueueError;
use crate::message::{DeadLetter, History, LeaseToken, Message, NewMessage};

const ATTRIBUTE: &str = "a:";

/// A message's hash as the server gives it.
pub(super) struct Fields(pub(super) HashMap<String, Vec<u8>>);

/// Names and values of a new message.
pub(super) fn of_new(message: &NewMessage) -> Vec<(String, Vec<u8>)> {
    let mut fields = vec![("body".to_owned(), message.body.to_vec())];
    if let Some(correlation) = &message.correlation {
        fields.push(("correlation".to_owned(), correlation.clone().into_bytes()));
    }
    let attributes = message.attributes.iter();
    fields.extend(
        attributes.map(|(name, value)| (format!("{ATTRIBUTE}{name}"), value.clone().into_bytes())),
    );
    fields
}

/// Begun, last wait, last error.
pub(super) fn of_history(history: &History) -> (String, u64, &str) {
    let begun = history.begun.map(|at| at.as_micros().to_string()).unwrap_or_default();
    (begun, micros(history.last_wait), history.last_error.as_deref().unwrap_or_default())
}

/// Bounded, so that sums of times stay exact in the server's arithmetic.
pub(super) fn micros(span: Duration) -> u64 {
    const CENTURY: u64 = 3_155_760_000_000_000;
    u64::try_from(span.as_micros()).map_or(CENTURY, |micros| micros.min(CENTURY))
}

impl Fields {
    pub(super) fn message(mut self, id: String, now: Timestamp) -> Result<Message, QueueError> {
        let id: Arc<str> = id.into();
        let last_wait = self.number("last_wait")?.unwrap_or(0);
        let history = History {
            begun: self.number("begun")?.map(Timestamp::from_micros),
            last_wait: Duration::from_micros(u64::try_from(last_wait).unwrap_or(0)),
            last_error: self.text("last_error")?.filter(|text| !text.is_empty()),
        };
        let fence = self.text("fence")?.ok_or(QueueError::Corrupt("fence"))?;
        Ok(Message {
            body: self.body()?,
            attributes: Arc::new(self.attributes()?),
            correlation: self.text("correlation")?.map(Into::into),
            attempt: self.attempt()?,
            enqueued_at: self.time("enqueued_at")?,
            received_at: now,
            history,
            token: LeaseToken::new(Arc::clone(&id), fence),
            id,
        })
    }

    pub(super) fn dead_letter(mut self, id: String) -> Result<DeadLetter, QueueError> {
        Ok(DeadLetter {
            id: id.into(),
            body: self.body()?,
            attributes: self.attributes()?,
            correlation: self.text("correlation")?,
            attempts: self.attempt()?,
            enqueued_at: self.time("enqueued_at")?,
            died_at: self.time("died_at")?,
            reason: self.text("reason")?.unwrap_or_default(),
            description: self.text("description")?.unwrap_or_default(),
        })
    }

    fn body(&mut self) -> Result<Bytes, QueueError> {
        self.0.remove("body").map(Bytes::from).ok_or(QueueError::Corrupt("body"))
    }

    fn attempt(&self) -> Result<u32, QueueError> {
        let number = self.number("attempt")?.and_then(|number| u32::try_from(number).ok());
        number.ok_or(QueueError::Corrupt("attempt"))
    }

    fn time(&self, name: &'static str) -> Result<Timestamp, QueueError> {
        self.number(name)?.map(Timestamp::from_micros).ok_or(QueueError::Corrupt(name))
    }

    /// None if it is missing or empty.
    fn number(&self, name: &'static str) -> Result<Option<i64>, QueueError> {
        let Some(text) = self.text(name)?.filter(|text| !text.is_empty()) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| QueueError::Corrupt(name))
    }

    fn text(&self, name: &'static str) -> Result<Option<String>, QueueError> {
        let Some(bytes) = self.0.get(name) else { return Ok(None) };
        String::from_utf8(bytes.clone()).map(Some).map_err(|_| QueueError::Corrupt(name))
    }

    fn attributes(&self) -> Result<BTreeMap<String, String>, QueueError> {
        let own = |(name, value): (&String, &Vec<u8>)| {
            let name = name.strip_prefix(ATTRIBUTE)?.to_owned();
            let value = String::from_utf8(value.clone());
            Some(value.map(|value| (name, value)).map_err(|_| QueueError::Corrupt("attribute")))
        };
        self.0.iter().filter_map(own).collect()
    }
}
