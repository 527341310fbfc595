//! Accepting, in PostgreSQL: all posts of a batch at once.
//!
//! Keys and versions are looked up together, messages and their pending rows are written together.
//! Of posts that may stand in each other's way only the first takes part in a round; the others
//! find its row in the next.
//! Never: a statement for each post.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use domain::delivery::Pending;
use domain::idempotency::IngestKey;
use domain::ids::{AppKey, MessageKey, PublicId};
use domain::limits::IDEMPOTENCY_WINDOW;
use domain::message::{ContentType, Envelope, Message, MessageSpec};
use futures_util::future::try_join;
use resilience::Timestamp;

use super::PostgresStore;
use super::columns::{Columns, Script};
use super::conn::{Conn, all, one, run};
use super::fault::Fault;
use super::pending::insert_pending;
use super::rows::{At, MESSAGE, bytes_at, get, maybe_text, message, message_key, text, time_at};
use super::tx::Tx;
use crate::Reply;
use crate::commits::Fresh;
use crate::inbox::{Accepted, Inbox, NewMessage};
use crate::stored::fault::corrupt;
use crate::stored::labels::{has_labels, labels};

const USED: &str =
    "SELECT DISTINCT ON (key_scope) key_scope, key, key_body, accepted_at FROM message
     WHERE key_scope = ANY($1) ORDER BY key_scope, key DESC";
const VERSIONS: &str = "SELECT key, version FROM app WHERE key = ANY($1) AND deleted_at IS NULL";
pub(super) type Scope = [u8; 16];

impl Inbox for PostgresStore {
    fn accept(&self, message: NewMessage) -> Reply<'static, Accepted> {
        self.shared.door.accept(message)
    }

    fn used(&self, key: IngestKey) -> Reply<'static, Option<Accepted>> {
        self.shared.door.change(move |tx| Box::pin(tx.recall(key)))
    }

    fn probe(&self) -> Reply<'static, ()> {
        self.shared.door.change(|tx| Box::pin(tx.probe()))
    }
}

/// Who used an idempotency key last.
struct Used {
    key: MessageKey,
    body: [u8; 16],
    at: Timestamp,
}

/// A post that is written in this round.
pub(super) struct Written {
    /// Its place among all posts.
    pub(super) post: usize,
    pub(super) key: MessageKey,
    pub(super) due_at: Timestamp,
}

impl Tx {
    /// Accepts one message.
    pub(super) async fn accept_one(&mut self, new: &NewMessage) -> Result<Accepted, Fault> {
        let accepted = self.accept_all(&[new]).await?.pop();
        accepted.ok_or_else(|| corrupt("a message was passed over").into())
    }

    /// Accepts each of them, or says why not; an error is a fault of the database.
    pub(super) async fn accept_all(
        &mut self,
        posts: &[&NewMessage],
    ) -> Result<Vec<Accepted>, Fault> {
        let mut outcomes: Vec<Option<Accepted>> = posts.iter().map(|_| None).collect();
        loop {
            let open = (0..posts.len()).filter(|place| outcomes[*place].is_none());
            let round = firsts(posts, open);
            if round.is_empty() {
                return Ok(outcomes.into_iter().flatten().collect());
            }
            self.round(posts, &round, &mut outcomes).await?;
        }
    }

    async fn round(
        &mut self,
        posts: &[&NewMessage],
        round: &[usize],
        outcomes: &mut [Option<Accepted>],
    ) -> Result<(), Fault> {
        let keys = round.iter().filter_map(|post| posts[*post].key.as_ref());
        let (used, versions) = try_join(self.used(keys), self.versions(posts, round)).await?;
        let (mut written, mut over) = (Vec::new(), Vec::new());
        for &post in round {
            let new = posts[post];
            let used = new.key.as_ref().and_then(|key| Some((key, used.get(&key.scope)?)));
            outcomes[post] = match &used {
                Some((key, used)) => self.repeated(key, used).await?,
                None => None,
            };
            if outcomes[post].is_some() {
                continue;
            }
            // It ran out, and is free again.
            if let Some((_, used)) = used {
                over.push(used.key.0.cast_signed());
            }
            match (versions.get(&new.app), new.spec.due_at(self.now)) {
                (None, _) => outcomes[post] = Some(Accepted::NoApplication),
                (Some(version), _) if *version != new.app_version => {
                    outcomes[post] = Some(Accepted::Stale);
                }
                (Some(_), None) => outcomes[post] = Some(Accepted::DeliverAtOutside),
                (Some(_), Some(due_at)) => {
                    written.push(Written { post, key: MessageKey(self.draw()), due_at });
                }
            }
        }
        if !over.is_empty() {
            let sql = "UPDATE message SET key_scope = NULL, key_body = NULL WHERE key = ANY($1)";
            run(self.conn(), sql, &[&over]).await?;
        }
        if written.is_empty() { Ok(()) } else { self.insert(posts, &written, outcomes).await }
    }

