//! Background tasks: jobs over many deliveries or messages, worked on in pieces.
//!
//! A task is durable before its caller is answered. A piece and how far it reached are written in
//! one transaction, so that a task which goes on after a crash repeats nothing.
//! Never: decide what a piece holds, or how fast pieces follow one another.

use std::collections::BTreeMap;

use domain::dead_letter::{DeadLetter, DeadReason};
use domain::ids::{AppKey, EndpointKey, MessageKey, PublicId};
use resilience::Timestamp;

use crate::Reply;
use crate::history::SentFilter;
use crate::page::{Looked, PageOf};
use crate::recall::Once;

/// The place behind everything.
pub const END: u64 = u64::MAX;
/// Stands for the application where a task has no endpoints.
pub const WHOLE_APP: EndpointKey = EndpointKey(0);

/// What kind of job it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// Puts dead letters of an endpoint back whose sends failed in a span of time.
    Recover,
    /// Sends an endpoint what it never got.
    Missing,
    /// Sends an endpoint again what it was sent.
    Again,
    /// Puts dead letters back.
    DeadLetters,
    /// Deletes the payloads of an application.
    Purge,
    /// Puts dead letters of an endpoint back that works again.
    Outage,
}

impl TaskKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Recover, Self::Missing, Self::Again, Self::DeadLetters, Self::Purge, Self::Outage];

    /// Whether two such tasks would do the same things twice.
    pub fn overlaps(self, other: Self) -> bool {
        (self == Self::Purge) == (other == Self::Purge)
    }
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// There is more to do.
    Running,
    /// All is done.
    Finished,
    /// It cannot go on.
    Failed,
    /// Somebody stopped it.
    Cancelled,
    /// Its endpoint does not work again, or is switched off: another one begins when it does.
    Stopped,
}

/// Why a task of an outage was stopped.
pub const RELAPSED: &str =
    "the endpoint failed again or was suspended; the rest goes back when it works again";
/// The same.
pub const PRECEDED: &str = "somebody's own task goes first; the rest goes back after it";

impl TaskStatus {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Running, Self::Finished, Self::Failed, Self::Cancelled, Self::Stopped];
}

/// A span of time: from `since` on, before `until`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct During {
    /// From then on.
    pub since: Option<Timestamp>,
    /// Before then.
    pub until: Option<Timestamp>,
}

impl During {
    /// Whether it holds this time.
    pub fn holds(&self, at: Timestamp) -> bool {
        self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until)
    }
}

/// Which dead letters are put back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Letters {
    /// Only given up for these reasons; empty for all.
    pub reasons: Vec<DeadReason>,
    /// Only these event types; empty for all.
    pub event_types: Vec<String>,
    /// Only given up in this time.
    pub during: During,
    /// Only these, in order; empty for all.
    pub ids: Vec<(EndpointKey, MessageKey)>,
    /// Only of this run of refusals; with its endpoint.
    pub run: Option<Timestamp>,
}

impl Letters {
    /// Whether this one is asked for, as far as it is not by its id.
    pub fn takes(&self, letter: &DeadLetter) -> bool {
        (self.reasons.is_empty() || self.reasons.contains(&letter.reason))
            && (self.event_types.is_empty() || self.event_types.contains(&letter.event_type))
            && self.during.holds(letter.dead_at)
            && self.run.is_none_or(|run| letter.run == Some(run))
    }
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// See [`TaskKind::Recover`]: by the time of the failed sends.
    Recover(During),
    /// See [`TaskKind::Missing`]: by the time of the messages.
    Missing(During),
    /// See [`TaskKind::Again`]: only those whose last send was answered with this class of status,
    /// if one is named.
    Again(SentFilter, Option<u16>),
    /// See [`TaskKind::DeadLetters`].
    DeadLetters(Letters),
    /// See [`TaskKind::Purge`].
    #[default]
    Purge,
    /// See [`TaskKind::Outage`]: those that died of it since then.
    Outage(Timestamp),
}

impl Work {
    /// Its kind.
    pub const fn kind(&self) -> TaskKind {
        match self {
            Self::Recover(_) => TaskKind::Recover,
            Self::Missing(_) => TaskKind::Missing,
            Self::Again(..) => TaskKind::Again,
            Self::DeadLetters(_) => TaskKind::DeadLetters,
            Self::Purge => TaskKind::Purge,
            Self::Outage(_) => TaskKind::Outage,
        }
    }
}

/// What somebody asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// The organisation.
    pub org: PublicId,
    /// The application.
    pub app: AppKey,
    /// The one endpoint it is about; `None` for all of the application.
    pub endpoint: Option<EndpointKey>,
    /// What is to be done.
    pub work: Work,
    /// Deliveries a second, where the setting is not to hold.
    pub rate_per_s: Option<u32>,
    /// How many there are to do, if that was counted.
    pub total: Option<u64>,
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Done.
    pub done: u64,
    /// Could not be done: the payload is gone.
    pub failed: u64,
}

