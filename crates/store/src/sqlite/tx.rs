//! The running transaction: the connection that writes, and what has been done on it since its
//! begin.
//!
//! Each trait's file adds to it what only that trait needs.
//! Never: begin or end a transaction; `writer` does.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use domain::ids::{AppKey, KeyMaker, PublicId};
use resilience::Timestamp;
use rusqlite::{Connection, params};

use super::batch::Batch;
use super::hot::Hot;
use super::rows::value;
use super::used_keys::UsedKeys;
use crate::StoreError;

/// Applications whose version is kept in memory; beyond it the map is emptied.
const APPS_MAX: usize = 100_000;

/// What changes work with.
pub(super) struct Tx<'c> {
    pub(super) conn: &'c Connection,
    pub(super) hot: Hot<'c>,
    /// The time of the running batch.
    pub(super) now: Timestamp,
    /// What the running batch has done so far.
    pub(super) batch: Batch,
    /// Why the running batch is lost.
    pub(super) fault: Option<StoreError>,
    /// Whether the last batch that was to write anything was lost; at first that is not known.
    pub(super) failed: bool,
    pub(super) used: UsedKeys,
    /// Somebody waits for the lists to be filled as far as there are rows.
    pub(super) lists_wanted: bool,
    /// Organisations that are told of what happens in them, once that was asked.
    pub(super) told_orgs: Option<HashSet<PublicId>>,
    /// Somebody sends what goes by e-mail.
    pub(super) keeps_mails: Arc<AtomicBool>,
    maker: KeyMaker,
    /// Versions of live applications as the transaction sees them; `None` for those that are gone.
    apps: HashMap<AppKey, Option<i64>>,
}

impl<'c> Tx<'c> {
    pub(super) fn new(
        conn: &'c Connection,
        now: Timestamp,
        keeps_mails: Arc<AtomicBool>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            conn,
            hot: Hot::prepare(conn)?,
            now,
            batch: Batch::default(),
            fault: None,
            failed: true,
            used: UsedKeys::load(conn)?,
            lists_wanted: false,
            told_orgs: None,
            keeps_mails,
            maker: KeyMaker::new(last_key(conn)?, 0),
            apps: HashMap::new(),
        })
    }

    /// Does something whose failure is the failure of the whole batch.
    pub(super) fn together<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let made = work(self);
        if let Err(fault) = &made {
            self.fault = Some(fault.clone());
        }
        made
    }

    /// Does something whose failure takes back only what it did itself.
    pub(super) fn alone<T>(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.together(|tx| tx.cached("SAVEPOINT change"))?;
        let (mark, used) = (self.batch.mark(), self.used.mark());
        let made = change(self);
        let ended = if made.is_ok() {
            self.cached("RELEASE change")
        } else {
            self.batch.back_to(mark);
            self.used.back_to(used);
            self.apps.clear();
            self.told_orgs = None;
            self.cached("ROLLBACK TO change").and_then(|()| self.cached("RELEASE change"))
        };
        if let Err(fault) = ended {
            // What has ended the whole transaction is the cause; that nothing is left to take back
            // only follows from it.
            self.fault = Some(made.as_ref().err().cloned().unwrap_or(fault));
        }
        made
    }

    /// Runs a statement without parameters, prepared once.
    fn cached(&self, sql: &str) -> Result<(), StoreError> {
        Ok(self.conn.prepare_cached(sql)?.execute([]).map(drop)?)
    }

    /// The batch was committed.
    pub(super) fn confirm(&mut self) -> Batch {
        self.used.confirm(&self.batch.messages);
        std::mem::take(&mut self.batch)
    }

    /// The batch was rolled back: nothing of it is known any more.
    pub(super) fn undo(&mut self) {
        self.batch = Batch::default();
        self.used.undo();
        self.apps.clear();
        self.told_orgs = None;
    }

    /// The next key, larger than all before.
    pub(super) fn draw(&mut self) -> u64 {
        self.maker.draw(self.now)
    }

    /// The version of a live application.
    pub(super) fn version_of(&mut self, app: AppKey) -> Result<Option<i64>, StoreError> {
        if let Some(version) = self.apps.get(&app) {
            return Ok(*version);
        }
        let sql = "SELECT version FROM app WHERE key = ?1 AND deleted_at IS NULL";
        let version = value(&mut self.conn.prepare_cached(sql)?.query([app.0])?)?;
        if self.apps.len() >= APPS_MAX {
            self.apps.clear();
        }
        self.apps.insert(app, version);
        Ok(version)
    }

    /// Raises the version of an application, deleted or not, and returns it.
    pub(super) fn raise(&mut self, app: AppKey) -> Result<i64, StoreError> {
        self.apps.remove(&app);
        let sql = "UPDATE app SET version = version + 1 WHERE key = ?1 RETURNING version";
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query(params![app.0])?;
        let version = value(&mut rows)?.ok_or(StoreError::Missing("application"))?;
        // A statement that returns rows is done only when there are no more.
        while rows.next()?.is_some() {}
        Ok(version)
    }
}

/// The largest key in use; ids of applications and endpoints are drawn from the same maker. What
/// was listed or used a key may be gone, and nothing new may fall below it.
fn last_key(conn: &Connection) -> Result<u64, StoreError> {
    let sql = "SELECT max(coalesce((SELECT max(key) FROM message), 0),
                          coalesce((SELECT max(key) FROM attempt), 0),
                          coalesce((SELECT max(place) FROM closed), 0),
                          coalesce((SELECT max(key) FROM task), 0),
                          coalesce((SELECT max(place) FROM notice), 0),
                          coalesce((SELECT max(place) FROM mail), 0),
                          coalesce((SELECT max(place) FROM alert_telling), 0),
                          coalesce((SELECT max(since) FROM endpoint_url), 0),
                          coalesce((SELECT max(up_to) FROM listed), 0),
                          coalesce((SELECT max(writing) FROM figure_mark), 0),
                          coalesce((SELECT max(up_to) FROM key_run), 0))";
    let last: Option<i64> = value(&mut conn.prepare(sql)?.query([])?)?;
    Ok(last.unwrap_or(0).cast_unsigned())
}
