//! The running transaction: the connection that writes, and what has been done on it since its
//! begin.
//!
//! Each trait's file adds to it what only that trait needs. It lives as long as its connection.
//! Never: decide when a transaction begins or ends; `writer` does.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use deadpool_postgres::Object;
use domain::ids::{AppKey, KeyMaker, PublicId};
use futures_util::future::BoxFuture;
use resilience::Timestamp;

use super::batch::{Batch, Mark};
use super::conn::{Conn, Params, one, run, value};
use super::fault::Fault;
use super::rows::bytes_at;
use crate::StoreError;

/// Part of a change, on the writer.
pub(super) type Work<'t, T> = BoxFuture<'t, Result<T, Fault>>;

/// What changes work with.
pub(super) struct Tx {
    conn: Object,
    /// The time of the running batch.
    pub(super) now: Timestamp,
    /// What the running batch has done so far.
    pub(super) batch: Batch,
    /// Organisations that are told of what happens in them, once that was asked.
    pub(super) told_orgs: Option<HashSet<PublicId>>,
    /// Somebody sends what goes by e-mail.
    pub(super) keeps_mails: Arc<AtomicBool>,
    /// Why the running batch is lost.
    pub(super) fault: Option<StoreError>,
    maker: KeyMaker,
    last: u64,
}

impl Tx {
    /// Draws keys after `last`.
    pub(super) fn new(
        conn: Object,
        last: u64,
        now: Timestamp,
        keeps_mails: Arc<AtomicBool>,
    ) -> Self {
        let maker = KeyMaker::new(last, 0);
        let batch = Batch::default();
        Self { conn, now, batch, told_orgs: None, keeps_mails, fault: None, maker, last }
    }

    /// The connection.
    pub(super) fn conn(&self) -> &Conn {
        &self.conn
    }

    /// The last key that was drawn.
    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    /// Ends the connection.
    pub(super) fn leave(self) {
        drop(Object::take(self.conn));
    }

    /// Does something whose failure takes back only what it did itself.
    pub(super) async fn alone<T>(
        &mut self,
        change: impl for<'t> FnOnce(&'t mut Self) -> Work<'t, T>,
    ) -> Result<T, Fault> {
        let mark = self.save().await?;
        let made = change(self).await;
        self.end_save(mark, made).await
    }

    /// Begins what may be taken back by itself.
    pub(super) async fn save(&mut self) -> Result<Mark, Fault> {
        self.step("SAVEPOINT change").await?;
        Ok(self.batch.mark())
    }

    /// Keeps what was done since the mark, or takes it back.
    pub(super) async fn end_save<T>(
        &mut self,
        mark: Mark,
        made: Result<T, Fault>,
    ) -> Result<T, Fault> {
        let end = match &made {
            Ok(_) => "RELEASE change",
            Err(_) => {
                self.batch.back_to(mark);
                self.told_orgs = None;
                "ROLLBACK TO change; RELEASE change"
            }
        };
        match (self.step(end).await, made) {
            (Err(fault), Ok(_)) => Err(fault),
            (_, made) => made,
        }
    }

    /// A step of the transaction itself: where it fails, all of it is lost.
    async fn step(&mut self, sql: &str) -> Result<(), Fault> {
        let done = self.conn.batch_execute(sql).await.map_err(Fault::from);
        if let Err(fault) = &done {
            let fault = fault.told();
            self.fault.get_or_insert(fault);
        }
        done
    }

    pub(super) async fn begin(&self) -> Result<(), Fault> {
        Ok(self.conn.batch_execute("BEGIN").await?)
    }

    pub(super) async fn commit(&self) -> Result<(), Fault> {
        Ok(self.conn.batch_execute("COMMIT").await?)
    }

    /// Takes everything back.
    pub(super) async fn roll_back(&mut self) -> Result<(), Fault> {
        self.undo();
        Ok(self.conn.batch_execute("ROLLBACK").await?)
    }

    /// Runs a statement and counts the rows it wrote.
    pub(super) async fn write(&mut self, sql: &str, params: Params<'_>) -> Result<usize, Fault> {
        let written = run(&self.conn, sql, params).await?;
        self.batch.rows += written;
        Ok(written)
    }

    /// The batch was rolled back: nothing of it is known any more.
    pub(super) fn undo(&mut self) {
        self.batch = Batch::default();
        self.fault = None;
        self.told_orgs = None;
    }

    /// The next key, larger than all before.
    pub(super) fn draw(&mut self) -> u64 {
        self.last = self.maker.draw(self.now);
        self.last
    }

    /// Raises the version of an application, deleted or not, and returns it.
    pub(super) async fn raise(&mut self, app: AppKey) -> Result<i64, Fault> {
        let sql = "UPDATE app SET version = version + 1 WHERE key = $1 RETURNING version";
        let version = value(&self.conn, sql, &[&app.0]).await?;
        Ok(version.ok_or(StoreError::Missing("application"))?)
    }
}

/// Keeps the largest key that was ever drawn, for when its row goes.
pub(super) const KEEP_LAST_KEY: &str = "INSERT INTO setting (name, value) VALUES ('last_key', $1)
     ON CONFLICT (name) DO UPDATE SET value = greatest(setting.value, excluded.value)";

/// The largest key in use or kept; ids of applications and endpoints are drawn from the same maker.
pub(super) async fn last_key(conn: &Conn) -> Result<u64, Fault> {
    let sql = "SELECT greatest((SELECT max(key) FROM message), (SELECT max(key) FROM attempt),
                   (SELECT max(place) FROM closed), (SELECT max(key) FROM task),
                   (SELECT max(place) FROM notice), (SELECT max(place) FROM mail),
                   (SELECT max(since) FROM endpoint_url))";
    let used = value::<i64>(conn, sql, &[]).await?.unwrap_or(0).cast_unsigned();
    let sql = "SELECT value FROM setting WHERE name = 'last_key'";
    let kept = one(conn, sql, &[], |row| bytes_at(row, 0)).await?.map_or(0, u64::from_be_bytes);
    Ok(used.max(kept))
}
