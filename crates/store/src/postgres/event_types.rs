//! Event types of an organisation.
//!
//! Never: tell the engine; it filters by names, not by these rows.

use domain::event_type::EventType;
use domain::ids::PublicId;
use tokio_postgres::Row;

use super::conn::{Conn, all, one};
use super::fault::Fault;
use super::rows::{At, bound, get, maybe_text, order, text, time_at};
use super::tx::Tx;
use crate::StoreError;
use crate::page::{Direction, PageOf};

const NONE: StoreError = StoreError::Missing("event type");
const COLUMNS: &str =
    "name, description, archived, deprecated, schemas, feature_flag, created_at, updated_at";

pub(super) async fn create(
    tx: &mut Tx,
    org: PublicId,
    event_type: EventType,
) -> Result<EventType, Fault> {
    let found = find(tx.conn(), org, &event_type.name).await?;
    if found.is_some_and(|found| !found.archived) {
        return Err(StoreError::Conflict("event type").into());
    }
    put(tx, org, event_type).await
}

pub(super) async fn update(
    tx: &mut Tx,
    org: PublicId,
    event_type: EventType,
) -> Result<EventType, Fault> {
    find(tx.conn(), org, &event_type.name).await?.ok_or(NONE)?;
    put(tx, org, event_type).await
}

pub(super) async fn delete(tx: &mut Tx, org: PublicId, name: &str) -> Result<(), Fault> {
    let sql = "DELETE FROM event_type WHERE org = $1 AND name = $2";
    match tx.write(sql, &[&&org.as_bytes()[..], &text(name)]).await? {
        0 => Err(NONE.into()),
        _ => {
            tx.batch.copies += 1;
            Ok(())
        }
    }
}

async fn put(tx: &mut Tx, org: PublicId, event_type: EventType) -> Result<EventType, Fault> {
    let sql = format!(
        "INSERT INTO event_type (org, {COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (org, name) DO UPDATE SET description = excluded.description, archived = excluded.archived,
             deprecated = excluded.deprecated, schemas = excluded.schemas, feature_flag = excluded.feature_flag,
             created_at = excluded.created_at, updated_at = excluded.updated_at"
    );
    let written = tx
        .write(
            &sql,
            &[
                &&org.as_bytes()[..],
                &text(&event_type.name),
                &text(&event_type.description),
                &event_type.archived,
                &event_type.deprecated,
                &maybe_text(event_type.schemas.as_deref()),
                &maybe_text(event_type.feature_flag.as_deref()),
                &At(event_type.created_at),
                &At(event_type.updated_at),
            ],
        )
        .await;
    written?;
    tx.batch.copies += 1;
    Ok(event_type)
}

pub(super) async fn find(
    conn: &Conn,
    org: PublicId,
    name: &str,
) -> Result<Option<EventType>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM event_type WHERE org = $1 AND name = $2");
    one(conn, &sql, &[&&org.as_bytes()[..], &text(name)], read).await
}

pub(super) async fn list(
    conn: &Conn,
    org: PublicId,
    archived_too: bool,
    page: &PageOf<String>,
) -> Result<Vec<EventType>, Fault> {
    let than = match page.direction {
        Direction::Ascending => ">",
        Direction::Descending => "<",
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM event_type
         WHERE org = $1 AND ($2::text IS NULL OR name {than} $2) AND ($3 OR NOT archived)
         ORDER BY name {} LIMIT $4",
        order(page.direction)
    );
    let beyond = maybe_text(page.beyond.as_deref());
    all(conn, &sql, &[&&org.as_bytes()[..], &beyond, &archived_too, &bound(page.limit)], read).await
}

fn read(row: &Row) -> Result<EventType, StoreError> {
    Ok(EventType {
        name: get(row, 0)?,
        description: get(row, 1)?,
        archived: get(row, 2)?,
        deprecated: get(row, 3)?,
        schemas: get(row, 4)?,
        feature_flag: get(row, 5)?,
        created_at: time_at(row, 6)?,
        updated_at: time_at(row, 7)?,
    })
}
