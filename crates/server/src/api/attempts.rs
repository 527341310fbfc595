//! Attempts: of a message, to an endpoint, one of them.
//!
//! Never: change one but for the body of the answer, which may be expunged.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use domain::ids::{AttemptKey, EndpointKey, Kind, PublicId};
use http::StatusCode;
use store::history::{AttemptFilter, AttemptRow, History};
use store::page::{Direction, Looked, PageOf};

use super::attempt_filter::attempt_filter;
use super::inputs::query::{Attempts, AttemptsOfMessage};
use super::operation::{Operation, Token};
use super::own::{self, Names};
use super::views::attempt::AttemptOut;
use crate::http::auth::Auth;
use crate::http::extract::Place;
use crate::http::idempotency::Answer;
use crate::http::iterators::Seal;
use crate::http::paging::{ListOut, Paging};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::state::Shared;

type Answered = Result<Response, Problem>;

pub(super) const OF_MESSAGE: Operation =
    Operation::new("v1.message-attempt.list-by-msg", "Lists what was tried for a message.")
        .query::<AttemptsOfMessage>()
        .gives::<ListOut<AttemptOut>>(200);
/// The same under an older path.
pub(super) const OF_MESSAGE_OLD: Operation = OF_MESSAGE
    .deprecated("v1.message-attempt.list-by-msg-deprecated", "The same under an older path.");

/// `GET /app/{app}/attempt/msg/{message}`
pub(super) async fn of_message(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, message)): Place<(String, String)>,
    query: Query,
) -> Answered {
    let app = own::app(&shared, &caller, &app).await?;
    let message = own::message_of(&shared, app.app.key, &message).await?;
    let endpoint = match query.get("endpoint_id")? {
        None => None,
        Some(text) => Some(own::endpoint_of(&app, text)?.key),
    };
    let filter = attempt_filter(&query, endpoint)?;
    let list = shared.iterators.of("attempts of", caller.org, &[message.key.0]);
    let history = &shared.engine.stores().history;
    let is_row = async |id: PublicId| Ok(history.attempt(message.key, id).await?.is_some());
    let (paging, page) = asked(&query, list, is_row).await?;
    let found = history.attempts_of(message.key, filter, page).await?;
    answer((&query, caller.org), &paging, found)
}

pub(super) const OF_DELIVERY: Operation = Operation::new(
    "v1.message-attempt.list-by-endpoint-deprecated",
    "Lists what was tried for a message and an endpoint.",
)
.query::<Attempts>()
.gives::<ListOut<AttemptOut>>(200);

/// `GET /app/{app}/msg/{message}/endpoint/{endpoint}/attempt`
pub(super) async fn of_delivery(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, message, endpoint)): Place<(String, String, String)>,
    query: Query,
) -> Answered {
    let app = own::app(&shared, &caller, &app).await?;
    let endpoint = own::endpoint_of(&app, &endpoint)?;
    let message = own::message_of(&shared, app.app.key, &message).await?;
    let filter = attempt_filter(&query, Some(endpoint.key))?;
    let within = [message.key.0, endpoint.key.0.cast_unsigned()];
    let list = shared.iterators.of("attempts of", caller.org, &within);
    let history = &shared.engine.stores().history;
    let is_row = async |id: PublicId| {
        let found = history.attempt(message.key, id).await?;
        Ok(found.is_some_and(|found| found.endpoint == endpoint.key))
    };
    let (paging, page) = asked(&query, list, is_row).await?;
    let found = history.attempts_of(message.key, filter, page).await?;
    answer((&query, caller.org), &paging, found)
}

pub(super) const TO_ENDPOINT: Operation =
    Operation::new("v1.message-attempt.list-by-endpoint", "Lists what was sent to an endpoint.")
        .query::<Attempts>()
        .gives::<ListOut<AttemptOut>>(200);

