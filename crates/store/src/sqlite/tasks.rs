//! Background tasks, in SQLite: one row each; a piece and its row move in one change.
//!
//! Never: a list of what a task has done; what it made is seen in pending rows and payloads.

mod perform;

use std::collections::HashMap;
use std::sync::Arc;

use domain::delivery::Pending;
use domain::ids::{AppKey, EndpointKey, MessageKey, PublicId, key_floor};
use domain::limits::TASK_DAYS;
use rusqlite::{Connection, Row, params};

use super::SqliteStore;
use super::deliveries::fresh;
use super::queue::bound;
use super::rows::{all, bytes_at, code_at, id_at, maybe_blob, narrow_at, one, time_at, value};
use super::scan::{LOOK_PIECES, PIECE_ROWS, Span, piece, walk};
use super::tx::Tx;
use crate::page::{Direction, Looked, PageOf};
use crate::prune::days;
use crate::recall::Once;
use crate::stored::codes::Code as _;
use crate::stored::task as stored;
use crate::tasks::{
    Act, Moved, PRECEDED, Piece, RELAPSED, Started, Tally, Task, TaskFilter, TaskKind, TaskSpec,
    TaskStatus, Tasks, Work,
};
use crate::{Reply, StoreError};

/// The columns that [`task`] reads.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT key, random, org, app, endpoint, status, spec, cursor, done, failed, error, \
             updated_at FROM task ",
            $rest
        )
    };
}

pub(super) const ONE: &str = select!("WHERE key = ?1");
/// Tasks of one application that run.
pub(super) const OF_APP: &str = select!("INDEXED BY task_running WHERE app = ?1 AND status = 1");
pub(super) const RUNNING: &str =
    select!("INDEXED BY task_running WHERE status = 1 ORDER BY app, key LIMIT ?1");
pub(super) const OF_ORG: [&str; 2] = [
    select!(
        "INDEXED BY task_of_org WHERE org = ?1 AND key BETWEEN ?2 AND ?3 ORDER BY key ASC LIMIT ?4"
    ),
    select!(
        "INDEXED BY task_of_org WHERE org = ?1 AND key BETWEEN ?2 AND ?3 ORDER BY key DESC LIMIT ?4"
    ),
];
pub(super) const FORGET: &str = "DELETE FROM task WHERE key IN
     (SELECT key FROM task WHERE key < ?1 AND status <> 1 ORDER BY key LIMIT 10)";
pub(super) const WAITS: &str = "SELECT 1 FROM pending INDEXED BY pending_moved
     WHERE moved = 1 AND message = ?1 AND endpoint = ?2";

