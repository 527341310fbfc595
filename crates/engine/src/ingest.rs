//! Stage 1: accepts a message.
//!
//! In: what a caller posted. Out: what became of it, durable. Matches endpoints from the roster;
//! when the store says that the copy was stale, matches again from fresh rows.
//! Never: send, or answer before the commit.

use std::sync::Arc;

use domain::fanout;
use domain::idempotency::IngestKey;
use domain::ids::{EndpointKey, PublicId};
use domain::message::MessageSpec;
use store::StoreError;
use store::directory::IdOrUid;
use store::inbox::{Accepted, Inbox, NewMessage};

use crate::roster::Roster;
use crate::throttle::{AppRates, Throttled};

/// How often a stale copy is matched again before giving up; each round reads fresh rows.
const ROUNDS_MAX: usize = 16;

/// Why a message was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IngestError {
    /// The store failed, or has too much to do.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The application has posted what it may in this second; nothing was looked at.
    #[error("accept more than {} messages a second of the application", .0.per_s)]
    Throttled(Throttled),
}

/// A message as posted.
#[derive(Clone, Debug)]
pub struct Post {
    /// The organisation of the caller.
    pub org: PublicId,
    /// The application in the path.
    pub app: IdOrUid,
    /// The message.
    pub spec: MessageSpec,
    /// The one endpoint it is for, whatever that filters; `None` for all that want it.
    pub only: Option<EndpointKey>,
    /// The caller's idempotency key, scoped and hashed.
    pub key: Option<IngestKey>,
    /// 12 random bytes for the public id.
    pub random: [u8; 12],
}

/// Accepts one message. Those for one endpoint are not counted against the application's rate.
pub async fn ingest(
    roster: &Roster,
    rates: &AppRates,
    inbox: &dyn Inbox,
    post: Post,
) -> Result<Accepted, IngestError> {
    for round in 0..ROUNDS_MAX {
        let Some(snapshot) = roster.app(post.org, &post.app).await? else {
            return Ok(Accepted::NoApplication);
        };
        if round == 0 && post.only.is_none() {
            rates.take(&snapshot.app).map_err(IngestError::Throttled)?;
        }
        let targets: Vec<_> = match post.only {
            None => fanout::matching(&snapshot.endpoints, &post.spec).map(Arc::clone).collect(),
            Some(only) => {
                snapshot.endpoints.iter().filter(|to| to.key == only).map(Arc::clone).collect()
            }
        };
        if targets.is_empty() && post.only.is_some() {
            return Ok(Accepted::NoApplication);
        }
        let message = NewMessage {
            app: snapshot.app.key,
            app_version: snapshot.app.version,
            spec: post.spec.clone(),
            random: post.random,
            targets,
            key: post.key,
            edited_from: None,
        };
        match inbox.accept(message).await? {
            Accepted::Stale | Accepted::NoApplication => roster.forget(snapshot.app.key),
            accepted => return Ok(accepted),
        }
    }
    Err(StoreError::Overloaded.into())
}