/// `GET /app/{app}/attempt/endpoint/{endpoint}`
pub(super) async fn to_endpoint(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, endpoint)): Place<Names>,
    query: Query,
) -> Answered {
    let app = own::app(&shared, &caller, &app).await?;
    let endpoint = own::endpoint_of(&app, &endpoint)?;
    let filter = attempt_filter(&query, None)?;
    let list = shared.iterators.of("attempts to", caller.org, &[endpoint.key.0.cast_unsigned()]);
    let history = &shared.engine.stores().history;
    let is_row = async |id: PublicId| is_sent_to(&**history, endpoint.key, id).await;
    let (paging, page) = asked(&query, list, is_row).await?;
    let found = history.attempts_to(endpoint.key, filter, page).await?;
    answer((&query, caller.org), &paging, found)
}

pub(super) const READ: Operation =
    Operation::new("v1.message-attempt.get", "Shows an attempt and the answer it got.")
        .gives::<AttemptOut>(200);

/// `GET /app/{app}/msg/{message}/attempt/{attempt}`
pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, message, attempt)): Place<(String, String, String)>,
) -> Answered {
    let app = own::app(&shared, &caller, &app).await?;
    let message = own::message_of(&shared, app.app.key, &message).await?;
    let id = PublicId::parse(Kind::Attempt, &attempt).ok_or_else(own::missing)?;
    let history = &shared.engine.stores().history;
    let row = history.attempt(message.key, id).await?.ok_or_else(own::missing)?;
    Ok(Answer::json(StatusCode::OK, &AttemptOut::new(row, caller.org, true)).into_response())
}

pub(super) const EXPUNGE: Operation = Operation::new(
    "v1.message-attempt.expunge-content",
    "Deletes the body of the answer that an attempt got.",
)
.token(Token::Org)
.ends(204);

/// `DELETE /app/{app}/msg/{message}/attempt/{attempt}/content`
pub(super) async fn expunge(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, message, attempt)): Place<(String, String, String)>,
) -> Answered {
    caller.org_only()?;
    let app = own::app(&shared, &caller, &app).await?;
    let message = own::message_of(&shared, app.app.key, &message).await?;
    let id = PublicId::parse(Kind::Attempt, &attempt).ok_or_else(own::missing)?;
    shared.engine.stores().history.expunge_attempt(message.key, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Reads which page is asked for; `is_row` says whether an attempt stands in the list.
async fn asked<F>(
    query: &Query,
    seal: Seal,
    is_row: impl FnOnce(PublicId) -> F,
) -> Result<(Paging, PageOf<AttemptKey>), Problem>
where
    F: Future<Output = Result<bool, Problem>> + Send,
{
    let far = query.get("after")?.is_some() && query.get("before")?.is_none();
    let paging = Paging::fixed(query, Direction::Descending, seal)?.with_far_end(far);
    let id_of = |text: &str| PublicId::parse(Kind::Attempt, text);
    let is_row = |text: String| {
        let found = id_of(&text).map(is_row);
        async {
            match found {
                Some(found) => found.await,
                None => Ok(false),
            }
        }
    };
    let page = paging.page(|text| id_of(text).map(|id| AttemptKey(id.key())), is_row).await?;
    Ok((paging, page))
}

/// Whether this attempt was one to this endpoint.
async fn is_sent_to(
    history: &dyn History,
    endpoint: EndpointKey,
    id: PublicId,
) -> Result<bool, Problem> {
    let beyond = id.key().checked_add(1).map(AttemptKey);
    let page = PageOf { beyond, direction: Direction::Descending, limit: 1 };
    let found = history.attempts_to(endpoint, AttemptFilter::default(), page).await?;
    Ok(found.rows.first().is_some_and(|row| row.id == id))
}

fn answer(
    (query, org): (&Query, PublicId),
    paging: &Paging,
    found: Looked<AttemptRow, AttemptKey>,
) -> Answered {
    let with_content = query.flag("with_content", true)?;
    let bare = |key: AttemptKey| PublicId::new(key.0, [0; 12]).text(Kind::Attempt);
    let list = paging.look(found, |row| row.id.text(Kind::Attempt), bare);
    let list = list.map(|row| AttemptOut::new(row, org, with_content));
    Ok(Answer::json(StatusCode::OK, &list).into_response())
}
