//! Event types of an organisation.
//!
//! Never: tell the engine; it filters by names, not by these rows.

use domain::event_type::EventType;
use domain::ids::PublicId;
use rusqlite::{Connection, Row, params};

use super::queue::bound;
use super::rows::{all, one, time_at};
use super::tx::Tx;
use crate::StoreError;
use crate::page::{Direction, PageOf};

const NONE: StoreError = StoreError::Missing("event type");
const COLUMNS: &str =
    "name, description, archived, deprecated, schemas, feature_flag, created_at, updated_at";

pub(super) fn create(
    tx: &mut Tx<'_>,
    org: PublicId,
    event_type: EventType,
) -> Result<EventType, StoreError> {
    let found = find(tx.conn, org, &event_type.name)?;
    if found.is_some_and(|found| !found.archived) {
        return Err(StoreError::Conflict("event type"));
    }
    put(tx, org, event_type)
}

pub(super) fn update(
    tx: &mut Tx<'_>,
    org: PublicId,
    event_type: EventType,
) -> Result<EventType, StoreError> {
    find(tx.conn, org, &event_type.name)?.ok_or(NONE)?;
    put(tx, org, event_type)
}

pub(super) fn delete(tx: &mut Tx<'_>, org: PublicId, name: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM event_type WHERE org = ?1 AND name = ?2";
    let deleted = tx.conn.prepare_cached(sql)?.execute(params![org.as_bytes(), name])?;
    tx.batch.rows += deleted;
    if deleted == 0 { Err(NONE) } else { Ok(()) }
}

fn put(tx: &mut Tx<'_>, org: PublicId, event_type: EventType) -> Result<EventType, StoreError> {
    let sql = format!(
        "INSERT OR REPLACE INTO event_type (org, {COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
    );
    tx.batch.rows += tx.conn.prepare_cached(&sql)?.execute(params![
        org.as_bytes(),
        event_type.name,
        event_type.description,
        event_type.archived,
        event_type.deprecated,
        event_type.schemas,
        event_type.feature_flag,
        event_type.created_at.as_micros(),
        event_type.updated_at.as_micros(),
    ])?;
    Ok(event_type)
}

pub(super) fn find(
    conn: &Connection,
    org: PublicId,
    name: &str,
) -> Result<Option<EventType>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM event_type WHERE org = ?1 AND name = ?2");
    one(&mut conn.prepare_cached(&sql)?.query(params![org.as_bytes(), name])?, read)
}

pub(super) fn list(
    conn: &Connection,
    org: PublicId,
    archived_too: bool,
    page: &PageOf<String>,
) -> Result<Vec<EventType>, StoreError> {
    let (than, order) = match page.direction {
        Direction::Ascending => (">", "ASC"),
        Direction::Descending => ("<", "DESC"),
    };
    let beyond = match page.beyond {
        Some(_) => format!("name {than} ?2"),
        None => "?2 IS NULL".to_owned(),
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM event_type WHERE org = ?1 AND {beyond} AND (?3 OR NOT archived)
         ORDER BY name {order} LIMIT ?4"
    );
    let values = params![org.as_bytes(), page.beyond, archived_too, bound(page.limit)];
    all(&mut conn.prepare_cached(&sql)?.query(values)?, read)
}

fn read(row: &Row<'_>) -> Result<EventType, StoreError> {
    Ok(EventType {
        name: row.get(0)?,
        description: row.get(1)?,
        archived: row.get(2)?,
        deprecated: row.get(3)?,
        schemas: row.get(4)?,
        feature_flag: row.get(5)?,
        created_at: time_at(row, 6)?,
        updated_at: time_at(row, 7)?,
    })
}
