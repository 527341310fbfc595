//! Rows of the past in an SQLite file, by one connection, before peyk opens it again.
//!
//! Never: leave a list behind its table.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, Transaction, params};

use super::span::{PAYLOAD_BYTES, SENT_AFTER_US, Span, key};
use crate::fault::{Fault, Result, While as _};
use crate::payload::{self, Said};
use crate::receiver::mix;

/// Keys in a row of a list.
const LISTED: usize = 100;
/// Until what waits is due again.
const DUE_AFTER_US: i64 = 6 * 3_600 * 1_000_000;

const MESSAGE: &str =
    "INSERT INTO message (key, random, app, accepted_at, event_type, key_scope, key_body, payload)
     VALUES (?1, ?2, ?3, ?4, 'bench.sent', ?5, ?6, ?7)";
const ATTEMPT: &str = "INSERT INTO attempt (key, random, message, endpoint, n, started_at, took, manual, resent, status, body,
         next_due, next_term) VALUES (?1, ?2, ?3, ?4, 1, ?5, 1500, 0, 0, ?6, x'', ?7, ?8)";
const PENDING: &str = "INSERT INTO pending (endpoint, due_at, message, manual, age_from, sends, budget_used, last_delay,
         moved) VALUES (?1, ?2, ?3, 0, ?4, 1, 1, ?5, 1)";
/// These rows lie before the figures, as those do that were there before figures were kept.
const COUNTED: &str = "UPDATE figure_mark SET up_to = max(up_to, ?1), writing = max(writing, ?1)";
const LISTED_UP_TO: &str = "INSERT INTO listed (name, up_to, writing) VALUES (?1, ?2, ?2)
     ON CONFLICT (name) DO UPDATE SET up_to = excluded.up_to, writing = excluded.writing";

/// Keys by owner that stand in no list yet.
#[derive(Default)]
struct Lists {
    messages: BTreeMap<i64, Vec<i64>>,
    attempts: BTreeMap<i64, Vec<i64>>,
    last: i64,
}

pub(super) fn write(path: &Path, spans: &[Span]) -> Result<()> {
    fill(path, spans).while_(&format!("writing rows into {}", path.display()))
}

fn fill(path: &Path, spans: &[Span]) -> Result<()> {
    let mut conn = Connection::open(path).while_("opening it")?;
    let endpoints = endpoints(&conn)?;
    let tx = conn.transaction().while_("beginning")?;
    let mut lists = Lists::default();
    for span in spans {
        rows(&tx, *span, &endpoints, &mut lists)?;
    }
    lists.write(&tx).while_("filling lists")?;
    tx.execute(COUNTED, [lists.last]).while_("moving the mark")?;
    tx.commit().while_("committing")?;
    let ended = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    match ended.while_("writing the log back")? {
        0 => Ok(()),
        _ => Err(Fault::new("somebody else has it open")),
    }
}

/// Endpoints with their applications.
fn endpoints(conn: &Connection) -> Result<Vec<(i64, i64)>> {
    let sql = "SELECT key, app FROM endpoint WHERE deleted_at IS NULL ORDER BY key";
    let mut statement = conn.prepare(sql).while_("reading endpoints")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let endpoints: Vec<_> = rows.and_then(Iterator::collect).while_("reading endpoints")?;
    if endpoints.is_empty() { Err(Fault::new("there is no endpoint")) } else { Ok(endpoints) }
}

fn rows(
    tx: &Transaction<'_>,
    span: Span,
    endpoints: &[(i64, i64)],
    lists: &mut Lists,
) -> Result<()> {
    let mut message = tx.prepare(MESSAGE).while_("preparing")?;
    let mut attempt = tx.prepare(ATTEMPT).while_("preparing")?;
    let mut pending = tx.prepare(PENDING).while_("preparing")?;
    let mut body = payload::blank(PAYLOAD_BYTES as usize)?;
    for nth in 0..span.count {
        let (endpoint, app) = endpoints[nth as usize % endpoints.len()];
        let at = span.first_us + i64::from(nth) * span.step_us;
        let (of, sent) = (key(at, nth), key(at + SENT_AFTER_US, nth));
        payload::write(&mut body, Said { seq: nth, at_us: 0 });
        let chance = chance(of);
        message
            .execute(params![of, &chance[..12], app, at, &chance[12..28], &chance[28..44], body])
            .while_("a message")?;
        let due = span.pending.then_some(at + DUE_AFTER_US + 36_000_000_000);
        let status = if span.pending { 500 } else { 200 };
        let term = span.pending.then_some(1);
        attempt
            .execute(params![sent, &chance[44..56], of, endpoint, at + 2_000, status, due, term])
            .while_("an attempt")?;
        if let Some(due) = due {
            pending.execute(params![endpoint, due, of, at, DUE_AFTER_US]).while_("what waits")?;
        }
        lists.messages.entry(app).or_default().push(of);
        lists.attempts.entry(endpoint).or_default().push(sent);
        lists.last = lists.last.max(sent);
    }
    Ok(())
}

/// 56 bytes that nobody draws twice.
fn chance(key: i64) -> [u8; 56] {
    let mut bytes = [0; 56];
    for (place, piece) in (0_u64..).zip(bytes.as_chunks_mut::<8>().0) {
        *piece = mix(key.cast_unsigned() ^ mix(place + 1)).to_be_bytes();
    }
    bytes
}

impl Lists {
    fn write(&self, tx: &Transaction<'_>) -> rusqlite::Result<()> {
        let lists = [
            ("messages", "message_by_app", &self.messages),
            ("attempts", "attempt_by_endpoint", &self.attempts),
        ];
        for (name, table, by_owner) in lists {
            let mut insert =
                tx.prepare(&format!("INSERT OR REPLACE INTO {table} VALUES (?1, ?2, ?3)"))?;
            for (owner, keys) in by_owner {
                for keys in keys.chunks(LISTED) {
                    let packed: Vec<u8> = keys.iter().flat_map(|key| key.to_be_bytes()).collect();
                    insert.execute(params![owner, keys.last(), packed])?;
                }
            }
            tx.execute(LISTED_UP_TO, params![name, self.last])?;
        }
        Ok(())
    }
}
