//! What was sent to one endpoint: the messages with where each stands, and how many attempts.
//!
//! Never: a scan of a table; what is read is a range of a list and rows by their keys.

use std::ops::Range;

use domain::ids::{AppKey, EndpointKey, MessageKey};

use super::PostgresStore;
use super::conn::{Conn, all};
use super::deliveries::of_messages;
use super::fault::Fault;
use super::inbox::read_message;
use super::rows::get;
use super::scan::{Span, Walk, of_app};
use crate::StoreError;
use crate::history::{AttemptCounts, Sent, SentFilter, payloads_fill};
use crate::page::{Looked, PageOf, keys_within};

/// Attempts that are counted by one statement.
const PIECE: i64 = 20_000;
const COUNT: &str = "SELECT max(key), count(*) FILTER (WHERE delivered), count(*) FROM (
         SELECT key, status BETWEEN 200 AND 299 AS delivered FROM attempt
         WHERE (endpoint, key) >= ($1, $2) AND (endpoint, key) <= ($1, $3)
         ORDER BY endpoint, key LIMIT $4) AS piece";

pub(super) async fn messages_to(
    conn: &Conn,
    (app, endpoint): (AppKey, EndpointKey),
    filter: &SentFilter,
    page: &PageOf<u64>,
) -> Result<Looked<Sent, u64>, Fault> {
    let mut found: Vec<Sent> = Vec::new();
    let keys = keys_within(filter.message.after, filter.message.before);
    let mut walk = Walk::new(page, &keys, true);
    while let Some((span, most)) = walk.piece() {
        let span = (span.low, span.high, most);
        let rows = of_app(conn, (app, &filter.message), span, page).await?;
        let wanted: Vec<MessageKey> =
            rows.iter().filter_map(|(_, lean)| Some(lean.as_ref()?.key)).collect();
        let mut stands = of_messages(conn, &wanted, Some(endpoint)).await?;
        let count = rows.len();
        for (key, lean) in rows {
            walk.pass(key);
            let delivery = stands.remove(&(MessageKey(key.cast_unsigned()), endpoint));
            let (Some(lean), Some(delivery)) = (lean, delivery.filter(|row| filter.takes(row)))
            else {
                continue;
            };
            let message =
                if filter.payloads { read_message(conn, lean.key).await? } else { Some(lean) };
            found.extend(message.map(|message| Sent { message, delivery }));
            let full = payloads_fill(found.iter().map(|sent| &sent.message));
            if found.len() >= page.limit || full {
                return Ok(walk.found(found));
            }
        }
        walk.read(count);
    }
    Ok(walk.found(found))
}

/// Counts piece by piece, each a read of its own, so that others are served between them.
pub(super) async fn count_attempts(
    store: &PostgresStore,
    endpoint: EndpointKey,
    keys: Range<u64>,
) -> Result<AttemptCounts, StoreError> {
    let (mut span, mut counts) = (Span::within(&keys), AttemptCounts::default());
    loop {
        let piece = store.read(move |conn| async move {
            let values: super::conn::Params<'_> = &[&endpoint.0, &span.low, &span.high, &PIECE];
            let read = |row: &tokio_postgres::Row| {
                Ok((get::<Option<i64>>(row, 0)?, get::<i64>(row, 1)?, get::<i64>(row, 2)?))
            };
            all(&conn, COUNT, values, read).await
        });
        let Some((Some(last), delivered, all)) = piece.await?.into_iter().next() else {
            return Ok(counts);
        };
        counts.delivered += delivered.cast_unsigned();
        counts.failed += (all - delivered).cast_unsigned();
        if all < PIECE {
            return Ok(counts);
        }
        span.low = last.saturating_add(1);
    }
}
