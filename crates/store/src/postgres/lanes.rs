//! What lanes ask for: due rows of an endpoint, and what a send needs of a message.
//!
//! A node is asked for much of it at once when other nodes take the posts, so lanes that ask at the
//! same time are answered by one statement.
//! Never: look at more rows of an endpoint than were asked for.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use domain::delivery::Pending;
use domain::ids::{EndpointKey, MessageKey, PublicId};
use domain::message::Envelope;
use domain::until::Until;
use tokio_postgres::Row;

use super::conn::{Conn, all};
use super::fault::Fault;
use super::gather::{ASKING_MAX, Gather};
use super::link::{Pool, read};
use super::rows::{
    PENDING, PENDING_COLUMNS, bound, bytes_at, content_type, get, labels_at, maybe_blob,
    message_key, pending,
};
use crate::Reply;
use crate::queue::DueRows;
use crate::stored::fault::unreadable;

/// Endpoints whose rows are read at once.
const ENDPOINTS_TOGETHER: usize = 64;
/// Messages whose payloads are read at once.
const PAYLOADS_TOGETHER: usize = 32;

/// Two kinds of questions, each with statements on their way.
pub(super) const CONNECTIONS: usize = 2 * ASKING_MAX;

/// Whose rows are wanted.
struct Asked {
    endpoint: EndpointKey,
    until: Until,
    limit: usize,
}

/// What lanes ask for.
pub(super) struct Lanes {
    pool: Pool,
    due: Gather<Asked, DueRows>,
    envelopes: Gather<MessageKey, Option<Arc<Envelope>>>,
}

impl Lanes {
    /// Over a pool of [`CONNECTIONS`].
    pub(super) fn new(pool: Pool) -> Self {
        let (of_rows, of_payloads) = (pool.clone(), pool.clone());
        let rows = move |asked| read(of_rows.clone(), move |conn| rows(conn, asked));
        let envelopes = move |keys| read(of_payloads.clone(), move |conn| envelopes(conn, keys));
        let due = Gather::new(ENDPOINTS_TOGETHER, rows);
        Self { pool, due, envelopes: Gather::new(PAYLOADS_TOGETHER, envelopes) }
    }

    pub(super) fn due(
        &self,
        endpoint: EndpointKey,
        until: Until,
        limit: usize,
    ) -> Reply<'static, DueRows> {
        self.due.ask(Asked { endpoint, until, limit })
    }

    pub(super) fn envelope(&self, message: MessageKey) -> Reply<'static, Option<Arc<Envelope>>> {
        self.envelopes.ask(message)
    }

    /// Ends its connections, and makes no more.
    pub(super) fn close(&self) {
        self.pool.close();
    }
}

async fn rows(conn: Conn, asked: Vec<Asked>) -> Result<Vec<DueRows>, Fault> {
    let sql = format!(
        "SELECT it.*, q.place FROM unnest($1::bigint[], $2::bigint[])
             WITH ORDINALITY AS q (endpoint, most, place)
         CROSS JOIN LATERAL (
             SELECT {PENDING} FROM pending WHERE pending.endpoint = q.endpoint
             ORDER BY endpoint, due_at, message, manual LIMIT q.most) AS it
         ORDER BY q.place, it.due_at, it.message, it.manual"
    );
    let endpoints: Vec<i64> = asked.iter().map(|asked| asked.endpoint.0).collect();
    // One row beyond what is due or asked for tells when to come again.
    let most: Vec<i64> = asked.iter().map(|asked| bound(asked.limit.saturating_add(1))).collect();
    let mut found: Vec<Vec<Pending>> = vec![Vec::new(); asked.len()];
    let read = |row: &Row| Ok((get::<i64>(row, PENDING_COLUMNS)?, pending(row)?));
    for (place, row) in all(&conn, &sql, &[&endpoints, &most], read).await? {
        // Places begin at 1.
        let of = usize::try_from(place - 1).ok().and_then(|place| found.get_mut(place));
        of.ok_or_else(unreadable)?.push(row);
    }
    let cut = |(mut rows, asked): (Vec<Pending>, &Asked)| {
        let is_due = |row: &&Pending| asked.until.has(row);
        let due = rows.iter().take(asked.limit).take_while(is_due).count();
        let next_due = rows.get(due).map(|row| row.due_at);
        rows.truncate(due);
        DueRows { rows, next_due }
    };
    Ok(found.into_iter().zip(&asked).map(cut).collect())
}

async fn envelopes(conn: Conn, keys: Vec<MessageKey>) -> Result<Vec<Option<Arc<Envelope>>>, Fault> {
    let sql = "SELECT message.key, random, content_type, labels, payload
               FROM unnest($1::bigint[]) AS q (key) JOIN message ON message.key = q.key";
    let wanted: Vec<i64> = keys.iter().map(|key| key.0.cast_signed()).collect();
    let found = all(&conn, sql, &[&wanted], |row| {
        let key = message_key(row, 0)?;
        let id = PublicId::new(key.0, bytes_at(row, 1)?);
        let content_type = content_type(row, 2)?;
        let payload = maybe_blob(row, 4, |blob| Ok(Bytes::copy_from_slice(blob)))?;
        let trace = labels_at(row, 3)?.trace;
        let envelope = |payload| Arc::new(Envelope { id, payload, content_type, trace });
        Ok((key, payload.map(envelope)))
    })
    .await?;
    let found: HashMap<MessageKey, Option<Arc<Envelope>>> = found.into_iter().collect();
    Ok(keys.iter().map(|key| found.get(key).cloned().flatten()).collect())
}
