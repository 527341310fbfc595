//! Background tasks, in PostgreSQL: one row each; a piece and its row move in one change.
//!
//! Never: a list of what a task has done; what it made is seen in pending rows and payloads.

mod perform;

use domain::ids::{AppKey, EndpointKey, MessageKey, PublicId, key_floor};
use domain::limits::TASK_DAYS;
use tokio_postgres::Row;

use super::PostgresStore;
use super::conn::{Conn, all, one, value};
use super::fault::Fault;
use super::rows::{
    At, bound, bytes_at, code_at, get, id_at, maybe_text, message_key, narrow_at, order, small,
    time_at,
};
use super::scan::Walk;
use super::tx::Tx;
use crate::page::{Looked, PageOf};
use crate::prune::days;
use crate::recall::Once;
use crate::stored::codes::Code as _;
use crate::stored::task as stored;
use crate::tasks::{
    Moved, PRECEDED, Piece, RELAPSED, Started, Tally, Task, TaskFilter, TaskKind, TaskSpec,
    TaskStatus, Tasks, Work,
};
use crate::{Reply, StoreError};

/// The columns that [`task`] reads.
const TASK: &str =
    "key, random, org, app, endpoint, status, spec, cursor, done, failed, error, updated_at";
const FORGET: &str = "DELETE FROM task WHERE key IN
     (SELECT key FROM task WHERE key < $1 AND status <> 1 ORDER BY key LIMIT 10)";
const WAITS: &str =
    "SELECT DISTINCT message FROM pending WHERE endpoint = $1 AND message = ANY($2)";

impl Tasks for PostgresStore {
    fn start_once(
        &self,
        spec: TaskSpec,
        random: [u8; 12],
        once: Once<Started>,
    ) -> Reply<'static, Started> {
        self.change_once(once, move |tx| Box::pin(tx.start_task(spec, random)))
    }

    fn advance(&self, task: PublicId, piece: Piece) -> Reply<'static, Moved> {
        self.shared
            .door
            .change(move |tx| Box::pin(async move { tx.advance_task(task, &piece).await }))
    }

    fn end_once(
        &self,
        task: PublicId,
        (status, error): (TaskStatus, Option<String>),
        once: Once<Option<Box<Task>>>,
    ) -> Reply<'static, Option<Box<Task>>> {
        self.change_once(once, move |tx| {
            Box::pin(async move {
                let Some(mut found) = running(tx.conn(), task).await? else { return Ok(None) };
                (found.status, found.error, found.updated_at) = (status, error, tx.now);
                tx.put_task(&found).await?;
                if let Some(endpoint) = found.settles() {
                    tx.settle_recovery(endpoint).await?;
                }
                Ok(Some(Box::new(found)))
            })
        })
    }

    fn task(&self, org: PublicId, id: PublicId) -> Reply<'_, Option<Box<Task>>> {
        self.read(move |conn| async move {
            let found = read(&conn, id).await?.filter(|task| task.spec.org == org);
            Ok(found.map(Box::new))
        })
    }

    fn tasks(
        &self,
        org: PublicId,
        filter: TaskFilter,
        page: PageOf<u64>,
    ) -> Reply<'_, Looked<Task, u64>> {
        self.read(move |conn| async move { list(&conn, org, &filter, &page).await })
    }

    fn running(&self, limit: usize) -> Reply<'_, Vec<Task>> {
        self.read(move |conn| async move {
            let sql =
                format!("SELECT {TASK} FROM task WHERE status = 1 ORDER BY app, key LIMIT $1");
            let mut found = all(&conn, &sql, &[&bound(limit)], task).await?;
            found.sort_by_key(|task| task.id.key());
            Ok(found)
        })
    }

    fn waiting_of(
        &self,
        endpoint: EndpointKey,
        messages: Vec<MessageKey>,
    ) -> Reply<'_, Vec<MessageKey>> {
        self.read(move |conn| async move {
            let keys: Vec<i64> = messages.iter().map(|message| message.0.cast_signed()).collect();
            let waiting =
                all(&conn, WAITS, &[&endpoint.0, &keys], |row| message_key(row, 0)).await?;
            Ok(messages.into_iter().filter(|message| waiting.contains(message)).collect())
        })
    }
}

async fn list(
    conn: &Conn,
    org: PublicId,
    filter: &TaskFilter,
    page: &PageOf<u64>,
) -> Result<Looked<Task, u64>, Fault> {
    let order = order(page.direction);
    let sql = format!(
        "SELECT {TASK} FROM task WHERE (org, key) >= ($1, $2) AND (org, key) <= ($1, $3)
         ORDER BY org {order}, key {order} LIMIT $4"
    );
    let (org, mut found) = (&org.as_bytes()[..], Vec::new());
    let mut walk = Walk::new(page, &(0..u64::MAX), true);
    while let Some((span, most)) = walk.piece() {
        let rows = all(conn, &sql, &[&org, &span.low, &span.high, &most], task).await?;
        let count = rows.len();
        for task in rows {
            walk.pass(task.id.key().cast_signed());
            found.extend(Some(task).filter(|task| filter.takes(task)));
            if found.len() >= page.limit {
                return Ok(walk.found(found));
            }
        }
        walk.read(count);
    }
    Ok(walk.found(found))
}

