//! Retention: what is old enough goes, from the oldest on, in small pieces.
//!
//! Keys begin with time, so that "older than" is a range of keys. Whoever prunes keeps the cursor
//! and says what time it is; the store keeps nothing of its own between two pieces.
//! Never: take away a payload or a message that a pending or dead delivery needs, unless the
//! message named its period itself.

use std::time::Duration;

use domain::ids::key_floor;
use domain::limits::{DEAD_LETTER_DAYS, MESSAGE_DAYS, RETENTION_DAYS};
use resilience::Timestamp;

use crate::Reply;

/// What a dead letter says whose payload went before it could be sent.
pub const PAYLOAD_GONE: &str = "its payload was deleted before it could be sent";

/// How long things are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Payloads of messages that name no period; longer while a delivery is pending or dead.
    pub payload: Duration,
    /// Dead letters, from their death.
    pub dead_letters: Duration,
    /// Messages with their deliveries and attempts; longer while a delivery is pending or dead,
    /// and never shorter than their payloads.
    pub messages: Duration,
}

/// A day of a message's own period, and of the settings.
pub const fn days(number: u8) -> Duration {
    Duration::from_secs(number as u64 * 24 * 3_600)
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            payload: days(RETENTION_DAYS),
            dead_letters: days(DEAD_LETTER_DAYS),
            messages: days(MESSAGE_DAYS),
        }
    }
}

impl Retention {
    /// Whether payloads go before their messages do.
    pub fn payloads_go_first(&self) -> bool {
        self.payload < self.messages
    }

    /// Keys of payloads below this are due.
    pub fn payload_floor(&self, now: Timestamp) -> u64 {
        key_floor(now.minus(self.payload))
    }

    /// Places of dead letters below this are due.
    pub fn dead_letter_floor(&self, now: Timestamp) -> u64 {
        key_floor(now.minus(self.dead_letters))
    }

    /// Keys of messages below this are due.
    pub fn message_floor(&self, now: Timestamp) -> u64 {
        key_floor(now.minus(self.messages.max(self.payload)))
    }
}

/// How far pruning has looked; the default is the very beginning.
///
/// What was passed over because a delivery needed it is looked at again by whoever begins anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The last message whose payload was looked at.
    pub payloads: u64,
    /// The place of the last dead letter that was looked at.
    pub dead_letters: u64,
    /// The last message that was looked at.
    pub messages: u64,
}

/// Rows that went, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Payloads of messages that stay.
    pub payloads: usize,
    /// Dead letters that left the lists.
    pub dead_letters: usize,
    /// Messages.
    pub messages: usize,
    /// Attempts.
    pub attempts: usize,
    /// Answers kept under an idempotency key.
    pub answers: usize,
}

/// What one piece came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// What went.
    pub counts: Counts,
    /// Where the next piece begins.
    pub reached: Cursor,
    /// Whether there may be more to do now.
    pub more: bool,
}

/// Takes away what is old enough.
pub trait Prune: Send + Sync {
    /// One piece of at most 500 rows, as of `now`, from the cursor on:
    ///
    /// * the payload of a message that named its period, on its day. Its waiting deliveries die as
    ///   `payload_gone` with it, and are handed to `Commits::withdrawn`;
    /// * a dead letter: it leaves the lists and cannot be replayed; its delivery is still dead;
    /// * the payload of any other message, and the message with its deliveries and attempts, once
    ///   no delivery of it is pending or a dead letter;
    /// * an answer that was kept under an idempotency key, once its time is over.
    fn prune(&self, now: Timestamp, keep: Retention, from: Cursor) -> Reply<'static, Pruned>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_never_goes_before_its_payload() {
        let now = Timestamp::from_secs(1_790_000_000);
        let keep = Retention { payload: days(30), dead_letters: days(1), messages: days(5) };
        assert!(!keep.payloads_go_first());
        assert_eq!(keep.message_floor(now), keep.payload_floor(now));
        assert!(keep.dead_letter_floor(now) > keep.message_floor(now));
        assert!(!Retention::default().payloads_go_first(), "by default they go together");
    }
}
