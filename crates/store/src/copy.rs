//! From one backend into another: an SQLite file into an empty PostgreSQL database.
//!
//! Both keep the same tables, so each is copied row by row, keys and ids included. All of it is one
//! transaction: a copy that fails leaves the database as empty as it was.
//! Never: change the file, or write into a database that holds something.

use std::collections::BTreeSet;
use std::path::Path;

use tokio::sync::mpsc::{Receiver, channel};
use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};

use crate::StoreError;
use crate::postgres::incoming::Incoming;
use crate::sqlite::outgoing::Outgoing;
use crate::stored::fault::corrupt;
use crate::stored::raw::{Rows, Tables};

/// Tables of the file that say again what others say.
const DERIVED_TABLES: [&str; 5] =
    ["attempt_by_endpoint", "key_part", "key_run", "listed", "message_by_app"];
/// Columns of the file that say again what others say.
const DERIVED_COLUMNS: [(&str, &str); 2] = [("answer", "number"), ("pending", "moved")];
/// Chunks of rows between the two sides.
const CHUNKS: usize = 4;

/// What was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Rows by table, in order of name.
    pub tables: Vec<(String, u64)>,
}

impl Copied {
    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|(_, rows)| rows).sum()
    }
}

/// Copies everything from the file at `from` into the database at `to`, whose schema is made.
/// Nobody else may use either.
///
/// # Errors
///
/// [`StoreError::Corrupt`] when the file is not ours, not of this version, or holds what the
/// database cannot; [`StoreError::Conflict`] when the database holds something already;
/// [`StoreError::Unavailable`] when one of the two cannot be used now. Nothing was copied then.
pub async fn copy<T>(from: &Path, to: &str, tls: T) -> Result<Copied, StoreError>
where
    T: MakeTlsConnect<Socket> + Clone + Sync + Send + 'static,
    T::Stream: Sync + Send,
    T::TlsConnect: Sync + Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let outgoing = Outgoing::open(from)?;
    let incoming = Incoming::begin(to, tls).await?;
    let plan = plan(outgoing.tables()?, &incoming.tables().await?)?;
    let sequences = outgoing.sequences()?;
    let (chunks, rows) = channel(CHUNKS);
    let for_reader = plan.clone();
    // The reader ends by itself when this side does.
    let reader = tokio::task::spawn_blocking(move || outgoing.send(&for_reader, &chunks));
    let copied = fill(&incoming, &plan, rows).await?;
    reader.await.map_err(|_| corrupt("the file could not be read"))?;
    for (table, last) in sequences {
        incoming.go_on_from(&table, last).await?;
    }
    incoming.commit().await?;
    Ok(copied)
}

async fn fill(
    incoming: &Incoming,
    plan: &[(String, Vec<String>)],
    mut rows: Receiver<Result<Rows, StoreError>>,
) -> Result<Copied, StoreError> {
    let mut tables = Vec::with_capacity(plan.len());
    for (table, columns) in plan {
        let mut sink = incoming.sink(table, columns).await?;
        let mut sent = 0;
        loop {
            let chunk =
                rows.recv().await.ok_or_else(|| corrupt("the file could not be read"))??;
            if chunk.is_empty() {
                break;
            }
            sent += chunk.len() as u64;
            sink.write(&chunk).await?;
        }
        sink.finish().await?;
        let kept = incoming.count(table).await?;
        if kept != sent {
            return Err(corrupt("the database holds other rows than were sent"));
        }
        tables.push((table.clone(), kept));
    }
    Ok(Copied { tables })
}

/// Which columns of which tables are copied; nothing may be left over on either side.
fn plan(from: Tables, to: &Tables) -> Result<Vec<(String, Vec<String>)>, StoreError> {
    let is_derived = |table: &str, column: &str| DERIVED_COLUMNS.contains(&(table, column));
    let mut kept = from;
    kept.retain(|table, _| !DERIVED_TABLES.contains(&table.as_str()));
    for (table, columns) in &mut kept {
        columns.retain(|column| !is_derived(table, column));
    }
    if kept != *to {
        return Err(corrupt("the file and the database do not keep the same things"));
    }
    let listed = |columns: BTreeSet<String>| columns.into_iter().collect();
    Ok(kept.into_iter().map(|(table, columns)| (table, listed(columns))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(of: &[(&str, &[&str])]) -> Tables {
        let columns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        of.iter().map(|(table, names)| ((*table).to_owned(), columns(names))).collect()
    }

    #[test]
    fn what_says_again_what_others_say_is_left() {
        let from = tables(&[("listed", &["name"]), ("pending", &["due_at", "moved"])]);
        let planned = plan(from, &tables(&[("pending", &["due_at"])])).unwrap();
        assert_eq!(planned, [("pending".to_owned(), vec!["due_at".to_owned()])]);
    }

    #[test]
    fn a_table_or_a_column_without_a_counterpart_is_refused() {
        let both = tables(&[("app", &["key", "name"])]);
        for other in [
            tables(&[]),
            tables(&[("app", &["key"])]),
            tables(&[("app", &["key", "name", "more"])]),
            tables(&[("app", &["key", "name"]), ("more", &["key"])]),
        ] {
            assert!(plan(both.clone(), &other).is_err(), "{other:?}");
            assert!(plan(other.clone(), &both).is_err(), "{other:?}");
        }
    }
}