/// Reads [`TASK`].
fn task(row: &Row) -> Result<Task, StoreError> {
    let key = get::<i64>(row, 0)?.cast_unsigned();
    let (work, rate_per_s, total) = stored::read_work(get(row, 6)?)?;
    Ok(Task {
        id: PublicId::new(key, bytes_at(row, 1)?),
        spec: TaskSpec {
            org: id_at(row, 2)?,
            app: AppKey(get(row, 3)?),
            endpoint: get::<Option<i64>>(row, 4)?.map(EndpointKey),
            work,
            rate_per_s,
            total,
        },
        status: code_at(row, 5)?,
        cursor: stored::read_cursor(get(row, 7)?)?,
        tally: Tally { done: narrow_at(row, 8)?, failed: narrow_at(row, 9)? },
        error: get(row, 10)?,
        updated_at: time_at(row, 11)?,
    })
}

async fn read(conn: &Conn, id: PublicId) -> Result<Option<Task>, Fault> {
    let sql = format!("SELECT {TASK} FROM task WHERE key = $1");
    let found = one(conn, &sql, &[&id.key().cast_signed()], task).await?;
    Ok(found.filter(|found| found.id == id))
}

/// A task that runs, for the one who moves it on.
async fn running(conn: &Conn, id: PublicId) -> Result<Option<Task>, Fault> {
    let sql = format!("SELECT {TASK} FROM task WHERE key = $1 FOR UPDATE");
    let found = one(conn, &sql, &[&id.key().cast_signed()], task).await?;
    Ok(found.filter(|found| found.id == id && found.status == TaskStatus::Running))
}

impl Tx {
    async fn start_task(&mut self, spec: TaskSpec, random: [u8; 12]) -> Result<Started, Fault> {
        // Two that overlap may be started on two nodes at once.
        self.lock_app(spec.app).await?;
        if let Work::Outage(since) = spec.work
            && !self.is_owed(spec.endpoint, since).await?
        {
            return Ok(Started::NotOwed);
        }
        let sql = format!("SELECT {TASK} FROM task WHERE app = $1 AND status = 1");
        let others = all(self.conn(), &sql, &[&spec.app.0], task).await?;
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
            self.stop_task(other.clone(), PRECEDED).await?;
        }
        let floor = key_floor(self.now.minus(days(TASK_DAYS))).cast_signed();
        self.write(FORGET, &[&floor]).await?;
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
        self.put_task(&task).await?;
        self.batch.started += 1;
        Ok(Started::New(Box::new(task)))
    }

    /// Stops the task that puts back dead letters of an outage of this endpoint, if one runs.
    pub(super) async fn stop_recovering(&mut self, endpoint: EndpointKey) -> Result<(), Fault> {
        let sql =
            format!("SELECT {TASK} FROM task WHERE endpoint = $2 AND status = 1 AND app = $1");
        let of = "SELECT app FROM endpoint WHERE key = $1";
        let app = value::<i64>(self.conn(), of, &[&endpoint.0]).await?;
        for task in all(self.conn(), &sql, &[&app, &endpoint.0], task).await? {
            if task.spec.work.kind() == TaskKind::Outage {
                self.stop_task(task, RELAPSED).await?;
            }
        }
        Ok(())
    }

    async fn stop_task(&mut self, mut task: Task, why: &str) -> Result<(), Fault> {
        (task.status, task.error) = (TaskStatus::Stopped, Some(why.to_owned()));
        task.updated_at = self.now;
        self.put_task(&task).await
    }

    /// Writes a task as it now is.
    async fn put_task(&mut self, task: &Task) -> Result<(), Fault> {
        let sql = format!(
            "INSERT INTO task ({TASK}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
             ON CONFLICT (key) DO UPDATE SET status = excluded.status, cursor = excluded.cursor,
                 done = excluded.done, failed = excluded.failed, error = excluded.error,
                 updated_at = excluded.updated_at"
        );
        let (spec, random) = (&task.spec, task.id.random());
        let written = self
            .write(
                &sql,
                &[
                    &task.id.key().cast_signed(),
                    &&random[..],
                    &&spec.org.as_bytes()[..],
                    &spec.app.0,
                    &spec.endpoint.map(|key| key.0),
                    &small(task.status.code()),
                    &stored::work(spec),
                    &stored::cursor(&task.cursor),
                    &task.tally.done.cast_signed(),
                    &task.tally.failed.cast_signed(),
                    &maybe_text(task.error.as_deref()),
                    &At(task.updated_at),
                ],
            )
            .await;
        written.map(drop)
    }
}
