//! What an organisation uses, application by application: what its endpoints subscribe to, and how
//! many messages went to them.
//!
//! Both are background tasks to the SDKs. The first is done when it is answered, so that the
//! answer carries what the finished task does; the second is counted beside other work.
//! Never: change anything.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use domain::application::{AppSnapshot, Application};
use domain::ids::{AppKey, Kind, MessageKey, PublicId, key_floor};
use domain::limits::STATS_SLACK;
use http::StatusCode;
use resilience::Timestamp;
use serde::{Deserialize, Serialize};
use store::StoreError;
use store::history::MessageFilter;
use store::page::{Direction, PageOf};

use super::inputs::usage::{AppUsageStatsIn, NAMES_MAX};
use super::once::once_read;
use super::operation::{Operation, Token};
use super::own;
use super::views::report::{AppOut, AppsOut, StartedOut, SubscribedOut, TypesOut, TypesReportOut};
use crate::http::auth::Auth;
use crate::http::extract::Received;
use crate::http::fields::{Fields, texts, time};
use crate::http::idempotency::{Answer, Done, Made};
use crate::http::problem::Problem;
use crate::http::tokens::Caller;
use crate::reports::{self, Report, Standing};
use crate::state::{Shared, random};

/// Applications looked at; an organisation with more is told so.
const APPS_MAX: usize = 10_000;
/// Applications, or messages, read at once.
const PAGE: usize = 250;

pub(super) const EVENT_TYPES: Operation = Operation::new(
    "v1.statistics.aggregate-event-types",
    "Lists what event types each application subscribes to.",
)
.token(Token::Org)
.gives::<TypesReportOut>(200)
.or("limit_reached");

/// `PUT /stats/usage/event-types`
pub(super) async fn event_types(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
) -> Result<Response, Problem> {
    caller.org_only()?;
    let keys = apps_of(&shared, caller.org).await?.ok_or_else(too_many)?;
    let mut found = Vec::new();
    for One { key, .. } in keys {
        // One that was deleted meanwhile subscribes to nothing.
        let app = shared.engine.stores().directory.app_by_key(key).await?;
        found.extend(app.as_ref().map(subscribed));
    }
    let data = json(&TypesOut { event_types: found });
    let kind = reports::Kind::EventTypes;
    let report = new(kind, Standing::Finished(data), shared.now())?;
    // Nothing of this kind is ever seen to run.
    let kept = shared.reports.begin(caller.org, report).map_err(|_| Problem::overloaded())?;
    Ok(Answer::json(StatusCode::OK, &TypesReportOut::new(kept)).into_response())
}

fn new(kind: reports::Kind, standing: Standing, now: Timestamp) -> Result<Report, StoreError> {
    // Tasks of the same moment are told apart by what the floor leaves out.
    let [a, b, c] = random()?;
    let key = key_floor(now) | u64::from_be_bytes([0, 0, 0, 0, 0, a, b, c]);
    let id = PublicId::new(key, random()?);
    Ok(Report { id, kind, standing, updated_at: now })
}

fn json(shown: &impl Serialize) -> String {
    serde_json::to_string(shown).unwrap_or_default()
}

fn too_many() -> Problem {
    Problem::bad_request("limit_reached", too_many_rule())
}

fn too_many_rule() -> String {
    format!("This counts at most {APPS_MAX} applications")
}

/// An application that is counted.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct One {
    id: PublicId,
    uid: Option<String>,
    key: AppKey,
}

impl One {
    fn of(app: &Application) -> Self {
        Self { id: app.id, uid: app.spec.uid.clone(), key: app.key }
    }
}

/// All applications of an organisation, if it has not too many.
async fn apps_of(shared: &Shared, org: PublicId) -> Result<Option<Vec<One>>, StoreError> {
    let (mut found, mut beyond) = (Vec::new(), None);
    loop {
        let page = PageOf { beyond, direction: Direction::Ascending, limit: PAGE };
        let apps = shared.engine.stores().directory.apps(org, page).await?;
        beyond = apps.last().map(|app| app.id);
        found.extend(apps.iter().map(|app| One::of(app)));
        if found.len() > APPS_MAX {
            return Ok(None);
        }
        if apps.len() < PAGE {
            return Ok(Some(found));
        }
    }
}

fn subscribed(app: &AppSnapshot) -> SubscribedOut {
    let named = app.endpoints.iter().filter_map(|to| to.spec.event_types.as_ref());
    SubscribedOut {
        app_id: app.app.id.text(Kind::Application),
        explicitly_subscribed_event_types: named.flatten().cloned().collect::<BTreeSet<_>>(),
        has_catch_all_endpoint: app.endpoints.iter().any(|to| to.spec.event_types.is_none()),
    }
}

/// What is asked for.
pub(super) struct Asked {
    since: Timestamp,
    until: Timestamp,
    /// Ids or uids; `None` for all applications.
    names: Option<Vec<String>>,
}

pub(super) const APPLICATIONS: Operation = Operation::new(
    "v1.statistics.aggregate-app-stats",
    "Counts the messages to endpoints of each application.",
)
.token(Token::Org)
.takes::<AppUsageStatsIn>()
.once()
.gives::<StartedOut>(202)
.or("conflict");