impl Tasks for SqliteStore {
    fn start_once(
        &self,
        spec: TaskSpec,
        random: [u8; 12],
        once: Once<Started>,
    ) -> Reply<'static, Started> {
        self.change_once(once, move |tx| tx.start_task(spec, random))
    }

    fn advance(&self, task: PublicId, piece: Piece) -> Reply<'static, Moved> {
        let shared = Arc::clone(&self.shared);
        let purged: Vec<MessageKey> = (piece.acts.iter())
            .filter(|(.., act)| *act == Act::Purge)
            .map(|(_, message, _)| *message)
            .collect();
        let found =
            (!purged.is_empty()).then(|| self.readers.read(move |conn| all_fresh(conn, &purged)));
        Box::pin(async move {
            let fresh = match found {
                Some(found) => found.await?,
                None => HashMap::new(),
            };
            shared.door.change(move |tx| tx.advance_task(task, &piece, &fresh)).await
        })
    }

    fn end_once(
        &self,
        task: PublicId,
        (status, error): (TaskStatus, Option<String>),
        once: Once<Option<Box<Task>>>,
    ) -> Reply<'static, Option<Box<Task>>> {
        self.change_once(once, move |tx| {
            let Some(mut found) = running(tx.conn, task)? else { return Ok(None) };
            (found.status, found.error, found.updated_at) = (status, error, tx.now);
            tx.put_task(&found)?;
            if let Some(endpoint) = found.settles() {
                tx.settle_recovery(endpoint)?;
            }
            Ok(Some(Box::new(found)))
        })
    }

    fn task(&self, org: PublicId, id: PublicId) -> Reply<'_, Option<Box<Task>>> {
        self.readers.read(move |conn| {
            let found = read(conn, id)?.filter(|task| task.spec.org == org);
            Ok(found.map(Box::new))
        })
    }

    fn tasks(
        &self,
        org: PublicId,
        filter: TaskFilter,
        page: PageOf<u64>,
    ) -> Reply<'_, Looked<Task, u64>> {
        self.readers.read(move |conn| list(conn, org, &filter, &page))
    }

    fn running(&self, limit: usize) -> Reply<'_, Vec<Task>> {
        self.readers.read(move |conn| {
            let mut statement = conn.prepare_cached(RUNNING)?;
            let mut found = all(&mut statement.query([bound(limit)])?, task)?;
            found.sort_by_key(|task| task.id.key());
            Ok(found)
        })
    }

    fn waiting_of(
        &self,
        endpoint: EndpointKey,
        messages: Vec<MessageKey>,
    ) -> Reply<'_, Vec<MessageKey>> {
        self.readers.read(move |conn| {
            let mut statement = conn.prepare_cached(WAITS)?;
            let mut waiting = Vec::new();
            for message in messages {
                if statement.exists([message.0.cast_signed(), endpoint.0])? {
                    waiting.push(message);
                }
            }
            Ok(waiting)
        })
    }
}

fn list(
    conn: &Connection,
    org: PublicId,
    filter: &TaskFilter,
    page: &PageOf<u64>,
) -> Result<Looked<Task, u64>, StoreError> {
    let mut found = Vec::new();
    if page.limit == 0 {
        return Ok(Looked::nothing());
    }
    let [up, down] = OF_ORG;
    let sql = match page.direction {
        Direction::Ascending => up,
        Direction::Descending => down,
    };
    let span = (Span::of(page), page.direction);
    let reached = walk(conn, None, span, LOOK_PIECES, |conn, _, span| {
        let mut statement = conn.prepare_cached(sql)?;
        let values = params![org.as_bytes(), span.low, span.high, bound(PIECE_ROWS)];
        piece(&mut statement.query(values)?, PIECE_ROWS, |row| {
            found.extend(Some(task(row)?).filter(|task| filter.takes(task)));
            Ok(found.len() >= page.limit)
        })
    })?;
    Ok(Looked { rows: found, reached: reached.map(i64::cast_unsigned) })
}

/// Reads what [`select`] selects.
fn task(row: &Row<'_>) -> Result<Task, StoreError> {
    let key = row.get::<_, i64>(0)?.cast_unsigned();
    let (work, rate_per_s, total) = maybe_blob(row, 6, stored::read_work)?.unwrap_or_default();
    Ok(Task {
        id: PublicId::new(key, bytes_at(row, 1)?),
        spec: TaskSpec {
            org: id_at(row, 2)?,
            app: AppKey(row.get(3)?),
            endpoint: row.get::<_, Option<i64>>(4)?.map(EndpointKey),
            work,
            rate_per_s,
            total,
        },
        status: code_at(row, 5)?,
        cursor: maybe_blob(row, 7, stored::read_cursor)?.unwrap_or_default(),
        tally: Tally { done: narrow_at(row, 8)?, failed: narrow_at(row, 9)? },
        error: row.get(10)?,
        updated_at: time_at(row, 11)?,
    })
}

fn read(conn: &Connection, id: PublicId) -> Result<Option<Task>, StoreError> {
    let mut statement = conn.prepare_cached(ONE)?;
    let found = one(&mut statement.query([id.key().cast_signed()])?, task)?;
    Ok(found.filter(|found| found.id == id))
}

fn running(conn: &Connection, id: PublicId) -> Result<Option<Task>, StoreError> {
    Ok(read(conn, id)?.filter(|task| task.status == TaskStatus::Running))
}