    /// Who used these keys last.
    async fn used<'k>(
        &self,
        keys: impl Iterator<Item = &'k IngestKey>,
    ) -> Result<HashMap<Scope, Used>, Fault> {
        let scopes: Vec<&[u8]> = keys.map(|key| &key.scope[..]).collect();
        if scopes.is_empty() {
            return Ok(HashMap::new());
        }
        let found = all(self.conn(), USED, &[&scopes], |row| {
            let used =
                Used { key: message_key(row, 1)?, body: bytes_at(row, 2)?, at: time_at(row, 3)? };
            Ok((bytes_at(row, 0)?, used))
        })
        .await;
        Ok(found?.into_iter().collect())
    }

    /// Versions of live applications.
    async fn versions(
        &self,
        posts: &[&NewMessage],
        round: &[usize],
    ) -> Result<HashMap<AppKey, i64>, Fault> {
        let mut apps: Vec<i64> = round.iter().map(|post| posts[*post].app.0).collect();
        apps.sort_unstable();
        apps.dedup();
        let found =
            all(self.conn(), VERSIONS, &[&apps], |row| Ok((AppKey(get(row, 0)?), get(row, 1)?)))
                .await;
        Ok(found?.into_iter().collect())
    }

    /// What the post under this key came to.
    async fn recall(&mut self, key: IngestKey) -> Result<Option<Accepted>, Fault> {
        match self.used(std::iter::once(&key)).await?.get(&key.scope) {
            Some(used) => self.repeated(&key, used).await,
            None => Ok(None),
        }
    }

    /// The outcome of an earlier post under the same key, unless the key ran out.
    async fn repeated(&self, key: &IngestKey, used: &Used) -> Result<Option<Accepted>, Fault> {
        if self.now.since(used.at) >= IDEMPOTENCY_WINDOW {
            return Ok(None);
        }
        if used.body != key.body {
            return Ok(Some(Accepted::BodyDiffers));
        }
        let found = read_message(self.conn(), used.key).await?;
        Ok(found.map(Box::new).map(Accepted::Repeated))
    }

    /// Writes messages and their pending rows.
    async fn insert(
        &mut self,
        posts: &[&NewMessage],
        written: &[Written],
        outcomes: &mut [Option<Accepted>],
    ) -> Result<(), Fault> {
        // An event id may be taken; without one nothing is to be waited for. A key was unused a
        // moment ago: only another node may have taken it since.
        let sure = written.iter().all(|one| posts[one.post].spec.event_id.is_none());
        let inserted = if sure {
            let mut rows = pending_rows(posts, written);
            let (inserted, _) =
                try_join(self.insert_messages(posts, written), insert_pending(self.conn(), &rows))
                    .await?;
            if inserted.len() < written.len() {
                let sql = "DELETE FROM pending WHERE message = ANY($1)";
                let left = written.iter().filter(|one| !inserted.contains(&one.key));
                let left: Vec<i64> = left.map(|one| one.key.0.cast_signed()).collect();
                run(self.conn(), sql, &[&left]).await?;
                rows.retain(|row| inserted.contains(&row.message));
            }
            self.hand_over(posts, written.iter().filter(|one| inserted.contains(&one.key)), rows);
            inserted
        } else {
            let inserted = self.insert_messages(posts, written).await?;
            let (kept, taken): (Vec<&Written>, Vec<&Written>) =
                written.iter().partition(|one| inserted.contains(&one.key));
            let keys = taken.iter().filter_map(|one| posts[one.post].key.as_ref());
            let used = self.used(keys).await?;
            for one in taken {
                let key = posts[one.post].key.as_ref();
                let by_key = key.is_some_and(|key| used.contains_key(&key.scope));
                if !by_key {
                    outcomes[one.post] = Some(Accepted::EventIdTaken);
                }
            }
            let rows = pending_rows(posts, kept.iter().copied());
            insert_pending(self.conn(), &rows).await?;
            self.hand_over(posts, kept, rows);
            inserted
        };
        self.batch.rows += inserted.len();
        for one in written.iter().filter(|one| inserted.contains(&one.key)) {
            let id = PublicId::new(one.key.0, posts[one.post].random);
            outcomes[one.post] = Some(Accepted::New { key: one.key, id, accepted_at: self.now });
        }
        Ok(())
    }

    async fn insert_messages(
        &self,
        posts: &[&NewMessage],
        written: &[Written],
    ) -> Result<HashSet<MessageKey>, Fault> {
        let mut script = Script::default();
        let new: Vec<_> = written.iter().map(|one| (one.key, posts[one.post])).collect();
        let columns = optional_columns(columns(&new, self.now), &new);
        let sql = script.insert("message", columns) + " ON CONFLICT DO NOTHING RETURNING key";
        let keys = all(self.conn(), &sql, &script.values(), |row| message_key(row, 0)).await;
        Ok(keys?.into_iter().collect())
    }

    /// After the commit the engine gets them.
    pub(super) fn hand_over<'w>(
        &mut self,
        posts: &[&NewMessage],
        written: impl IntoIterator<Item = &'w Written>,
        rows: Vec<Pending>,
    ) {
        self.batch.rows += rows.len();
        self.batch.depth += i64::try_from(rows.len()).unwrap_or(0);
        let mut rows = rows.into_iter();
        for one in written {
            let new = posts[one.post];
            let id = PublicId::new(one.key.0, new.random);
            let (payload, content_type) = (new.spec.payload.clone(), new.spec.content_type.clone());
            let trace = new.spec.trace.clone();
            let envelope = Arc::new(Envelope { id, payload, content_type, trace });
            for (endpoint, pending) in new.targets.iter().zip(&mut rows) {
                let (endpoint, envelope) =
                    (Some(Arc::clone(endpoint)), Some(Arc::clone(&envelope)));
                self.batch.fresh.push(Fresh { pending, endpoint, envelope });
            }
        }
    }

    /// Writes something that was not there before.
    async fn probe(&mut self) -> Result<(), Fault> {
        let value = self.now.as_micros().to_be_bytes();
        let sql = "INSERT INTO setting (name, value) VALUES ('probe', $1)
                   ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        self.write(sql, &[&&value[..]]).await.map(drop)
    }
}

