//! Event types: create, list, read, replace, patch, archive, delete.
//!
//! Creating one that is archived brings it back; one that is not is 409. An application's token
//! sees only those without a feature flag, or with one that the token carries.
//! Never: decide who gets a message.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use domain::event_type::EventType;
use domain::text;
use http::StatusCode;
use resilience::Timestamp;
use store::StoreError;
use store::page::{Direction, PageOf};

use super::inputs::event_type::{EventTypeIn, EventTypeUpdate};
use super::inputs::query::{EventTypes, Expunge};
use super::once::once;
use super::operation::{Operation, Token};
use super::own;
use super::schemas;
use super::shapes::Patch;
use super::views::event_type::EventTypeOut;
use crate::http::auth::Auth;
use crate::http::extract::{Place, Received};
use crate::http::fields::{Fields, checked, flag};
use crate::http::idempotency::{Answer, Done, Made, Ticket};
use crate::http::paging::{ListOut, Paging};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::tokens::Caller;
use crate::schema_check::SchemaCheck;
use crate::state::Shared;

type Answered = Result<Response, Problem>;

pub(super) const LIST: Operation = Operation::new("v1.event-type.list", "Lists the event types.")
    .query::<EventTypes>()
    .gives::<ListOut<EventTypeOut>>(200);

/// `GET /event-type`
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    query: Query,
) -> Answered {
    let archived_too = query.flag("include_archived", false)?;
    let with_content = query.flag("with_content", false)?;
    let seal = shared.iterators.of("event types", caller.org, &[]);
    let paging = Paging::fixed(&query, Direction::Ascending, seal)?;
    let is_row = async |name: String| {
        let found = shared.engine.stores().directory.event_type(caller.org, name).await?;
        Ok(found.is_some_and(|found| may_see(&caller, &found)))
    };
    let name_of = |text: &str| text::event_type_name("", text).is_ok().then(|| text.to_owned());
    let page = paging.page(name_of, is_row).await?;
    let rows = visible(&shared, &caller, archived_too, page).await?;
    let list = paging.frame(rows, |event_type| event_type.name.clone());
    let list = list.map(|event_type| EventTypeOut::new(event_type, with_content));
    Ok(Answer::json(StatusCode::OK, &list).into_response())
}

/// Reads on past what the caller may not see, so that a page is full while there is more.
async fn visible(
    shared: &Shared,
    caller: &Caller,
    archived_too: bool,
    mut page: PageOf<String>,
) -> Result<Vec<EventType>, Problem> {
    let (limit, mut found) = (page.limit, Vec::new());
    loop {
        let directory = &shared.engine.stores().directory;
        let rows = directory.event_types(caller.org, archived_too, page.clone()).await?;
        let is_last = rows.len() < limit;
        page.beyond = rows.last().map(|last| last.name.clone());
        found.extend(rows.into_iter().filter(|row| may_see(caller, row)));
        if is_last || found.len() >= limit {
            found.truncate(limit);
            return Ok(found);
        }
    }
}

pub(super) const CREATE: Operation = Operation::new(
    "v1.event-type.create",
    "Creates an event type, or brings an archived one back.",
)
.token(Token::Org)
.takes::<EventTypeIn>()
.once()
.gives::<EventTypeOut>(201)
.or("event_type_exists");

/// `POST /event-type`
pub(super) async fn create(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    received: Received,
) -> Answered {
    caller.org_only()?;
    let mut fields = Fields::parse(&received.body)?;
    let name = fields.firm("name", None, None, checked(text::event_type_name));
    let made = read_type(fields, name.unwrap_or_default(), None, shared.now())?;
    let (peyk, org) = (Arc::clone(&shared), caller.org);
    let work = async move |ticket: Ticket| {
        let done = move |stored: &EventType| {
            let (name, created_at) = (stored.name.clone(), stored.created_at);
            let shown = EventTypeOut::new(stored.clone(), true);
            Done::json(StatusCode::CREATED, &shown, Made::EventType { org, name, created_at })
        };
        let once = ticket.tells(move |stored| Some(done(stored)));
        let directory = &peyk.engine.stores().directory;
        let write = directory.create_event_type_once(org, made.clone(), once);
        let stored = match peyk.schemas.write((org, made.name), write).await {
            Err(StoreError::Conflict(_)) => {
                let detail = "An event type with this name exists already";
                return Err(Problem::conflict("event_type_exists", detail));
            }
            stored => stored?,
        };
        Ok(done(&stored))
    };
    once(&shared, (&caller, &received), &[], work).await
}

pub(super) const READ: Operation =
    Operation::new("v1.event-type.get", "Shows an event type.").gives::<EventTypeOut>(200);

/// `GET /event-type/{name}`
pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(name): Place<String>,
) -> Answered {
    let found = find(&shared, &caller, name).await?.ok_or_else(own::missing)?;
    Ok(Answer::json(StatusCode::OK, &EventTypeOut::new(found, true)).into_response())
}

