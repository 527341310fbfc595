//! Endpoints: create, list, read, replace, patch, delete.
//!
//! Every write waits until the lanes have seen it, so that what is posted after the answer goes by
//! the new rules.
//! Never: show or change a secret; `endpoint_secrets` does.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use domain::application::AppSnapshot;
use domain::endpoint::{Endpoint, EndpointSpec};
use domain::error::Invalid;
use domain::ids::{Kind, PublicId};
use http::StatusCode;
use store::directory::{EndpointChange, NewEndpoint};
use store::page::Direction;
use store::recall::Once;
use webhook::Secret;

use super::endpoint_change::change;
use super::endpoint_secrets as secrets;
use super::endpoint_spec::spec_of;
use super::event_types::may_see;
use super::inputs::endpoint::{EndpointIn, EndpointUpdate};
use super::inputs::query::OrderedPage;
use super::once::once;
use super::operation::Operation;
use super::own;
use super::reach::Reach;
use super::shapes::Patch;
use super::views::endpoint::EndpointOut;
use crate::http::auth::Auth;
use crate::http::extract::{Place, Received};
use crate::http::fields::Fields;
use crate::http::idempotency::{Answer, Done, Made, Ticket};
use crate::http::paging::{ListOut, Paging};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::tokens::Caller;
use crate::state::{Shared, random};

type Answered = Result<Response, Problem>;

pub(super) const LIST: Operation =
    Operation::new("v1.endpoint.list", "Lists the endpoints of an application.")
        .query::<OrderedPage>()
        .gives::<ListOut<EndpointOut>>(200);

/// `GET /app/{app}/endpoint`
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(app): Place<String>,
    query: Query,
) -> Answered {
    let app = own::app(&shared, &caller, &app).await?;
    let seal = shared.iterators.of("endpoints", caller.org, &[app.app.key.0.cast_unsigned()]);
    let paging = Paging::ordered(&query, Direction::Descending, seal)?;
    let is_row = async |id: String| Ok(own::endpoint_of(&app, &id).is_ok());
    let page = paging.page(|text| PublicId::parse(Kind::Endpoint, text), is_row).await?;
    let mut all = app.endpoints;
    all.sort_unstable_by_key(|endpoint| endpoint.id);
    let rows = Paging::cut(&page, all, |endpoint| endpoint.id);
    let list = paging.frame(rows, |endpoint| endpoint.id.text(Kind::Endpoint));
    let list = list.map(|endpoint| EndpointOut::shown(&endpoint, caller.org));
    Ok(Answer::json(StatusCode::OK, &list).into_response())
}

pub(super) const CREATE: Operation =
    Operation::new("v1.endpoint.create", "Creates an endpoint: a URL that messages are sent to.")
        .takes::<EndpointIn>()
        .once()
        .gives::<EndpointOut>(201)
        .or("conflict")
        .or("limit_reached");

/// `POST /app/{app}/endpoint`
pub(super) async fn create(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(app): Place<String>,
    received: Received,
) -> Answered {
    let mut fields = Fields::parse(&received.body)?;
    let secret = secrets::given(&mut fields, "secret");
    let spec = spec_of(fields, None, &shared.settings)?;
    let app = own::app(&shared, &caller, &app).await?;
    let (peyk, by, place) = (Arc::clone(&shared), Arc::clone(&caller), app.app.key.0);
    let work = async move |ticket: Ticket| {
        types_exist(&peyk, &by, &spec, None).await?;
        let done = |endpoint: &Arc<Endpoint>| {
            let shown = EndpointOut::from(&**endpoint);
            Done::json(StatusCode::CREATED, &shown, Made::Endpoint(endpoint.key))
        };
        let once = ticket.tells(move |endpoint| Some(done(endpoint)));
        let endpoint = made(&peyk, &app, (spec, secret), once).await?;
        Ok(done(&endpoint))
    };
    once(&shared, (&caller, &received), &[place.cast_unsigned()], work).await
}

pub(super) const READ: Operation =
    Operation::new("v1.endpoint.get", "Shows an endpoint.").gives::<EndpointOut>(200);

/// `GET /app/{app}/endpoint/{endpoint}`
pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Reach { caller, place: (app, endpoint) }: Reach,
) -> Answered {
    let found = own::endpoint(&shared, &caller, (&app, &endpoint)).await?;
    Ok(Answer::json(StatusCode::OK, &EndpointOut::shown(&found, caller.org)).into_response())
}

pub(super) const PUT: Operation =
    Operation::new("v1.endpoint.update", "Replaces an endpoint, or creates it.")
        .takes::<EndpointUpdate>()
        .gives::<EndpointOut>(200)
        .gives::<EndpointOut>(201)
        .or("conflict")
        .or("limit_reached");

