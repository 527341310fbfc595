//! What leaves for another backend: every row of every table, as it is stored.
//!
//! All is read in one transaction.
//! Never: write.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use tokio::sync::mpsc::Sender;

use super::migrate;
use super::rows::all;
use crate::StoreError;
use crate::stored::raw::{Cell, Rows, Tables};

/// Rows of a chunk, at most.
const CHUNK_ROWS: usize = 1_000;
/// Bytes of a chunk, at most, unless its one row has more.
const CHUNK_BYTES: usize = 4 << 20;

/// A file that is copied.
pub(crate) struct Outgoing {
    conn: Connection,
}

impl Outgoing {
    /// Opens a file of this version, and begins to read.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let conn = migrate::open_source(path)?;
        conn.execute_batch("BEGIN")?;
        Ok(Self { conn })
    }

    /// Its tables, and their columns.
    pub(crate) fn tables(&self) -> Result<Tables, StoreError> {
        let sql = "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c
                   WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
        let mut tables = Tables::new();
        let columns: Vec<(String, String)> =
            all(&mut self.conn.prepare(sql)?.query([])?, |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (table, column) in columns {
            tables.entry(table).or_default().insert(column);
        }
        Ok(tables)
    }

    /// The last key that was given out in tables which never give one out again.
    pub(crate) fn sequences(&self) -> Result<BTreeMap<String, i64>, StoreError> {
        let sql = "SELECT name, seq FROM sqlite_sequence";
        let found: Vec<(String, i64)> =
            all(&mut self.conn.prepare(sql)?.query([])?, |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(found.into_iter().collect())
    }

    /// Sends the rows of these columns of these tables, in order; an empty chunk ends a table. It
    /// ends early when nobody receives, or with the fault that it sent.
    pub(crate) fn send(
        &self,
        plan: &[(String, Vec<String>)],
        to: &Sender<Result<Rows, StoreError>>,
    ) {
        for (table, columns) in plan {
            let sent = self.send_table(table, columns, to);
            let ended = sent.map(|()| Rows::new());
            let failed = ended.is_err();
            if to.blocking_send(ended).is_err() || failed {
                return;
            }
        }
    }

    fn send_table(
        &self,
        table: &str,
        columns: &[String],
        to: &Sender<Result<Rows, StoreError>>,
    ) -> Result<(), StoreError> {
        let named: Vec<_> = columns.iter().map(|name| format!("\"{name}\"")).collect();
        let sql = format!("SELECT {} FROM \"{table}\"", named.join(", "));
        let mut statement = self.conn.prepare(&sql)?;
        let mut rows = statement.query([])?;
        let (mut chunk, mut bytes) = (Rows::new(), 0);
        while let Some(row) = rows.next()? {
            let cells = cells(row, columns.len())?;
            bytes += cells.iter().map(size).sum::<usize>();
            chunk.push(cells);
            if chunk.len() >= CHUNK_ROWS || bytes >= CHUNK_BYTES {
                bytes = 0;
                if to.blocking_send(Ok(std::mem::take(&mut chunk))).is_err() {
                    return Ok(());
                }
            }
        }
        if !chunk.is_empty() {
            let _gone = to.blocking_send(Ok(chunk));
        }
        Ok(())
    }
}

fn cells(row: &Row<'_>, count: usize) -> Result<Vec<Cell>, StoreError> {
    let cell = |column| {
        Ok(match row.get_ref(column)? {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Int(number),
            ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
            // No table has such a column.
            ValueRef::Real(_) => return Err(crate::stored::fault::unreadable()),
        })
    };
    (0..count).map(cell).collect()
}

const fn size(cell: &Cell) -> usize {
    match cell {
        Cell::Null | Cell::Int(_) => 8,
        Cell::Text(text) => text.len(),
        Cell::Bytes(bytes) => bytes.len(),
    }
}
