//! The two idempotency keys: the one a receiver is given, and the one a caller gives.
//!
//! In: ids of things. Out: a key that is the same on every retry, resend, replay and node.
//! Never: hash what a caller sent; the caller of this module does, and passes the result.

use resilience::Timestamp;
use uuid::Uuid;

use crate::ids::{EndpointKey, PublicId};

/// The `idempotency-key` of a delivery, computed and never stored.
///
/// A UUID (version 5) in the name space `installation`, of the 40 bytes of the message's and the
/// endpoint's public id: one per delivery, whatever the number of sends.
pub fn delivery_key(installation: &[u8; 16], message: &PublicId, endpoint: &PublicId) -> String {
    let mut name = [0; 40];
    name[..20].copy_from_slice(message.as_bytes());
    name[20..].copy_from_slice(endpoint.as_bytes());
    Uuid::new_v5(&Uuid::from_bytes(*installation), &name).hyphenated().to_string()
}

/// The random part of the id of a notice's message: the same whenever its message is made.
pub fn notice_random(installation: &[u8; 16], place: u64) -> [u8; 12] {
    random_of(installation, &place.to_be_bytes())
}

/// The random part of the id of a task that nobody asked for.
pub fn task_random(installation: &[u8; 16], endpoint: EndpointKey, at: Timestamp) -> [u8; 12] {
    let mut name = [0; 16];
    name[..8].copy_from_slice(&endpoint.0.to_be_bytes());
    name[8..].copy_from_slice(&at.as_micros().to_be_bytes());
    random_of(installation, &name)
}

/// The random part of the id of an incident: the same whenever the rule begins to hold at that
/// time.
pub fn incident_random(installation: &[u8; 16], rule: &str, at_micros: i64) -> [u8; 12] {
    let name = [&at_micros.to_be_bytes()[..], rule.as_bytes()].concat();
    random_of(installation, &name)
}

/// Twelve bytes that look like chance and are the same for the same name.
fn random_of(installation: &[u8; 16], name: &[u8]) -> [u8; 12] {
    let id = Uuid::new_v5(&Uuid::from_bytes(*installation), name);
    let mut random = [0; 12];
    random.copy_from_slice(&id.as_bytes()[..12]);
    random
}

/// What a post is remembered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IngestKey {
    /// Hash of who asked, how, where and with which key.
    pub scope: [u8; 16],
    /// Hash of the body: another one under the same key is a mistake of the caller.
    pub body: [u8; 16],
}

/// What a post under a key that was seen before is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The same post again: it gets the answer of the first.
    Same,
    /// Another body under the same key: refused.
    Other,
}

impl IngestKey {
    /// How a later post compares with this one; `None` if it is under another key.
    pub fn repeat(&self, later: &Self) -> Option<Repeat> {
        match (self.scope == later.scope, self.body == later.body) {
            (false, _) => None,
            (true, true) => Some(Repeat::Same),
            (true, false) => Some(Repeat::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_per_delivery() {
        let (message, endpoint) = (PublicId::new(1, [1; 12]), PublicId::new(2, [2; 12]));
        let key = delivery_key(&[7; 16], &message, &endpoint);
        assert_eq!(key, delivery_key(&[7; 16], &message, &endpoint), "the same every time");
        assert_eq!(key, "ae837ab3-1188-5b27-951c-8fd78cb6f67d", "and after every upgrade");
        assert_eq!((key.len(), &key[14..15]), (36, "5"));
        assert_ne!(key, delivery_key(&[7; 16], &endpoint, &message));
        assert_ne!(key, delivery_key(&[8; 16], &message, &endpoint));
        assert_ne!(key, delivery_key(&[7; 16], &message, &PublicId::new(2, [3; 12])));
    }

    #[test]
    fn each_notice_has_its_own() {
        assert_eq!(notice_random(&[7; 16], 1), notice_random(&[7; 16], 1));
        assert_ne!(notice_random(&[7; 16], 1), notice_random(&[7; 16], 2));
        assert_ne!(notice_random(&[7; 16], 1), notice_random(&[8; 16], 1));
    }

    #[test]
    fn a_repeat_is_told_from_a_mistake() {
        let first = IngestKey { scope: [1; 16], body: [2; 16] };
        assert_eq!(first.repeat(&first), Some(Repeat::Same));
        assert_eq!(first.repeat(&IngestKey { body: [3; 16], ..first }), Some(Repeat::Other));
        assert_eq!(first.repeat(&IngestKey { scope: [3; 16], ..first }), None);
    }
}
