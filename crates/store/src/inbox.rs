//! Accepting: a message, all its deliveries and its idempotency key, in one transaction.
//!
//! Never: answer before the commit, or match endpoints: the caller did that, at a version which is
//! checked here.

use std::sync::Arc;

use domain::delivery::Trigger;
use domain::endpoint::Endpoint;
use domain::idempotency::IngestKey;
use domain::ids::{AppKey, MessageKey, PublicId};
use domain::message::{Message, MessageSpec};
use resilience::Timestamp;

use crate::Reply;

/// A message to accept.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// The application.
    pub app: AppKey,
    /// The application's version at which `targets` was matched.
    pub app_version: i64,
    /// What was posted.
    pub spec: MessageSpec,
    /// 12 random bytes of its public id.
    pub random: [u8; 12],
    /// Every endpoint it goes to.
    pub targets: Vec<Arc<Endpoint>>,
    /// The caller's idempotency key, scoped and hashed, and the hash of the body.
    pub key: Option<IngestKey>,
    /// The message it was edited from.
    pub edited_from: Option<PublicId>,
}

impl NewMessage {
    /// Why its first sends are made: an edited message is somebody's replay.
    pub(crate) const fn trigger(&self) -> Trigger {
        if self.edited_from.is_some() { Trigger::Asked } else { Trigger::Scheduled }
    }
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Committed now, with these key, id and time.
    New {
        /// Inner key, drawn in commit order.
        key: MessageKey,
        /// Public id.
        id: PublicId,
        /// When it was committed.
        accepted_at: Timestamp,
    },
    /// The idempotency key was used before with the same body; this is what it made.
    Repeated(Box<Message>),
    /// The idempotency key was used before with another body.
    BodyDiffers,
    /// `deliver_at` is neither now nor near, or the payload would be gone by then.
    DeliverAtOutside,
    /// The event id is taken by another message of the application.
    EventIdTaken,
    /// The application changed since `app_version`: match again from fresh rows.
    Stale,
    /// The application is gone, or the one endpoint that the message was for.
    NoApplication,
}

/// The one door in.
pub trait Inbox: Send + Sync {
    /// Commits the message and everything that belongs to it, or nothing.
    ///
    /// Order of checks: idempotency key, application and version, time of delivery, event id. First
    /// sends are due, and age runs, from the time that the message names, else from now. A key
    /// lives 12 h. Two equal keys in one batch: the later one gets the first one's outcome. After
    /// the commit the rows are handed to `Commits::fresh`, then this answers. Dropping the future
    /// does not undo anything. [`Overloaded`](crate::StoreError::Overloaded): it is not stored, and
    /// will not be.
    fn accept(&self, message: NewMessage) -> Reply<'static, Accepted>;
    /// What the post under this idempotency key came to, [`Accepted::Repeated`] or
    /// [`Accepted::BodyDiffers`]; `None` while the key is unused. For a post that may not be
    /// accepted any more: a repeat of one that was has its answer all the same.
    fn used(&self, key: IngestKey) -> Reply<'static, Option<Accepted>>;
    /// Commits something that no caller sees: whether a message could be committed now.
    fn probe(&self) -> Reply<'static, ()>;
}
