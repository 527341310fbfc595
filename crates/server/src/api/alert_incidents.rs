//! Incidents of alerts: list, read, acknowledge.
//!
//! Never: end one; it is over when its rule is clear.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::alert::incident::{Incident, Phase};
use domain::ids::{Kind, PublicId};
use http::StatusCode;
use store::page::Direction;

use super::alert_access::{InForce, operator};
use super::inputs::query::Page;
use super::operation::{Operation, Token};
use super::own;
use super::views::alert::AlertIncidentOut;
use crate::http::auth::Auth;
use crate::http::extract::Place;
use crate::http::idempotency::Answer;
use crate::http::paging::{ListOut, Paging};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::state::Shared;

type Answered = Result<Response, Problem>;

pub(super) const LIST: Operation =
    Operation::new("v1.alert.incident.list", "Lists the incidents of alerts, newest first.")
        .token(Token::Org)
        .query::<Page>()
        .gives::<ListOut<AlertIncidentOut>>(200);

/// `GET /alert/incident`
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    query: Query,
) -> Answered {
    operator(&shared, &caller)?;
    let seal = shared.iterators.of("incidents", caller.org, &[]);
    let paging = Paging::fixed(&query, Direction::Descending, seal)?;
    let is_row = async |id: String| Ok(find(&shared, &id).await.is_ok());
    let page = paging.page(|text| PublicId::parse(Kind::Incident, text), is_row).await?;
    let rows = shared.engine.stores().alerts.incidents(page).await?;
    let list = paging.frame(rows, |incident| incident.id.text(Kind::Incident));
    let list = list.map(|incident| AlertIncidentOut::new(&incident));
    Ok(Answer::json(StatusCode::OK, &list).into_response())
}

pub(super) const READ: Operation =
    Operation::new("v1.alert.incident.get", "Shows an incident of alerts.")
        .token(Token::Org)
        .gives::<AlertIncidentOut>(200);

/// `GET /alert/incident/{incident}`
pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(incident): Place<String>,
) -> Answered {
    operator(&shared, &caller)?;
    let found = find(&shared, &incident).await?;
    Ok(Answer::json(StatusCode::OK, &AlertIncidentOut::new(&found)).into_response())
}

pub(super) const ACKNOWLEDGE: Operation = Operation::new(
    "v1.alert.incident.acknowledge",
    "Says that somebody looks at an incident; its routes are told.",
)
.token(Token::Org)
.gives::<AlertIncidentOut>(200)
.or("conflict");

/// `POST /alert/incident/{incident}/acknowledge`
pub(super) async fn acknowledge(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(incident): Place<String>,
) -> Answered {
    operator(&shared, &caller)?;
    let found = find(&shared, &incident).await?;
    let all = InForce::read(&shared).await?;
    let now = shared.now();
    let tellings = all.standing().acknowledged(&found, now);
    let noted = shared.engine.stores().alerts.acknowledge(found.id, now, tellings).await?;
    let found = find(&shared, &incident).await?;
    if !noted && found.phase != Phase::Firing {
        return Err(Problem::conflict("conflict", "The incident does not fire"));
    }
    Ok(Answer::json(StatusCode::OK, &AlertIncidentOut::new(&found)).into_response())
}

async fn find(shared: &Shared, text: &str) -> Result<Incident, Problem> {
    let id = PublicId::parse(Kind::Incident, text).ok_or_else(own::missing)?;
    shared.engine.stores().alerts.incident(id).await?.ok_or_else(own::missing)
}