pub(super) const PUT: Operation =
    Operation::new("v1.event-type.update", "Replaces an event type, or creates it.")
        .token(Token::Org)
        .takes::<EventTypeUpdate>()
        .gives::<EventTypeOut>(200)
        .gives::<EventTypeOut>(201);

/// `PUT /event-type/{name}`
pub(super) async fn put(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(name): Place<String>,
    received: Received,
) -> Answered {
    caller.org_only()?;
    text::event_type_name("name", &name)?;
    let mut made = read_type(Fields::parse(&received.body)?, name.clone(), None, shared.now())?;
    let _edit = shared.edit().await?;
    let directory = &shared.engine.stores().directory;
    let (status, write) = match find(&shared, &caller, name.clone()).await? {
        Some(old) => {
            made.created_at = old.created_at;
            (StatusCode::OK, directory.update_event_type(caller.org, made))
        }
        None => (StatusCode::CREATED, directory.create_event_type(caller.org, made)),
    };
    let stored = shared.schemas.write((caller.org, name), write).await?;
    Ok(Answer::json(status, &EventTypeOut::new(stored, true)).into_response())
}

pub(super) const PATCH: Operation =
    Operation::new("v1.event-type.patch", "Changes what is named of an event type.")
        .token(Token::Org)
        .takes::<Patch<EventTypeUpdate>>()
        .gives::<EventTypeOut>(200);

/// `PATCH /event-type/{name}`
pub(super) async fn patch(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(name): Place<String>,
    received: Received,
) -> Answered {
    caller.org_only()?;
    let fields = Fields::parse(&received.body)?;
    let _edit = shared.edit().await?;
    let old = find(&shared, &caller, name).await?.ok_or_else(own::missing)?;
    let changed = read_type(fields, old.name.clone(), Some(&old), shared.now())?;
    let write = shared.engine.stores().directory.update_event_type(caller.org, changed);
    let stored = shared.schemas.write((caller.org, old.name), write).await?;
    Ok(Answer::json(StatusCode::OK, &EventTypeOut::new(stored, true)).into_response())
}

pub(super) const DELETE: Operation = Operation::new(
    "v1.event-type.delete",
    "Archives an event type, or removes it with expunge=true.",
)
.token(Token::Org)
.query::<Expunge>()
.ends(204);

/// `DELETE /event-type/{name}`: archives it, or with `expunge=true` removes it.
pub(super) async fn delete(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(name): Place<String>,
    query: Query,
) -> Answered {
    caller.org_only()?;
    let expunge = query.flag("expunge", false)?;
    let _edit = shared.edit().await?;
    let old = find(&shared, &caller, name).await?.ok_or_else(own::missing)?;
    let directory = &shared.engine.stores().directory;
    let name = (caller.org, old.name.clone());
    if expunge {
        let write = directory.delete_event_type(caller.org, old.name);
        shared.schemas.write(name, write).await?;
    } else {
        let archived = EventType { archived: true, updated_at: shared.now(), ..old };
        let write = directory.update_event_type(caller.org, archived);
        shared.schemas.write(name, write).await?;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn find(
    shared: &Shared,
    caller: &Caller,
    name: String,
) -> Result<Option<EventType>, Problem> {
    let found = shared.engine.stores().directory.event_type(caller.org, name).await?;
    Ok(found.filter(|found| may_see(caller, found)))
}

/// Whether an event type is the caller's to see: it has no flag, or one that the token carries.
pub(super) fn may_see(caller: &Caller, event_type: &EventType) -> bool {
    caller.app.is_none()
        || event_type.feature_flag.as_ref().is_none_or(|flag| caller.feature_flags.contains(flag))
}

/// Reads an event type; with an old one, as a patch of it.
pub(super) fn read_type(
    mut fields: Fields<'_>,
    name: String,
    old: Option<&EventType>,
    now: Timestamp,
) -> Result<EventType, Problem> {
    let description = fields.firm(
        "description",
        old.map(|old| old.description.clone()),
        old.is_some().then(String::new),
        checked(text::description),
    );
    let archived = fields.firm("archived", old.map(|old| old.archived), Some(false), flag);
    let deprecated = fields.firm("deprecated", old.map(|old| old.deprecated), Some(false), flag);
    let old_schemas = old.and_then(|old| old.schemas.clone());
    let old_flag = old.and_then(|old| old.feature_flag.clone());
    let read = EventType {
        name,
        description: description.unwrap_or_default(),
        archived: archived.unwrap_or_default(),
        deprecated: deprecated.unwrap_or_default(),
        schemas: fields.nullable_raw(&["schemas"], old_schemas, |name, raw| {
            let read = schemas::read(name, raw)?;
            SchemaCheck::usable(name, &read).map(|()| read)
        }),
        feature_flag: fields.nullable(&["featureFlag"], old_flag, checked(text::event_type_name)),
        created_at: old.map_or(now, |old| old.created_at),
        updated_at: now,
    };
    fields.finish().map(|()| read)
}
