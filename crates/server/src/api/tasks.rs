//! Background tasks: list, read, cancel; and how every one of them begins.
//!
//! An application's token sees the tasks of its application; those that only count are the
//! organisation's.
//! Never: 202 before the task is durable.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::ids::{AppKey, Kind, PublicId};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use store::directory::IdOrUid;
use store::page::{Direction, Looked};
use store::tasks::{Started, Task, TaskFilter, TaskKind, TaskSpec, TaskStatus};

use super::inputs::query::Tasks;
use super::once::once;
use super::operation::Operation;
use super::own;
use super::views::report::{self, ReportOut};
use super::views::task::{NAMES, STATUSES, TaskOut, name_of, status_of};
use crate::http::auth::Auth;
use crate::http::extract::{Place, Received};
use crate::http::idempotency::{Answer, Done, Made, Ticket};
use crate::http::paging::{ListOut, Paging};
use crate::http::problem::Problem;
use crate::http::query::{Query, refuse};
use crate::http::tokens::Caller;
use crate::reports::Report;
use crate::spelling::one_of;
use crate::state::{Shared, random};

type Answered = Result<Response, Problem>;

/// A task of either sort.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(untagged)]
enum Shown {
    Task(TaskOut),
    Report(ReportOut),
}

impl Shown {
    fn iterator(&self) -> String {
        match self {
            Self::Task(task) => task.iterator(),
            Self::Report(report) => report.iterator(),
        }
    }
}

pub(super) const LIST: Operation =
    Operation::new("v1.background-task.list", "Lists the background tasks of the organisation.")
        .query::<Tasks>()
        .gives::<ListOut<Shown>>(200)
        .or("not_found");

/// `GET /background-task`
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    query: Query,
) -> Answered {
    let filter = TaskFilter { app: own_app(&shared, &caller).await?, ..filter_of(&query)? };
    let within: Vec<_> = filter.app.iter().map(|app| app.0.cast_unsigned()).collect();
    let seal = shared.iterators.of("tasks", caller.org, &within);
    let paging = Paging::ordered(&query, Direction::Descending, seal)?;
    let is_row = async |id: String| {
        if report(&shared, &caller, &id).is_some() {
            return Ok(true);
        }
        let Some(id) = PublicId::parse(Kind::Task, &id) else { return Ok(false) };
        let found = shared.engine.stores().tasks.task(caller.org, id).await?;
        Ok(found.is_some_and(|found| filter.app.is_none_or(|app| app == found.spec.app)))
    };
    let key_of = |text: &str| PublicId::parse(Kind::Task, text).map(|id| id.key());
    let page = paging.page(key_of, is_row).await?;
    let reports = Paging::cut(&page, reports(&shared, &caller, &query)?, |(key, _)| *key);
    let (direction, limit) = (page.direction, page.limit);
    let is_report = query.get("task")?.is_some_and(|name| report::NAMES.contains(&name));
    let Looked { rows: tasks, reached } = match is_report {
        true => Looked::nothing(),
        false => shared.engine.stores().tasks.tasks(caller.org, filter, page).await?,
    };
    let tasks = tasks.into_iter().map(|task| (task.id.key(), Shown::Task(TaskOut::new(task))));
    // Reports beyond the tasks that were looked at have their turn with those.
    let is_reached = |(key, _): &(u64, Shown)| match direction {
        Direction::Ascending => reached.is_none_or(|reached| *key <= reached),
        Direction::Descending => reached.is_none_or(|reached| *key >= reached),
    };
    let mut rows: Vec<_> = tasks.chain(reports.into_iter().filter(is_reached)).collect();
    rows.sort_by_key(|(key, _)| *key);
    if direction == Direction::Descending {
        rows.reverse();
    }
    rows.truncate(limit);
    let rows = rows.into_iter().map(|(_, shown)| shown).collect();
    let bare = |key| PublicId::new(key, [0; 12]).text(Kind::Task);
    let list = paging.look(Looked { rows, reached }, Shown::iterator, bare);
    Ok(Answer::json(StatusCode::OK, &list).into_response())
}

/// The reports that are asked for, oldest first.
fn reports(shared: &Shared, caller: &Caller, query: &Query) -> Result<Vec<(u64, Shown)>, Problem> {
    if caller.app.is_some() {
        return Ok(Vec::new());
    }
    let all = shared.reports.of(caller.org).into_iter();
    let all = all.map(|report| (report.id.key(), ReportOut::new(report)));
    let is_asked = |asked: Option<&str>, name: &str| asked.is_none_or(|asked| asked == name);
    let (status, task) = (query.get("status")?, query.get("task")?);
    Ok(all
        .filter(|(_, shown)| is_asked(status, shown.status) && is_asked(task, shown.task))
        .map(|(key, shown)| (key, Shown::Report(shown)))
        .collect())
}