/// `PUT /app/{app}/endpoint/{endpoint}`
pub(super) async fn put(
    State(shared): State<Arc<Shared>>,
    Reach { caller, place: (app, endpoint) }: Reach,
    received: Received,
) -> Answered {
    own::can_be_named("endpoint", &endpoint)?;
    let mut fields = Fields::parse(&received.body)?;
    let names_headers = fields.names("headers");
    let _edit = shared.edit().await?;
    let app = own::app(&shared, &caller, &app).await?;
    let old = own::endpoint_of(&app, &endpoint).ok();
    let secret = match &old {
        Some(old) => {
            secrets::unchanged(&mut fields, old);
            None
        }
        None => secrets::given(&mut fields, "secret"),
    };
    let mut spec = spec_of(fields, None, &shared.settings)?;
    types_exist(&shared, &caller, &spec, old.as_deref()).await?;
    let (status, endpoint) = match old {
        Some(old) => {
            // Headers have a PUT of their own; SDKs that replace an endpoint do not know them.
            if !names_headers {
                spec.headers.clone_from(&old.spec.headers);
            }
            (StatusCode::OK, changed(&shared, &old, spec).await?)
        }
        None => (StatusCode::CREATED, made(&shared, &app, (spec, secret), None).await?),
    };
    Ok(Answer::json(status, &EndpointOut::shown(&endpoint, caller.org)).into_response())
}

pub(super) const PATCH: Operation =
    Operation::new("v1.endpoint.patch", "Changes what is named of an endpoint.")
        .takes::<Patch<EndpointUpdate>>()
        .gives::<EndpointOut>(200)
        .or("conflict");

/// `PATCH /app/{app}/endpoint/{endpoint}`
pub(super) async fn patch(
    State(shared): State<Arc<Shared>>,
    Reach { caller, place: (app, endpoint) }: Reach,
    received: Received,
) -> Answered {
    let mut fields = Fields::parse(&received.body)?;
    let _edit = shared.edit().await?;
    let old = own::endpoint(&shared, &caller, (&app, &endpoint)).await?;
    secrets::unchanged(&mut fields, &old);
    let spec = spec_of(fields, Some(&old.spec), &shared.settings)?;
    types_exist(&shared, &caller, &spec, Some(&old)).await?;
    let endpoint = changed(&shared, &old, spec).await?;
    Ok(Answer::json(StatusCode::OK, &EndpointOut::shown(&endpoint, caller.org)).into_response())
}

pub(super) const DELETE: Operation =
    Operation::new("v1.endpoint.delete", "Deletes an endpoint; what waits for it is cancelled.")
        .ends(204);

/// `DELETE /app/{app}/endpoint/{endpoint}`
pub(super) async fn delete(
    State(shared): State<Arc<Shared>>,
    Reach { caller, place: (app, endpoint) }: Reach,
) -> Answered {
    let found = own::endpoint(&shared, &caller, (&app, &endpoint)).await?;
    shared.engine.stores().directory.delete_endpoint(found.key).await?;
    shared.engine.settled().await;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn made(
    shared: &Shared,
    app: &AppSnapshot,
    (spec, secret): (EndpointSpec, Option<Secret>),
    once: Once<Arc<Endpoint>>,
) -> Result<Arc<Endpoint>, Problem> {
    let most = shared.settings.bounds.endpoints_per_app;
    if app.endpoints.len() >= most {
        let detail = format!("An application has at most {most} endpoints");
        return Err(Problem::bad_request("limit_reached", detail));
    }
    let new = NewEndpoint {
        app: app.app.key,
        spec,
        secret: secrets::newest(secrets::or_made(shared, secret)?),
        random: random()?,
    };
    let endpoint = shared.engine.stores().directory.create_endpoint_once(new, once).await?;
    shared.engine.settled().await;
    Ok(endpoint)
}

async fn changed(
    shared: &Shared,
    old: &Endpoint,
    spec: EndpointSpec,
) -> Result<Arc<Endpoint>, Problem> {
    let spec = EndpointChange { spec: Some(spec), ..EndpointChange::default() };
    change(shared, old, spec, None).await
}

/// An endpoint may newly filter only on event types that exist, are not archived, and are the
/// caller's to see.
async fn types_exist(
    shared: &Shared,
    caller: &Caller,
    spec: &EndpointSpec,
    old: Option<&Endpoint>,
) -> Result<(), Problem> {
    let known = old.and_then(|old| old.spec.event_types.as_deref()).unwrap_or_default();
    let mut missing = Vec::new();
    for name in spec.event_types.iter().flatten().filter(|name| !known.contains(name)) {
        let directory = &shared.engine.stores().directory;
        let found = directory.event_type(caller.org, name.clone()).await?;
        if found.is_none_or(|found| found.archived || !may_see(caller, &found)) {
            missing.push(name.as_str());
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let rule = format!("The following event types don't exist: {}", missing.join(", "));
    Err(Invalid::new("eventTypes", rule).into())
}
