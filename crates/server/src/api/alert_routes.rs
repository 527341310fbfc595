//! Routes of alerts: list, read, replace, patch, delete, try.
//!
//! A route of the settings is there without being set; one that is set under its name replaces it,
//! until it is deleted.
//! Never: show a credential whole, or a URL beyond its origin.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use domain::alert::evaluate::{Settlement, Telling};
use domain::alert::notice::{Notice, Occasion};
use domain::alert::route::Route;
use domain::ids::{Kind, PublicId, key_floor};
use domain::limits::ALERT_ROUTES_MAX;
use domain::notice::MANAGEMENT;
use engine::alert::parts::APP_UID;
use engine::alert::ways;
use http::StatusCode;
use resilience::Timestamp;
use store::directory::IdOrUid;
use store::history::AttemptFilter;
use store::page::{Direction, PageOf};

use super::alert_access::{InForce, limit, named, operator};
use super::alert_spec::route_of;
use super::inputs::alert::AlertRouteIn;
use super::inputs::query::Page;
use super::operation::{Operation, Token};
use super::own;
use super::shapes::Patch;
use super::views::alert::{AlertRouteOut, AlertTestOut, Delivery};
use crate::alert::wording;
use crate::http::auth::Auth;
use crate::http::extract::{Place, Received};
use crate::http::fields::Fields;
use crate::http::idempotency::Answer;
use crate::http::paging::{ListOut, Paging};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::state::{Shared, random};

type Answered = Result<Response, Problem>;

pub(super) const LIST: Operation =
    Operation::new("v1.alert.route.list", "Lists the routes of alerts, those of the settings too.")
        .token(Token::Org)
        .query::<Page>()
        .gives::<ListOut<AlertRouteOut>>(200);

/// `GET /alert/route`
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    query: Query,
) -> Answered {
    operator(&shared, &caller)?;
    let all = InForce::read(&shared).await?;
    let seal = shared.iterators.of("routes", caller.org, &[]);
    let paging = Paging::fixed(&query, Direction::Ascending, seal)?;
    let is_row = async |name: String| Ok(all.routes.iter().any(|route| route.name == name));
    let page = paging.page(|name| Some(name.to_owned()), is_row).await?;
    let rows = Paging::cut(&page, all.routes.clone(), |route| route.name.clone());
    let mut deliveries = deliveries(&shared, &rows).await?;
    let list = paging.frame(rows, |route| route.name.clone());
    let list = list.map(|route| {
        let is_own = all.own_routes.contains(&route.name);
        AlertRouteOut::new(&route, is_own, deliveries.remove(&route.name))
    });
    Ok(Answer::json(StatusCode::OK, &list).into_response())
}

pub(super) const READ: Operation = Operation::new(
    "v1.alert.route.get",
    "Shows a route of alerts, with what became of the last notification on it.",
)
.token(Token::Org)
.gives::<AlertRouteOut>(200);

/// `GET /alert/route/{route}`
pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(name): Place<String>,
) -> Answered {
    operator(&shared, &caller)?;
    let all = InForce::read(&shared).await?;
    let route = find(&all, &name)?;
    let delivery = deliveries(&shared, std::slice::from_ref(route)).await?.remove(&name);
    let shown = AlertRouteOut::new(route, all.own_routes.contains(&name), delivery);
    Ok(Answer::json(StatusCode::OK, &shown).into_response())
}

pub(super) const PUT: Operation =
    Operation::new("v1.alert.route.update", "Sets a route of alerts, or replaces it.")
        .token(Token::Org)
        .takes::<AlertRouteIn>()
        .gives::<AlertRouteOut>(200)
        .gives::<AlertRouteOut>(201)
        .or("limit_reached");

/// `PUT /alert/route/{route}`
pub(super) async fn put(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(name): Place<String>,
    received: Received,
) -> Answered {
    operator(&shared, &caller)?;
    named("route", &name)?;
    let _edit = shared.edits.lock().await;
    let all = InForce::read(&shared).await?;
    let route = route_of(Fields::parse(&received.body)?, &name, None, means(&shared))?;
    if !all.own_routes.contains(&name) {
        limit(all.own_routes.len(), ALERT_ROUTES_MAX, "routes")?;
    }
    let status = if find(&all, &name).is_ok() { StatusCode::OK } else { StatusCode::CREATED };
    kept(&shared, &all, route, status).await
}

pub(super) const PATCH: Operation =
    Operation::new("v1.alert.route.patch", "Changes what is named of a route of alerts.")
        .token(Token::Org)
        .takes::<Patch<AlertRouteIn>>()
        .gives::<AlertRouteOut>(200)
        .or("limit_reached");

