//! An endpoint: where messages go, what it wants, and how it is treated.
//!
//! Never: dial, sign or store.

use std::time::Duration;

use resilience::Timestamp;
use webhook::Secret;

use crate::email::EmailAddress;
use crate::ids::{AppKey, EndpointKey, PublicId};
use crate::policy::{BreakerOverrides, RetryOverrides};
use crate::target::Target;

/// A signing secret and how long it still signs.
#[derive(Clone, Debug)]
pub struct LiveSecret {
    /// The secret.
    pub secret: Secret,
    /// It stops signing then; `None` for the newest.
    pub expires_at: Option<Timestamp>,
}

/// Whether messages are sent in the order of their acceptance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ordering {
    /// As they fall due, many at a time.
    #[default]
    Unordered,
    /// One at a time, in order; a dead one is passed over.
    Ordered,
    /// One at a time, in order; a dead one blocks until it is replayed or deleted.
    Strict,
}

/// Why an endpoint gets nothing sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disabled {
    /// Its owner switched it off.
    ByOwner,
    /// It answered 410.
    Gone,
}

/// What a caller decides about an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointSpec {
    /// Where to send.
    pub target: Target,
    /// For people.
    pub description: String,
    /// The caller's own name for it, unique in the application.
    pub uid: Option<String>,
    /// A number the caller keeps with it.
    pub version: u16,
    /// Why nothing is sent, if so.
    pub disabled: Option<Disabled>,
    /// Only these event types; `None` for all.
    pub event_types: Option<Vec<String>>,
    /// Only messages on one of these channels; `None` for all.
    pub channels: Option<Vec<String>>,
    /// At most so many sends a second.
    pub throttle_rate: Option<u16>,
    /// A JSON object of texts, as text.
    pub metadata: String,
    /// Extra request headers, names as given.
    pub headers: Vec<(String, String)>,
    /// Retry settings that differ from the server's.
    pub retry: RetryOverrides,
    /// Breaker settings that differ from the server's.
    pub breaker: BreakerOverrides,
    /// Deadline of one attempt, DNS to last body byte, if it differs from the server's.
    pub timeout: Option<Duration>,
    /// Order of sends.
    pub ordering: Ordering,
    /// Whom to write to when it is suspended.
    pub contact_email: Option<EmailAddress>,
    /// Whether its dead letters go back by themselves after an outage, if it differs from the
    /// server's.
    pub auto_replay: Option<bool>,
    /// Asked whether it is well while nothing is sent to it.
    pub health_check: Option<Target>,
}

/// An endpoint as stored.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Inner key.
    pub key: EndpointKey,
    /// Public id, `ep_…`.
    pub id: PublicId,
    /// The application it belongs to.
    pub app: AppKey,
    /// The public id of that application.
    pub app_id: PublicId,
    /// What the caller decided.
    pub spec: EndpointSpec,
    /// Newest first; at most 10 alive.
    pub secrets: Vec<LiveSecret>,
    /// The application's version at which this row was written: the larger is the newer copy.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Endpoint {
    /// The secrets that sign at `now`, newest first.
    pub fn signing(&self, now: Timestamp) -> impl Iterator<Item = &Secret> {
        self.secrets
            .iter()
            .filter(move |live| live.expires_at.is_none_or(|end| end > now))
            .map(|live| &live.secret)
    }
}