/// Of the posts that are open, those which do not wait for another one's outcome.
fn firsts(posts: &[&NewMessage], open: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut scopes = HashSet::new();
    open.filter(|post| posts[*post].key.as_ref().is_none_or(|key| scopes.insert(key.scope)))
        .collect()
}

const fn content_type(of: &ContentType) -> Option<&str> {
    match of {
        ContentType::Json => None,
        ContentType::Other(text) => Some(text.as_str()),
    }
}

/// A message and its key.
pub(super) type Keyed<'m> = (MessageKey, &'m NewMessage);

/// What every message has.
pub(super) fn columns<'m>(of: &[Keyed<'m>], now: Timestamp) -> Columns<'m> {
    let new = || of.iter().map(|(_, new)| *new);
    Columns::default()
        .each("key", "bigint", of.iter().map(|(key, _)| key.0.cast_signed()).collect())
        .each("app", "bigint", new().map(|new| new.app.0).collect())
        .same("accepted_at", "timestamptz", At(now))
        .each("random", "bytea", new().map(|new| &new.random[..]).collect())
        .each("event_type", "text", new().map(|new| text(&new.spec.event_type)).collect())
        .each("payload", "bytea", new().map(|new| &new.spec.payload[..]).collect())
}

/// What only some messages have, besides.
pub(super) fn optional_columns<'m>(columns: Columns<'m>, of: &[Keyed<'m>]) -> Columns<'m> {
    let new = || of.iter().map(|(_, new)| *new);
    let spec = || new().map(|new| &new.spec);
    let hours = spec().map(|spec| spec.retention_hours.map(i64::from)).collect();
    let events = spec().map(|spec| maybe_text(spec.event_id.as_deref())).collect();
    let content = spec().map(|spec| maybe_text(content_type(&spec.content_type))).collect();
    let edited = new().map(|new| new.edited_from.as_ref().map(|id| &id.as_bytes()[..])).collect();
    let scopes = new().map(|new| new.key.as_ref().map(|key| &key.scope[..])).collect();
    let bodies = new().map(|new| new.key.as_ref().map(|key| &key.body[..])).collect();
    columns
        .each::<Option<i64>>("retention_hours", "bigint", hours)
        .each::<Option<Cow<'_, str>>>("event_id", "text", events)
        .each("labels", "bytea", spec().map(labels).collect())
        .each::<Option<Cow<'_, str>>>("content_type", "text", content)
        .each::<Option<&[u8]>>("edited_from", "bytea", edited)
        .each::<Option<&[u8]>>("key_scope", "bytea", scopes)
        .each::<Option<&[u8]>>("key_body", "bytea", bodies)
}

/// Whether a message has any of [`optional_columns`].
pub(super) fn has_more(new: &NewMessage) -> bool {
    let MessageSpec { event_id, content_type: kind, retention_hours, .. } = &new.spec;
    let kind = content_type(kind).is_some() || retention_hours.is_some();
    has_labels(&new.spec)
        || kind
        || event_id.is_some()
        || new.edited_from.is_some()
        || new.key.is_some()
}

/// The rows that messages make, in their order.
pub(super) fn pending_rows<'w>(
    posts: &[&NewMessage],
    written: impl IntoIterator<Item = &'w Written>,
) -> Vec<Pending> {
    let mut rows = Vec::new();
    for one in written {
        let new = posts[one.post];
        rows.extend(new.targets.iter().map(|endpoint| Pending {
            endpoint: endpoint.key,
            due_at: one.due_at,
            message: one.key,
            age_from: one.due_at,
            sends: 0,
            budget_used: 0,
            last_delay: Duration::ZERO,
            trigger: new.trigger(),
        }));
    }
    rows
}

/// A whole message.
pub(super) async fn read_message(conn: &Conn, key: MessageKey) -> Result<Option<Message>, Fault> {
    let sql = format!("SELECT {MESSAGE} FROM message WHERE key = $1");
    one(conn, &sql, &[&key.0.cast_signed()], message).await
}