/// `POST /stats/usage/app`
pub(super) async fn applications(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    received: Received,
) -> Result<Response, Problem> {
    caller.org_only()?;
    let asked = read(&received.body, shared.now())?;
    let (apps, unresolved) = match &asked.names {
        None => (None, Vec::new()),
        Some(names) => {
            let (apps, unresolved) = resolved(&shared, &caller, names).await?;
            (Some(apps), unresolved)
        }
    };
    if apps.as_ref().is_some_and(Vec::is_empty) {
        let rule = "must name an application of this organisation";
        return Err(Problem::field(&["body", "appIds"], rule, domain::error::Invalid::KIND));
    }
    let (peyk, org) = (Arc::clone(&shared), caller.org);
    let work = async move |_| {
        let report = new(reports::Kind::Applications, Standing::Running, peyk.now())?;
        let report = peyk.reports.begin(org, report).map_err(|other| {
            let other = other.text(Kind::Task);
            Problem::conflict("conflict", format!("Background task {other} counts already"))
        })?;
        let id = report.id;
        tokio::spawn(async move {
            let counted = counted(&peyk, org, (apps, &asked)).await;
            let standing = counted.unwrap_or_else(|fault| {
                tracing::warn!(%fault, "cannot count the messages of applications");
                Standing::Failed("the storage failed".to_owned())
            });
            peyk.reports.end(id, standing, peyk.now());
        });
        let shown = StartedOut::new(report, unresolved);
        Ok(Done::json(StatusCode::ACCEPTED, &shown, Made::Nothing))
    };
    let peyk = Arc::clone(&shared);
    let read = Box::new(move |stored: Bytes| is_known(&peyk, org, &stored).then_some(stored));
    once_read(&shared, (&caller, &received), &[], read, work).await
}

/// Whether the report that a stored answer tells of is still there; a restart forgets it.
fn is_known(shared: &Shared, org: PublicId, stored: &[u8]) -> bool {
    let told = serde_json::from_slice::<Told>(stored).ok();
    let id = told.and_then(|told| PublicId::parse(Kind::Task, &told.id));
    id.is_some_and(|id| shared.reports.one(org, id).is_some())
}

/// What is read of a stored answer.
#[derive(Deserialize)]
struct Told {
    id: String,
}

pub(super) fn read(body: &[u8], now: Timestamp) -> Result<Asked, Problem> {
    let mut fields = Fields::parse(body)?;
    let since = fields.firm("since", None, None, time);
    let until = fields.firm("until", None, None, time);
    if until.is_some_and(|until| until > now.plus(STATS_SLACK)) {
        fields.fail("until", "must not be in the future");
    }
    if until.is_some_and(|until| since.is_some_and(|since| until <= since)) {
        fields.fail("until", "must be later than since");
    }
    let names = fields.nullable(&["appIds"], None, texts);
    if names.as_ref().is_some_and(|names| names.is_empty() || names.len() > NAMES_MAX) {
        fields.fail("appIds", format!("must have 1 to {NAMES_MAX} entries"));
    }
    fields.finish()?;
    let (since, until) = (since.unwrap_or_default(), until.unwrap_or_default());
    Ok(Asked { since, until, names })
}

/// Applications that are there, each once, and the names of those that are not.
async fn resolved(
    shared: &Shared,
    caller: &Caller,
    names: &[String],
) -> Result<(Vec<One>, Vec<String>), Problem> {
    let (mut apps, mut unresolved) = (Vec::new(), Vec::new());
    for name in names {
        let which = own::id_or_uid(Kind::Application, name);
        match shared.engine.app(caller.org, &which).await? {
            Some(found) => apps.push(One::of(&found.app)),
            None => unresolved.push(name.clone()),
        }
    }
    apps.sort_unstable();
    apps.dedup();
    Ok((apps, unresolved))
}

/// Counts the deliveries of the messages that were accepted in the span.
async fn counted(
    shared: &Shared,
    org: PublicId,
    (apps, asked): (Option<Vec<One>>, &Asked),
) -> Result<Standing, StoreError> {
    let apps = match apps {
        Some(apps) => apps,
        None => match apps_of(shared, org).await? {
            Some(apps) => apps,
            None => return Ok(Standing::Failed(too_many_rule())),
        },
    };
    let mut found = Vec::new();
    for One { id, uid: app_uid, key } in apps {
        let message_destinations = destinations(shared, key, asked).await?;
        found.push(AppOut { app_id: id.text(Kind::Application), app_uid, message_destinations });
    }
    Ok(Standing::Finished(json(&AppsOut { app_stats: found })))
}

async fn destinations(shared: &Shared, app: AppKey, asked: &Asked) -> Result<u64, StoreError> {
    let history = &shared.engine.stores().history;
    let filter = MessageFilter {
        before: Some(asked.until),
        after: Some(asked.since),
        ..MessageFilter::default()
    };
    let (mut count, mut beyond) = (0, None::<MessageKey>);
    loop {
        let page = PageOf { beyond, direction: Direction::Descending, limit: PAGE };
        let found = history.messages(app, filter.clone(), page, false).await?;
        for message in &found.rows {
            count += history.deliveries(message.key).await?.len() as u64;
        }
        beyond = found.reached;
        if beyond.is_none() {
            return Ok(count);
        }
    }
}
