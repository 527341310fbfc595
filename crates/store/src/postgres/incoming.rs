//! What comes from another backend: rows into an empty database, all in one transaction.
//!
//! Meanwhile no node may join. What is not committed is undone with the connection.
//! Never: write into a database that holds something.

use std::error::Error;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use resilience::Timestamp;
use tokio_postgres::Socket;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::conn::{Conn, all, exists, run, value};
use super::fault::{Fault, unavailable};
use super::link::Way;
use super::node::JOIN_LOCK;
use super::rows::{At, get, text};
use super::{link, migrate};
use crate::StoreError;
use crate::stored::raw::{Cell, Tables};

/// What a new database holds already: a mark at the beginning, which is that of the file then.
const BEGUN_TABLE: &str = "figure_mark";
/// What belongs to the database itself.
const OWN_TABLES: &str = "('floor', 'node', 'partition', 'schema_version', 'wake')";

/// An empty database that is filled. What is not committed goes with it.
pub(crate) struct Incoming {
    conn: Conn,
}

impl Incoming {
    /// Connects, makes the schema, and begins.
    pub(crate) async fn begin<T>(url: &str, tls: T) -> Result<Self, StoreError>
    where
        T: MakeTlsConnect<Socket> + Clone + Sync + Send + 'static,
        T::Stream: Sync + Send,
        T::TlsConnect: Sync + Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let conn = link::connect(&Way::to(url, tls)?.pool(1)?).await?;
        let incoming = Self { conn };
        incoming.prepare().await.map_err(|fault| fault.told())?;
        for table in incoming.tables().await?.keys() {
            if table != BEGUN_TABLE && incoming.count(table).await? > 0 {
                return Err(StoreError::Conflict("the schema peyk of the database"));
            }
        }
        Ok(incoming)
    }

    async fn prepare(&self) -> Result<(), Fault> {
        migrate::to_latest(&self.conn).await?;
        // A large table is read meanwhile, however long that takes.
        let begin = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0";
        self.conn.batch_execute(begin).await?;
        // No node joins before the end.
        run(&self.conn, "SELECT pg_advisory_xact_lock($1)", &[&JOIN_LOCK]).await?;
        match exists(&self.conn, "SELECT 1 FROM node", &[]).await? {
            true => Err(unavailable("another peyk uses the database").into()),
            false => {
                let sql = format!("DELETE FROM {BEGUN_TABLE}");
                run(&self.conn, &sql, &[]).await.map(drop)
            }
        }
    }

    /// Its tables, and their columns.
    pub(crate) async fn tables(&self) -> Result<Tables, StoreError> {
        let sql = format!(
            "SELECT table_name::text, column_name::text FROM information_schema.columns
             WHERE table_schema = 'peyk' AND table_name NOT IN {OWN_TABLES}"
        );
        let read = |row: &tokio_postgres::Row| Ok((get::<String>(row, 0)?, get::<String>(row, 1)?));
        let columns = all(&self.conn, &sql, &[], read).await.map_err(|fault| fault.told())?;
        let mut tables = Tables::new();
        for (table, column) in columns {
            tables.entry(table).or_default().insert(column);
        }
        Ok(tables)
    }

    /// Rows of a table.
    pub(crate) async fn count(&self, table: &str) -> Result<u64, StoreError> {
        let sql = format!("SELECT count(*) FROM \"{table}\"");
        let counted = value::<i64>(&self.conn, &sql, &[]).await.map_err(|fault| fault.told())?;
        Ok(counted.map_or(0, i64::cast_unsigned))
    }

    /// Where rows of a table go.
    pub(crate) async fn sink(&self, table: &str, columns: &[String]) -> Result<Sink, StoreError> {
        self.open_sink(table, columns).await.map_err(|fault| fault.told())
    }

    async fn open_sink(&self, table: &str, columns: &[String]) -> Result<Sink, Fault> {
        let named: Vec<_> = columns.iter().map(|name| format!("\"{name}\"")).collect();
        let named = named.join(", ");
        let look = self.conn.prepare(&format!("SELECT {named} FROM \"{table}\"")).await?;
        let types: Vec<Type> = look.columns().iter().map(|column| column.type_().clone()).collect();
        let sql = format!("COPY \"{table}\" ({named}) FROM STDIN BINARY");
        let sink = self.conn.copy_in::<_, Bytes>(&sql).await?;
        Ok(Sink { writer: Box::pin(BinaryCopyInWriter::new(sink, &types)) })
    }

    /// Keys of this table go on behind `last`.
    pub(crate) async fn go_on_from(&self, table: &str, last: i64) -> Result<(), StoreError> {
        let sql = format!("SELECT setval(pg_get_serial_sequence('peyk.\"{table}\"', 'key'), $1)");
        let set = value::<i64>(&self.conn, &sql, &[&last]).await;
        set.map(drop).map_err(|fault| fault.told())
    }

    /// Keeps all of it.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        let committed = self.conn.batch_execute("COMMIT; ANALYZE").await;
        committed.map_err(|fault| Fault::from(fault).told())
    }
}

/// Where rows of one table go.
pub(crate) struct Sink {
    writer: Pin<Box<BinaryCopyInWriter>>,
}

impl Sink {
    /// Adds rows.
    pub(crate) async fn write(&mut self, rows: &[Vec<Cell>]) -> Result<(), StoreError> {
        for row in rows {
            let written = self.writer.as_mut().write_raw(row).await;
            written.map_err(|fault| Fault::from(fault).told())?;
        }
        Ok(())
    }

    /// No more rows.
    pub(crate) async fn finish(mut self) -> Result<(), StoreError> {
        let finished = self.writer.as_mut().finish().await;
        finished.map(drop).map_err(|fault| Fault::from(fault).told())
    }
}

impl ToSql for Cell {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match (self, kind) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Int(number), &Type::INT8) => number.to_sql(kind, out),
            (Self::Int(number), &Type::INT2) => i16::try_from(*number)?.to_sql(kind, out),
            (Self::Int(number), &Type::BOOL) => (*number != 0).to_sql(kind, out),
            (Self::Int(micros), &Type::TIMESTAMPTZ) => {
                At(Timestamp::from_micros(*micros)).to_sql(kind, out)
            }
            (Self::Text(said), &Type::TEXT) => text(said).to_sql(kind, out),
            (Self::Bytes(bytes), &Type::BYTEA) => bytes.to_sql(kind, out),
            _ => Err("a value does not fit its column".into()),
        }
    }

    fn accepts(kind: &Type) -> bool {
        [Type::INT8, Type::INT2, Type::BOOL, Type::TIMESTAMPTZ, Type::TEXT, Type::BYTEA]
            .contains(kind)
    }

    to_sql_checked!();
}
