//! Attempts: of a message, to an endpoint, one of them.
//!
//! Never: change one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::ids::{AppKey, AttemptKey, EndpointKey, Kind, MessageKey, PublicId};
use http::StatusCode;
use store::history::AttemptRow;
use store::page::Direction;

use super::attempt_filter::attempt_filter;
use super::endpoints::Names;
use super::own;
use super::views::attempt::{AttemptOut, Belongs};
use crate::http::auth::Auth;
use crate::http::extract::Place;
use crate::http::idempotency::Answer;
use crate::http::paging::Paging;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::state::Shared;

type Answered = Result<Response, Problem>;

/// `GET /app/{app}/attempt/msg/{message}`
pub(super) async fn of_message(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, message)): Place<(String, String)>,
    query: Query,
) -> Answered {
    let app = own::app(&shared, &caller, &app).await?;
    let message = own::message_of(&shared, app.app.key, &message).await?;
    let endpoint = match query.get("endpoint_id") {
        None => None,
        Some(text) => Some(own::endpoint_of(&app, text)?.key),
    };
    let filter = attempt_filter(&query, endpoint)?;
    let (paging, page) = asked(&query)?;
    let history = &shared.engine.stores().history;
    let rows = history.attempts_of(message.key, filter, page).await?;
    let mut names = Owners::new(&shared, app.app.key);
    names.messages.insert(message.key, message.id);
    names.answer(&query, &paging, rows).await
}

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
    let (paging, page) = asked(&query)?;
    let history = &shared.engine.stores().history;
    let rows = history.attempts_to(endpoint.key, filter, page).await?;
    let mut names = Owners::new(&shared, app.app.key);
    names.endpoints.insert(endpoint.key, endpoint.id);
    names.answer(&query, &paging, rows).await
}

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
    let mut names = Owners::new(&shared, app.app.key);
    names.messages.insert(message.key, message.id);
    let shown = names.show(row, true).await?;
    Ok(Answer::json(StatusCode::OK, &shown).into_response())
}

fn asked(query: &Query) -> Result<(Paging, store::page::PageOf<AttemptKey>), Problem> {
    let far = query.get("after").is_some() && query.get("before").is_none();
    let paging = Paging::fixed(query, Direction::Descending)?.with_far_end(far);
    let page =
        paging.page(|text| PublicId::parse(Kind::Attempt, text).map(|id| AttemptKey(id.key())))?;
    Ok((paging, page))
}

/// The public ids of what attempts belong to, each looked up once.
pub(super) struct Owners<'a> {
    shared: &'a Shared,
    app: AppKey,
    pub(super) messages: HashMap<MessageKey, PublicId>,
    pub(super) endpoints: HashMap<EndpointKey, PublicId>,
}

impl<'a> Owners<'a> {
    /// Knows none yet.
    pub(super) fn new(shared: &'a Shared, app: AppKey) -> Self {
        Self { shared, app, messages: HashMap::new(), endpoints: HashMap::new() }
    }

    async fn answer(mut self, query: &Query, paging: &Paging, rows: Vec<AttemptRow>) -> Answered {
        let with_content = query.flag("with_content", true)?;
        let shown = self.show_all(rows, with_content).await?;
        let list = paging.frame(shown, |attempt| attempt.id.clone());
        Ok(Answer::json(StatusCode::OK, &list).into_response())
    }

    /// Attempts as the API shows them.
    pub(super) async fn show_all(
        &mut self,
        rows: Vec<AttemptRow>,
        with_content: bool,
    ) -> Result<Vec<AttemptOut>, Problem> {
        let mut shown = Vec::with_capacity(rows.len());
        for row in rows {
            shown.push(self.show(row, with_content).await?);
        }
        Ok(shown)
    }

    async fn show(&mut self, row: AttemptRow, with_content: bool) -> Result<AttemptOut, Problem> {
        let message = match self.messages.entry(row.message) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let found = own::message_by_key(self.shared, self.app, row.message).await?;
                *place.insert(found.ok_or_else(own::missing)?.id)
            }
        };
        let endpoint = match self.endpoints.entry(row.endpoint) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let directory = &self.shared.engine.stores().directory;
                let found = directory.endpoint_id(row.endpoint).await?;
                *place.insert(found.ok_or_else(own::missing)?)
            }
        };
        Ok(AttemptOut::new(row, Belongs { message, endpoint }, with_content))
    }
}