/// `PATCH /alert/route/{route}`
pub(super) async fn patch(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(name): Place<String>,
    received: Received,
) -> Answered {
    operator(&shared, &caller)?;
    let _edit = shared.edits.lock().await;
    let all = InForce::read(&shared).await?;
    let old = find(&all, &name)?;
    let route = route_of(Fields::parse(&received.body)?, &name, Some(old), means(&shared))?;
    if !all.own_routes.contains(&name) {
        limit(all.own_routes.len(), ALERT_ROUTES_MAX, "routes")?;
    }
    kept(&shared, &all, route, StatusCode::OK).await
}

pub(super) const DELETE: Operation = Operation::new(
    "v1.alert.route.delete",
    "Deletes a route of alerts that was set, and what waits for it; one of the settings is in \
     force again.",
)
.token(Token::Org)
.ends(204)
.or("conflict");

/// `DELETE /alert/route/{route}`
pub(super) async fn delete(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(name): Place<String>,
) -> Answered {
    operator(&shared, &caller)?;
    let _edit = shared.edits.lock().await;
    let all = InForce::read(&shared).await?;
    if !all.own_routes.contains(&name) {
        return Err(own::missing());
    }
    let back = shared.settings.alerts.routes.iter().find(|route| route.name == name);
    let user = all.rules.iter().find(|rule| rule.routes.iter().flatten().any(|it| *it == name));
    if let Some(rule) = user.filter(|_| back.is_none()) {
        let detail = format!("The rule {} names this route: change it first", rule.name);
        return Err(Problem::conflict("conflict", detail));
    }
    shared.engine.stores().alerts.delete_route(name).await?;
    if let Some(back) = back {
        set_anew(&shared, &all, back).await?;
    }
    shared.engine.alerts_changed();
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) const TEST: Operation = Operation::new(
    "v1.alert.route.test",
    "Sends a trial on a route of alerts; what became of it is seen in the route.",
)
.token(Token::Org)
.gives::<AlertTestOut>(202);

/// `POST /alert/route/{route}/test`
pub(super) async fn test(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(name): Place<String>,
) -> Answered {
    operator(&shared, &caller)?;
    let all = InForce::read(&shared).await?;
    let route = find(&all, &name)?.name.clone();
    let now = shared.now();
    let id = PublicId::new(key_floor(now), random()?);
    let telling = |occasion| {
        let notice = Notice::test((occasion, id), (now, &all.standing().installation));
        Telling { route: route.clone(), notice }
    };
    let tellings = vec![telling(Occasion::Test), telling(Occasion::TestOver)];
    let settlement = Settlement { tellings, ..Settlement::default() };
    shared.engine.stores().alerts.settle(settlement, Timestamp::EPOCH).await?;
    Ok(Answer::json(StatusCode::ACCEPTED, &AlertTestOut::new(id)).into_response())
}

async fn kept(shared: &Shared, all: &InForce, route: Route, status: StatusCode) -> Answered {
    shared.engine.stores().alerts.put_route(route.clone()).await?;
    set_anew(shared, all, &route).await?;
    shared.engine.alerts_changed();
    let delivery = deliveries(shared, std::slice::from_ref(&route)).await?.remove(&route.name);
    Ok(Answer::json(status, &AlertRouteOut::new(&route, true, delivery)).into_response())
}

/// What waits for a route goes where it leads now, though it answered 410 before.
async fn set_anew(shared: &Shared, all: &InForce, route: &Route) -> Result<(), Problem> {
    let rules: Vec<_> = all.rules.iter().map(|rule| rule.name.clone()).collect();
    ways::set_anew(shared.engine.stores(), (route, &wording(None)), &rules).await?;
    Ok(())
}

/// Whether URLs must be `https`, and whether there is a mail server.
fn means(shared: &Shared) -> (bool, bool) {
    (shared.settings.https_only, shared.settings.smtp.is_some())
}

fn find<'a>(all: &'a InForce, name: &str) -> Result<&'a Route, Problem> {
    all.routes.iter().find(|route| route.name == name).ok_or_else(own::missing)
}

/// What became of the last message to the endpoint that each of these routes is, by name.
async fn deliveries(
    shared: &Shared,
    routes: &[Route],
) -> Result<HashMap<String, Delivery>, Problem> {
    let stores = shared.engine.stores();
    let app = stores.directory.app(MANAGEMENT, IdOrUid::Uid(APP_UID.to_owned())).await?;
    let mut found = HashMap::new();
    for to in app.iter().flat_map(|app| &app.endpoints) {
        let is_it = |route: &&Route| to.spec.uid.as_deref() == Some(route.name.as_str());
        let Some(route) = routes.iter().find(is_it) else { continue };
        let page = PageOf { beyond: None, direction: Direction::Descending, limit: 1 };
        let last = stores.history.attempts_to(to.key, AttemptFilter::default(), page).await?;
        let waiting = stores.history.waiting(to.key, 1_000).await?;
        let last = last.rows.into_iter().next().map(|row| row.attempt);
        let (id, is_off) = (to.id.text(Kind::Endpoint), to.spec.disabled.is_some());
        found.insert(route.name.clone(), Delivery::new(id, is_off, waiting, last));
    }
    Ok(found)
}
