//! One connection, and the few ways in which statements are run on it.
//!
//! Statements are prepared when they are first used. Two that are awaited together go out
//! together.
//! Never: a transaction; whoever needs one begins and ends it.

use deadpool_postgres::ClientWrapper;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSqlOwned, ToSql};

use super::fault::Fault;
use super::rows::get;
use crate::StoreError;

/// A connection.
pub(super) type Conn = ClientWrapper;
/// What a statement is run with.
pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// All rows of a query.
pub(super) async fn all<T>(
    conn: &Conn,
    sql: &str,
    params: Params<'_>,
    read: impl Fn(&Row) -> Result<T, StoreError>,
) -> Result<Vec<T>, Fault> {
    let statement = conn.prepare_cached(sql).await?;
    let rows = conn.query(&statement, params).await?;
    Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
}

/// The first row of a query, if there is one.
pub(super) async fn one<T>(
    conn: &Conn,
    sql: &str,
    params: Params<'_>,
    read: impl Fn(&Row) -> Result<T, StoreError>,
) -> Result<Option<T>, Fault> {
    Ok(all(conn, sql, params, read).await?.into_iter().next())
}

/// The first column of the first row of a query, if there is one and it is not NULL.
pub(super) async fn value<T: FromSqlOwned>(
    conn: &Conn,
    sql: &str,
    params: Params<'_>,
) -> Result<Option<T>, Fault> {
    Ok(one(conn, sql, params, |row| get::<Option<T>>(row, 0)).await?.flatten())
}

/// Whether a query has a row.
pub(super) async fn exists(conn: &Conn, sql: &str, params: Params<'_>) -> Result<bool, Fault> {
    let statement = conn.prepare_cached(sql).await?;
    Ok(!conn.query(&statement, params).await?.is_empty())
}

/// Runs a statement; how many rows it wrote.
pub(super) async fn run(conn: &Conn, sql: &str, params: Params<'_>) -> Result<usize, Fault> {
    let statement = conn.prepare_cached(sql).await?;
    let rows = conn.execute(&statement, params).await?;
    Ok(usize::try_from(rows).unwrap_or(usize::MAX))
}
