//! The running transaction: the connection that writes, and what has been done on it since its
//! begin.
//!
//! Each trait's file adds to it what only that trait needs. It lives as long as its connection.
//! Never: decide when a transaction begins or ends; `writer` does.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use domain::ids::{AppKey, KeyMaker, PublicId};
use futures_util::future::{BoxFuture, try_join};
use resilience::Timestamp;

use super::batch::{Batch, Mark};
use super::conn::{Conn, Params, one, run, value};
use super::fault::{Fault, unavailable};
use super::node::Me;
use super::rows::bytes_at;
use crate::StoreError;
use crate::nodes::Share;

/// Part of a change, on the writer.
pub(super) type Work<'t, T> = BoxFuture<'t, Result<T, Fault>>;

/// Who writes.
pub(super) struct By {
    pub(super) me: Me,
    pub(super) share: Arc<Share>,
    pub(super) keeps_mails: Arc<AtomicBool>,
}

/// What changes work with.
pub(super) struct Tx {
    conn: Conn,
    /// The time of the running batch.
    pub(super) now: Timestamp,
    /// What the running batch has done so far.
    pub(super) batch: Batch,
    /// Organisations that are told of what happens in them, once that was asked.
    pub(super) told_orgs: Option<HashSet<PublicId>>,
    /// Somebody sends what goes by e-mail.
    pub(super) keeps_mails: Arc<AtomicBool>,
    me: Me,
    share: Arc<Share>,
    /// Why the running batch is lost.
    pub(super) fault: Option<StoreError>,
    maker: KeyMaker,
    last: u64,
}

impl Tx {
    /// Draws keys after `last`.
    pub(super) fn new(conn: Conn, last: u64, now: Timestamp, by: By) -> Self {
        Self {
            conn,
            now,
            batch: Batch::default(),
            told_orgs: None,
            keeps_mails: by.keeps_mails,
            me: by.me,
            share: by.share,
            fault: None,
            maker: KeyMaker::new(last, by.me.slot),
            last,
        }
    }

    /// The connection.
    pub(super) fn conn(&self) -> &Conn {
        &self.conn
    }

    /// The node that writes.
    pub(super) const fn me(&self) -> Me {
        self.me
    }

    /// What it owns.
    pub(super) fn share(&self) -> Arc<Share> {
        Arc::clone(&self.share)
    }

    /// The last key that was drawn.
    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    /// Ends the connection.
    pub(super) fn leave(self) {
        self.conn.end();
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

    /// Begins, under the lock of this node's row: from here to the end nobody can declare it dead.
    pub(super) async fn begin(&mut self) -> Result<(), Fault> {
        // Another node may have changed who is told.
        self.told_orgs = None;
        let begun = async { Ok(self.conn.batch_execute("BEGIN").await?) };
        if try_join(begun, self.me.lock(&self.conn)).await?.1 {
            return Ok(());
        }
        self.share.end();
        Err(unavailable("other nodes have declared this one dead").into())
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

    /// Says below which key this node commits nothing more: one that is drawn now, since a batch is
    /// committed before the next one begins.
    pub(super) async fn raise_floor(&mut self) -> Result<(), Fault> {
        let key = self.draw().cast_signed();
        run(&self.conn, RAISE_FLOOR, &[&self.me.id.0, &key]).await.map(drop)
    }

    /// Keeps other nodes from changing the application until the end of the transaction.
    pub(super) async fn lock_app(&self, app: AppKey) -> Result<(), Fault> {
        let sql = "SELECT 1 FROM app WHERE key = $1 FOR NO KEY UPDATE";
        run(&self.conn, sql, &[&app.0]).await.map(drop)
    }

    /// Raises the version of an application, deleted or not, and returns it.
    pub(super) async fn raise(&mut self, app: AppKey) -> Result<i64, Fault> {
        let sql = "UPDATE app SET version = version + 1 WHERE key = $1 RETURNING version";
        let version = value(&self.conn, sql, &[&app.0]).await?;
        Ok(version.ok_or(StoreError::Missing("application"))?)
    }
}

const RAISE_FLOOR: &str = "INSERT INTO floor (node, key) VALUES ($1, $2)
     ON CONFLICT (node) DO UPDATE SET key = excluded.key";
/// Keeps the largest key that was ever drawn, for when its row goes.
pub(super) const KEEP_LAST_KEY: &str = "INSERT INTO setting (name, value) VALUES ('last_key', $1)
     ON CONFLICT (name) DO UPDATE SET value = greatest(setting.value, excluded.value)";

/// The largest key in use or kept; ids of applications and endpoints are drawn from the same maker.
pub(super) async fn last_key(conn: &Conn) -> Result<u64, Fault> {
    let sql = "SELECT greatest((SELECT max(key) FROM message), (SELECT max(key) FROM attempt),
                   (SELECT max(place) FROM closed), (SELECT max(key) FROM task),
                   (SELECT max(place) FROM notice), (SELECT max(place) FROM mail),
                   (SELECT max(place) FROM alert_telling),
                   (SELECT max(since) FROM endpoint_url), (SELECT max(writing) FROM figure_mark))";
    let used = value::<i64>(conn, sql, &[]).await?.unwrap_or(0).cast_unsigned();
    let sql = "SELECT value FROM setting WHERE name = 'last_key'";
    let kept = one(conn, sql, &[], |row| bytes_at(row, 0)).await?.map_or(0, u64::from_be_bytes);
    Ok(used.max(kept))
}