fn filter_of(query: &Query) -> Result<TaskFilter, Problem> {
    let mut filter = TaskFilter::default();
    if let Some(name) = query.get("status")? {
        if !STATUSES.contains(&name) {
            return Err(refuse("status", &one_of(&STATUSES)));
        }
        filter.statuses = TaskStatus::ALL.to_vec();
        filter.statuses.retain(|status| status_of(*status) == name);
    }
    if let Some(name) = query.get("task")? {
        let known = [&NAMES[..], &report::NAMES].concat();
        if !known.contains(&name) {
            return Err(refuse("task", &one_of(&known)));
        }
        filter.kinds = TaskKind::ALL.to_vec();
        filter.kinds.retain(|kind| name_of(*kind) == name);
    }
    Ok(filter)
}

/// The one application that the caller may reach, if there is only one.
async fn own_app(shared: &Shared, caller: &Caller) -> Result<Option<AppKey>, Problem> {
    let Some(id) = caller.app else { return Ok(None) };
    let found = shared.engine.stores().directory.app(caller.org, IdOrUid::Id(id)).await?;
    found.map(|found| Some(found.app.key)).ok_or_else(own::missing)
}

pub(super) const READ: Operation =
    Operation::new("v1.background-task.get", "Shows a background task and how far it is.")
        .gives::<Shown>(200);

/// `GET /background-task/{task}`
pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(task): Place<String>,
) -> Answered {
    if let Some(report) = report(&shared, &caller, &task) {
        return Ok(Answer::json(StatusCode::OK, &ReportOut::new(report)).into_response());
    }
    let found = found(&shared, &caller, &task).await?;
    Ok(Answer::json(StatusCode::OK, &TaskOut::new(found)).into_response())
}

fn report(shared: &Shared, caller: &Caller, text: &str) -> Option<Report> {
    let id = PublicId::parse(Kind::Task, text).filter(|_| caller.app.is_none())?;
    shared.reports.one(caller.org, id)
}

async fn found(shared: &Shared, caller: &Caller, text: &str) -> Result<Task, Problem> {
    let id = PublicId::parse(Kind::Task, text).ok_or_else(own::missing)?;
    let found = shared.engine.stores().tasks.task(caller.org, id).await?;
    let only = own_app(shared, caller).await?;
    let found = found.filter(|found| only.is_none_or(|app| app == found.spec.app));
    found.map(|found| *found).ok_or_else(own::missing)
}

pub(super) const CANCEL: Operation =
    Operation::new("v1.background-task.cancel", "Stops a background task at once.")
        .once()
        .gives::<TaskOut>(200)
        .or("conflict");

/// `POST /background-task/{task}/cancel`
pub(super) async fn cancel(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(task): Place<String>,
    received: Received,
) -> Answered {
    if report(&shared, &caller, &task).is_some() {
        return Err(Problem::conflict("conflict", "A task that only counts cannot be stopped"));
    }
    let found = found(&shared, &caller, &task).await?;
    let peyk = Arc::clone(&shared);
    let place = [found.id.key()];
    let work = async move |ticket: Ticket| {
        let done =
            |ended: &Task| Done::json(StatusCode::OK, &TaskOut::new(ended.clone()), Made::Nothing);
        let once = ticket.tells(move |ended: &Option<Box<Task>>| ended.as_deref().map(done));
        let ended = peyk.engine.cancel_task(found.id, once).await?;
        let ended = ended.ok_or_else(|| Problem::conflict("conflict", "The task has ended"))?;
        Ok(done(&ended))
    };
    once(&shared, (&caller, &received), &place, work).await
}

/// Starts a task and answers 202 once it is durable.
pub(super) async fn begin(
    shared: &Arc<Shared>,
    (caller, received): (&Caller, &Received),
    spec: TaskSpec,
) -> Answered {
    let endpoint = spec.endpoint.map_or(0, |key| key.0.cast_unsigned());
    let place = [spec.app.0.cast_unsigned(), endpoint];
    let peyk = Arc::clone(shared);
    let work = async move |ticket: Ticket| {
        let done = |task: &Task| {
            Done::json(StatusCode::ACCEPTED, &TaskOut::new(task.clone()), Made::Nothing)
        };
        let once = ticket.tells(move |started| match started {
            Started::New(task) => Some(done(task)),
            Started::Overlaps(_) | Started::NotOwed => None,
        });
        match peyk.engine.start_task(spec, random()?, once).await? {
            Started::New(task) => Ok(done(&task)),
            Started::Overlaps(other) => {
                let other = other.text(Kind::Task);
                let detail = format!("Background task {other} is at work on the same deliveries");
                Err(Problem::conflict("conflict", detail))
            }
            Started::NotOwed => Err(Problem::conflict("conflict", "Nothing is to be done")),
        }
    };
    once(shared, (caller, received), &place, work).await
}
