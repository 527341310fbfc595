//! Chore: turns notices into messages to the organisations they are for.
//!
//! In: notices that the store kept with what they tell of. Out: ordinary messages of the
//! applications that tell, each accepted in the transaction that takes its notice out. So a crash
//! between two of them loses none and tells none twice.
//! Never: word a message (whoever starts the engine does), or tell of what is not committed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::event_type::EventType;
use domain::fanout;
use domain::idempotency::notice_random;
use domain::ids::AppKey;
use domain::message::{ContentType, MessageSpec};
use domain::nodes::Chore;
use domain::notice::{MANAGEMENT, NAMES, Notice, teller_of};
use resilience::Timestamp;
use store::directory::{Directory, IdOrUid};
use store::inbox::{Accepted, NewMessage};
use store::nodes::Share;
use store::notices::Kept;
use store::{Reply, StoreError, Stores};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::chores::idle;
use crate::roster::Roster;
use crate::trace::Tracing;

/// Notices on their way into one commit.
const PIECE: usize = 100;
/// After the store failed.
const AFTER_FAULT: Duration = Duration::from_secs(1);

/// The payload of a notice, as receivers get it.
pub type Wording = fn(&Notice) -> Bytes;

/// Turns notices into messages.
pub struct Announcer {
    stores: Stores,
    roster: Arc<Roster>,
    wording: Wording,
    installation: [u8; 16],
    share: Arc<Share>,
    tracing: Tracing,
}

/// The message of a notice.
struct Told {
    /// The application that tells.
    app: AppKey,
    event_type: &'static str,
    bytes: usize,
}

/// What became of a notice: it has a message, or nobody to go to.
type Step = Reply<'static, Option<Accepted>>;

impl Announcer {
    /// Announces what `stores` keep, to endpoints that `roster` knows.
    pub fn new(stores: Stores, roster: Arc<Roster>, wording: Wording, tracing: Tracing) -> Self {
        let installation = stores.directory.installation();
        let share = stores.nodes.share();
        Self { stores, roster, wording, installation, share, tracing }
    }

    /// Works until it is dropped; `wake` tells of new notices.
    pub async fn run(self, wake: Arc<Notify>) {
        loop {
            if !self.share.does(Chore::Announce) {
                idle(&self.share, &wake).await;
                continue;
            }
            match self.round().await {
                Ok(0) => idle(&self.share, &wake).await,
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "notices cannot go out; trying again");
                    sleep(AFTER_FAULT).await;
                }
            }
        }
    }

    /// The oldest notices, in order; how many there were.
    async fn round(&self) -> Result<usize, StoreError> {
        let waiting = self.stores.notices.waiting(PIECE).await?;
        let count = waiting.len();
        // All are asked for before the first is waited for, so that they share a commit.
        let mut steps = Vec::with_capacity(count);
        for kept in waiting {
            steps.push(self.step(kept).await?);
        }
        for (told, step) in steps {
            match (step.await?, told) {
                (Some(Accepted::Stale | Accepted::NoApplication), Some(told)) => {
                    self.roster.forget(told.app);
                }
                (Some(accepted), Some(told)) => {
                    self.tracing.own(&accepted, told.event_type, told.bytes);
                }
                _ => {}
            }
        }
        Ok(count)
    }

    /// Begins what is to be done with one notice; with its message, if somebody is told.
    async fn step(&self, kept: Kept) -> Result<(Option<Told>, Step), StoreError> {
        let Kept { place, notice } = kept;
        let snapshot = match teller_of(notice.org) {
            Some(uid) => self.roster.app(MANAGEMENT, &IdOrUid::Uid(uid)).await?,
            None => None,
        };
        let Some(snapshot) = snapshot else {
            let gone = self.stores.notices.discard(place);
            return Ok((None, Box::pin(async move { gone.await.map(|()| None) })));
        };
        let spec = MessageSpec {
            event_type: notice.news.name().to_owned(),
            event_id: None,
            channels: Vec::new(),
            tags: Vec::new(),
            payload: (self.wording)(&notice),
            content_type: ContentType::Json,
            retention_hours: None,
            deliver_at: None,
            trace: None,
        };
        let message = NewMessage {
            app: snapshot.app.key,
            app_version: snapshot.app.version,
            targets: fanout::matching(&snapshot.endpoints, &spec).map(Arc::clone).collect(),
            spec,
            random: notice_random(&self.installation, place),
            key: None,
            edited_from: None,
        };
        let event_type = notice.news.name();
        let told = Told { app: message.app, event_type, bytes: message.spec.payload.len() };
        Ok((Some(told), self.stores.notices.post(place, message)))
    }
}

/// Makes the event types of all news, so that endpoints can filter on them; what is there, archived
/// or not, stays as it is.
pub async fn make_event_types(directory: &dyn Directory, now: Timestamp) -> Result<(), StoreError> {
    for (name, description) in NAMES {
        if directory.event_type(MANAGEMENT, name.to_owned()).await?.is_some() {
            continue;
        }
        let event_type = EventType {
            name: name.to_owned(),
            description: description.to_owned(),
            archived: false,
            deprecated: false,
            schemas: None,
            feature_flag: None,
            created_at: now,
            updated_at: now,
        };
        match directory.create_event_type(MANAGEMENT, event_type).await {
            // Another node that starts made it.
            Ok(_) | Err(StoreError::Conflict(_)) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
