//! Opening the database: can it hold our texts, is its schema one we know; then bring it up to
//! date.
//!
//! Everything stands in the schema `peyk`. Migrations are embedded, only go forward, and run in one
//! transaction, one process at a time.
//! Never: touch anything outside that schema, or a schema of a newer version.

use super::conn::{Conn, value};
use super::fault::Fault;
use crate::stored::fault::corrupt;

const STEPS: &[&str] = &[
    include_str!("../../migrations/postgres/0001_start.sql"),
    include_str!("../../migrations/postgres/0002_recovery.sql"),
    include_str!("../../migrations/postgres/0003_counts.sql"),
    include_str!("../../migrations/postgres/0004_alerts.sql"),
    include_str!("../../migrations/postgres/0005_nodes.sql"),
    include_str!("../../migrations/postgres/0006_asked.sql"),
    include_str!("../../migrations/postgres/0007_edits.sql"),
    include_str!("../../migrations/postgres/0008_peers.sql"),
];
/// "peyk" and what it is for: whoever migrates holds it.
const MIGRATION_LOCK: i64 = 0x7065_796B_0000_0002;
const VERSIONS: &str = "CREATE SCHEMA IF NOT EXISTS peyk;
    CREATE TABLE IF NOT EXISTS peyk.schema_version (
        version bigint PRIMARY KEY,
        applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )";

/// Brings the schema up to date.
pub(super) async fn to_latest(conn: &Conn) -> Result<(), Fault> {
    let encoding = conn.query_one("SHOW server_encoding", &[]).await?;
    if encoding.try_get::<_, String>(0)? != "UTF8" {
        return Err(corrupt("the database is not encoded in UTF8: make one that is").into());
    }
    conn.batch_execute("BEGIN").await?;
    let done = steps(conn).await;
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    conn.batch_execute(end).await?;
    done
}

async fn steps(conn: &Conn) -> Result<(), Fault> {
    conn.query("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await?;
    let has = "SELECT to_regclass('peyk.schema_version') IS NOT NULL";
    if value::<bool>(conn, has, &[]).await? != Some(true) {
        conn.batch_execute(VERSIONS).await?;
    }
    let sql = "SELECT max(version) FROM peyk.schema_version";
    let version = value::<i64>(conn, sql, &[]).await?.unwrap_or(0);
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    if version > known {
        let why = "the database was written by a newer version of Peyk; it was left as it is";
        return Err(corrupt(why).into());
    }
    for (number, step) in (1_i64..).zip(STEPS).filter(|(number, _)| *number > version) {
        conn.batch_execute(step).await?;
        conn.execute("INSERT INTO peyk.schema_version (version) VALUES ($1)", &[&number]).await?;
    }
    Ok(())
}