/// A task as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Public id, `qtask_…`; its key is drawn when the task is stored, so that what comes later
    /// has a larger one.
    pub id: PublicId,
    /// What was asked for.
    pub spec: TaskSpec,
    /// Where it stands.
    pub status: TaskStatus,
    /// How far it is, by endpoint; [`END`] where nothing is left.
    pub cursor: BTreeMap<EndpointKey, u64>,
    /// What was done.
    pub tally: Tally,
    /// Why it cannot go on.
    pub error: Option<String>,
    /// When it last moved.
    pub updated_at: Timestamp,
}

impl Task {
    /// Whether it makes way for a task of `kind`.
    pub fn makes_way(&self, kind: TaskKind) -> bool {
        self.spec.work.kind() == TaskKind::Outage && kind != TaskKind::Outage
    }

    /// The endpoint that is owed nothing more once this is stored: a task of an outage ended, and
    /// not because the endpoint failed again.
    pub fn settles(&self) -> Option<EndpointKey> {
        let is_over = !matches!(self.status, TaskStatus::Running | TaskStatus::Stopped);
        self.spec.endpoint.filter(|_| is_over && self.spec.work.kind() == TaskKind::Outage)
    }
}

/// What became of a task that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Started {
    /// It is stored.
    New(Box<Task>),
    /// This one runs on the same deliveries.
    Overlaps(PublicId),
    /// It is of an outage that nothing is owed for.
    NotOwed,
}

/// One thing that is done to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Puts its dead letter back, if it was one before the task began.
    Replay,
    /// Puts its dead letter back, if it stands at the place of this act: whenever it died.
    Return,
    /// Makes a delivery of it, if there is none and nothing was ever sent.
    Send,
    /// Adds one extra send.
    Resend,
    /// Deletes its payload.
    Purge,
}

/// Things to do for one endpoint, and where the task stands after each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The endpoint, or [`WHOLE_APP`].
    pub endpoint: EndpointKey,
    /// Where the piece begins.
    pub from: u64,
    /// In order; each with the place that is reached by it.
    pub acts: Vec<(u64, MessageKey, Act)>,
    /// What is reached by all of them.
    pub reached: u64,
}

/// What a piece came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It was done, up to `reached`.
    On {
        /// Where the next piece begins.
        reached: u64,
        /// Messages that now wait to be sent.
        waiting: Vec<MessageKey>,
    },
    /// The task does not run, or is beyond the piece: nothing was done.
    Stopped,
}

/// Which tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Only of this application.
    pub app: Option<AppKey>,
    /// Only of these kinds; empty for all.
    pub kinds: Vec<TaskKind>,
    /// Only that stand so; empty for all.
    pub statuses: Vec<TaskStatus>,
}

impl TaskFilter {
    /// Whether it takes this task.
    pub fn takes(&self, task: &Task) -> bool {
        self.app.is_none_or(|app| app == task.spec.app)
            && (self.kinds.is_empty() || self.kinds.contains(&task.spec.work.kind()))
            && (self.statuses.is_empty() || self.statuses.contains(&task.status))
    }
}

/// Reads and moves of tasks.
pub trait Tasks: Send + Sync {
    /// Stores a task that begins to run. Not while another one runs on the same application and
    /// endpoint whose kind [overlaps](TaskKind::overlaps), but those of outages make way for any
    /// other and are stopped. One of an outage begins only while that is
    /// [owed and ready](crate::recoveries::Recoveries). Tasks that ended 90 days ago go.
    fn start(&self, spec: TaskSpec, random: [u8; 12]) -> Reply<'static, Started> {
        self.start_once(spec, random, None)
    }
    /// The same, and keeps its answer in the same transaction.
    fn start_once(
        &self,
        spec: TaskSpec,
        random: [u8; 12],
        once: Once<Started>,
    ) -> Reply<'static, Started>;
    /// Does a piece and moves the task, in one transaction of at most 500 rows: a piece that does
    /// not fit is done in part. What is pending by it is handed to `Commits::fresh`.
    fn advance(&self, task: PublicId, piece: Piece) -> Reply<'static, Moved>;
    /// Ends a task that runs; `None` when it does not run (any more). What it
    /// [settles](Task::settles) is owed no longer.
    fn end(
        &self,
        task: PublicId,
        status: TaskStatus,
        error: Option<String>,
    ) -> Reply<'static, Option<Box<Task>>> {
        self.end_once(task, (status, error), None)
    }
    /// The same, and keeps its answer in the same transaction.
    fn end_once(
        &self,
        task: PublicId,
        end: (TaskStatus, Option<String>),
        once: Once<Option<Box<Task>>>,
    ) -> Reply<'static, Option<Box<Task>>>;
    /// One task of an organisation.
    fn task(&self, org: PublicId, id: PublicId) -> Reply<'_, Option<Box<Task>>>;
    /// Looks at tasks of an organisation by the key of their id.
    fn tasks(
        &self,
        org: PublicId,
        filter: TaskFilter,
        page: PageOf<u64>,
    ) -> Reply<'_, Looked<Task, u64>>;
    /// Tasks that run, oldest first, at most `limit`.
    fn running(&self, limit: usize) -> Reply<'_, Vec<Task>>;
    /// Those of the messages that wait to be sent to the endpoint. Ones that were accepted and
    /// never sent since may be left out.
    fn waiting_of(
        &self,
        endpoint: EndpointKey,
        messages: Vec<MessageKey>,
    ) -> Reply<'_, Vec<MessageKey>>;
}
