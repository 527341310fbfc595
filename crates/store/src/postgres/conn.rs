//! One connection, and the few ways in which statements are run on it.
//!
//! Statements are prepared when they are first used. Behind a pooler that gives a session to
//! several clients in turn they have no name, and go out each time with the types of their
//! parameters (`types`). Two that are awaited together go out together.
//! Never: a transaction; whoever needs one begins and ends it.

use std::ops::Deref;
use std::sync::Arc;

use deadpool_postgres::{ClientWrapper, Object};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSqlOwned, ToSql, Type};

use super::fault::Fault;
use super::rows::get;
use super::types::Types;
use crate::StoreError;

/// A connection, until it goes back to its pool.
pub(super) struct Conn {
    client: Object,
    /// Of parameters, where statements have no name.
    types: Option<Arc<Types>>,
}

/// What a statement is run with.
pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Conn {
    pub(super) const fn new(client: Object, types: Option<Arc<Types>>) -> Self {
        Self { client, types }
    }

    /// Whether a session keeps nothing from one transaction to the next.
    pub(super) const fn is_pooled(&self) -> bool {
        self.types.is_some()
    }

    /// Ends it, rather than give it back.
    pub(super) fn end(self) {
        drop(Object::take(self.client));
    }
}

impl Deref for Conn {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        &self.client
    }
}

/// The rows of a query as they come.
pub(super) async fn rows(conn: &Conn, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Fault> {
    note(sql);
    let Some(types) = &conn.types else {
        let statement = conn.prepare_cached(sql).await?;
        return Ok(conn.query(&statement, params).await?);
    };
    let typed = typed(params, &types.of(sql).await?);
    Ok(conn.query_typed(sql, &typed).await?)
}

/// All rows of a query.
pub(super) async fn all<T>(
    conn: &Conn,
    sql: &str,
    params: Params<'_>,
    read: impl Fn(&Row) -> Result<T, StoreError>,
) -> Result<Vec<T>, Fault> {
    let rows = rows(conn, sql, params).await?;
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
    Ok(!rows(conn, sql, params).await?.is_empty())
}

/// Runs a statement; how many rows it wrote.
pub(super) async fn run(conn: &Conn, sql: &str, params: Params<'_>) -> Result<usize, Fault> {
    note(sql);
    let rows = match &conn.types {
        None => {
            let statement = conn.prepare_cached(sql).await?;
            conn.execute(&statement, params).await?
        }
        Some(types) => {
            let typed = typed(params, &types.of(sql).await?);
            conn.execute_typed(sql, &typed).await?
        }
    };
    Ok(usize::try_from(rows).unwrap_or(usize::MAX))
}

fn typed<'p>(params: Params<'p>, types: &[Type]) -> Vec<(&'p (dyn ToSql + Sync), Type)> {
    params.iter().copied().zip(types.iter().cloned()).collect()
}

/// Tests explain what ran.
#[cfg(test)]
pub(super) static RAN: std::sync::Mutex<std::collections::BTreeSet<String>> =
    std::sync::Mutex::new(std::collections::BTreeSet::new());

#[cfg(test)]
fn note(sql: &str) {
    let ran = &mut RAN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    ran.insert(sql.to_owned());
}

#[cfg(not(test))]
const fn note(_: &str) {}