/// Rows that wait for the payloads and were never moved.
fn all_fresh(
    conn: &Connection,
    messages: &[MessageKey],
) -> Result<HashMap<MessageKey, Vec<Pending>>, StoreError> {
    let mut found = HashMap::new();
    for message in messages {
        found.insert(*message, fresh(conn, message.0.cast_signed())?);
    }
    Ok(found)
}

impl Tx<'_> {
    fn start_task(&mut self, spec: TaskSpec, random: [u8; 12]) -> Result<Started, StoreError> {
        if let Work::Outage(since) = spec.work
            && !self.is_owed(spec.endpoint, since)?
        {
            return Ok(Started::NotOwed);
        }
        let others = all(&mut self.conn.prepare_cached(OF_APP)?.query([spec.app.0])?, task)?;
        let same = |task: &&Task| {
            task.spec.work.kind().overlaps(spec.work.kind())
                && (task.spec.endpoint.is_none()
                    || spec.endpoint.is_none()
                    || task.spec.endpoint == spec.endpoint)
        };
        let (kind, others) = (spec.work.kind(), others.iter().filter(same).collect::<Vec<_>>());
        if let Some(other) = others.iter().find(|other| !other.makes_way(kind)) {
            return Ok(Started::Overlaps(other.id));
        }
        for other in others {
            self.stop_task(other.clone(), PRECEDED)?;
        }
        let floor = key_floor(self.now.minus(days(TASK_DAYS))).cast_signed();
        self.batch.rows += self.conn.prepare_cached(FORGET)?.execute([floor])?;
        let id = PublicId::new(self.draw(), random);
        let task = Task {
            id,
            spec,
            status: TaskStatus::Running,
            cursor: [].into(),
            tally: Tally::default(),
            error: None,
            updated_at: self.now,
        };
        self.put_task(&task)?;
        Ok(Started::New(Box::new(task)))
    }

    /// Stops the task that puts back dead letters of an outage of this endpoint, if one runs.
    pub(super) fn stop_recovering(&mut self, endpoint: EndpointKey) -> Result<(), StoreError> {
        let sql = "SELECT app FROM endpoint WHERE key = ?1";
        let app: Option<i64> = value(&mut self.conn.prepare_cached(sql)?.query([endpoint.0])?)?;
        let running = all(&mut self.conn.prepare_cached(OF_APP)?.query([app])?, task)?;
        for task in running {
            let is_of_outage = task.spec.work.kind() == TaskKind::Outage;
            if is_of_outage && task.spec.endpoint == Some(endpoint) {
                self.stop_task(task, RELAPSED)?;
            }
        }
        Ok(())
    }

    fn stop_task(&mut self, mut task: Task, why: &str) -> Result<(), StoreError> {
        (task.status, task.error) = (TaskStatus::Stopped, Some(why.to_owned()));
        task.updated_at = self.now;
        self.put_task(&task)
    }

    /// Writes a task as it now is.
    fn put_task(&mut self, task: &Task) -> Result<(), StoreError> {
        let sql = "INSERT INTO task (key, random, org, app, endpoint, status, spec, cursor, done, failed, error,
                       updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
                   ON CONFLICT (key) DO UPDATE SET status = excluded.status, cursor = excluded.cursor,
                       done = excluded.done, failed = excluded.failed, error = excluded.error,
                       updated_at = excluded.updated_at";
        let spec = &task.spec;
        self.batch.rows += self.conn.prepare_cached(sql)?.execute(params![
            task.id.key().cast_signed(),
            task.id.random(),
            spec.org.as_bytes(),
            spec.app.0,
            spec.endpoint.map(|key| key.0),
            task.status.code(),
            stored::work(spec),
            stored::cursor(&task.cursor),
            task.tally.done.cast_signed(),
            task.tally.failed.cast_signed(),
            task.error,
            task.updated_at.as_micros(),
        ])?;
        Ok(())
    }
}
