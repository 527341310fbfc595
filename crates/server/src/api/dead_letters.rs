//! Dead letters: list, read, replay, delete; for an application and for the organisation.
//!
//! Replayed or deleted, a dead letter leaves the list; doing either twice is 409. An edited payload
//! goes out as a new message to this endpoint alone, since receivers rightly drop an id they know.
//! Never: touch an attempt.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use domain::application::AppSnapshot;
use domain::dead_letter::{DeadLetter, DeadReason};
use domain::edit::Edit;
use domain::error::Invalid;
use domain::ids::{EndpointKey, Kind, MessageKey, PublicId};
use domain::message::Message;
use domain::text;
use domain::trace::{Given, Trace};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::dead_letters::{DeadFilter, Edited, Replayed};
use store::history::AttemptFilter;
use store::inbox::{Accepted, NewMessage};
use store::page::{Direction, PageOf};

use super::difference::edit;
use super::inputs::message::DeadLetterReplayIn;
use super::inputs::query::{DeadLetters, DeadLettersOfApp};
use super::once::once;
use super::operation::{Operation, Token};
use super::own;
use super::resend::payload_gone;
use super::shapes::MessageId;
use super::traced::Traced;
use super::views::attempt::AttemptOut;
use super::views::dead_letter::{DeadLetterOut, NO_RUN, iterator_of, keys_of, place_of, run_of};
use crate::http::auth::Auth;
use crate::http::extract::{Place, Received};
use crate::http::fields::Fields;
use crate::http::idempotency::{Answer, Done, Made, Ticket};
use crate::http::paging::{ListOut, Paging};
use crate::http::problem::Problem;
use crate::http::query::{Query, refuse};
use crate::http::tokens::Caller;
use crate::spelling::one_of;
use crate::state::{Shared, random};

type Answered = Result<Response, Problem>;

/// How often an edited replay is tried anew while its application changes.
const ROUNDS_MAX: usize = 16;

/// The message that is sent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DeadLetterReplayOut")]
#[serde(rename_all = "camelCase")]
struct ReplayOut {
    #[schemars(with = "MessageId")]
    msg_id: String,
}

#[derive(Debug, Default, Deserialize)]
struct ReplayIn<'a> {
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

pub(super) const LIST_ORG: Operation =
    Operation::new("v1.dead-letter.list-all", "Lists what was given up in the whole organisation.")
        .token(Token::Org)
        .query::<DeadLetters>()
        .gives::<ListOut<DeadLetterOut<'_>>>(200);

/// `GET /dead-letter`
pub(super) async fn list_org(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    query: Query,
) -> Answered {
    caller.org_only()?;
    listed(&shared, &caller, &query, filter_of(&query)?).await
}

pub(super) const LIST: Operation =
    Operation::new("v1.dead-letter.list", "Lists what was given up in an application.")
        .query::<DeadLettersOfApp>()
        .gives::<ListOut<DeadLetterOut<'_>>>(200);

/// `GET /app/{app}/dead-letter`
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(app): Place<String>,
    query: Query,
) -> Answered {
    let app = own::app(&shared, &caller, &app).await?;
    let mut filter = filter_of(&query)?;
    filter.app = Some(app.app.key);
    if let Some(text) = query.get("endpoint_id")? {
        let endpoint = own::endpoint_of(&app, text)?.key;
        if filter.run.is_some() && filter.endpoint != Some(endpoint) {
            return Err(refuse("run_id", "must be of that endpoint"));
        }
        filter.endpoint = Some(endpoint);
    }
    listed(&shared, &caller, &query, filter).await
}

async fn listed(shared: &Shared, caller: &Caller, query: &Query, filter: DeadFilter) -> Answered {
    let within: Vec<_> = filter.app.iter().map(|app| app.0.cast_unsigned()).collect();
    let seal = shared.iterators.of("dead letters", caller.org, &within);
    let paging = Paging::fixed(query, Direction::Descending, seal)?;
    // Their places are not their ids, so nobody can put one together.
    let page = paging.page(place_of, async |_| Ok(false)).await?;
    let stores = shared.engine.stores();
    let found = stores.dead_letters.list(caller.org, filter, page).await?;
    let installation = stores.directory.installation();
    let list = paging.look(found, |letter| iterator_of(letter.place), iterator_of);
    let list = list.map(|letter| DeadLetterOut::new(letter, caller.org, &installation));
    Ok(Answer::json(StatusCode::OK, &list).into_response())
}

fn filter_of(query: &Query) -> Result<DeadFilter, Problem> {
    let is_one = |name: &str, text: &str| match DeadReason::from_name(text) {
        Some(_) => Ok(()),
        None => Err(Invalid::new(name, one_of(&DeadReason::ALL.map(DeadReason::name)))),
    };
    let reasons = query.list("reason", is_one)?;
    let run = query.get("run_id")?.map(|text| run_of(text).ok_or_else(|| refuse("run_id", NO_RUN)));
    let run = run.transpose()?;
    Ok(DeadFilter {
        app: None,
        endpoint: run.map(|(endpoint, _)| endpoint),
        run: run.map(|(_, since)| since),
        reasons: reasons.iter().filter_map(|name| DeadReason::from_name(name)).collect(),
        event_types: query.list("event_types", text::event_type_name)?,
        before: query.time("before")?,
        after: query.time("after")?,
    })
}

pub(super) const READ: Operation =
    Operation::new("v1.dead-letter.get", "Shows a dead letter with its payload and attempts.")
        .gives::<DeadLetterOut<'_>>(200);

/// `GET /app/{app}/dead-letter/{letter}`
pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, letter)): Place<(String, String)>,
) -> Answered {
    let found = Found::at(&shared, &caller, &app, &letter).await?;
    let dead = found.letter(&shared).await?.ok_or_else(own::missing)?;
    let stores = shared.engine.stores();
    let filter = AttemptFilter { endpoint: Some(found.endpoint), ..AttemptFilter::default() };
    let page = PageOf {
        beyond: None,
        direction: Direction::Ascending,
        limit: domain::limits::PAGE_ROWS_MAX,
    };
    let rows = stores.history.attempts_of(found.message.key, filter, page).await?.rows;
    let attempts = rows.into_iter().map(|row| AttemptOut::new(row, caller.org, true)).collect();
    let shown = DeadLetterOut::new(dead, caller.org, &stores.directory.installation());
    let edit = own::edit_of(&shared, &found.message).await?;
    let shown = shown.whole(&found.message, attempts, edit);
    Ok(Answer::json(StatusCode::OK, &shown).into_response())
}

pub(super) const DELETE: Operation =
    Operation::new("v1.dead-letter.delete", "Deletes a dead letter.").ends(204).or("not_dead");

/// `DELETE /app/{app}/dead-letter/{letter}`
pub(super) async fn delete(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, letter)): Place<(String, String)>,
) -> Answered {
    let found = Found::at(&shared, &caller, &app, &letter).await?;
    let dead_letters = &shared.engine.stores().dead_letters;
    if dead_letters.delete(found.message.key, found.endpoint).await? {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(not_dead())
    }
}

pub(super) const REPLAY: Operation = Operation::new(
    "v1.dead-letter.replay",
    "Puts it back to be sent, as it was or with another payload.",
)
.may_take::<DeadLetterReplayIn>()
.once()
.gives::<ReplayOut>(202)
.or("endpoint_deleted")
.or("missing_payload")
.or("not_dead");

/// `POST /app/{app}/dead-letter/{letter}/replay`
pub(super) async fn replay(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, letter)): Place<(String, String)>,
    received: Received,
) -> Answered {
    let edited = edited_payload(&received.body, shared.settings.payload_bytes_max)?;
    let given = traced(&shared).given(&received);
    let found = Found::at(&shared, &caller, &app, &letter).await?;
    let (peyk, by) = (Arc::clone(&shared), caller.subject.clone());
    let place = [found.message.key.0, found.endpoint.0.cast_unsigned()];
    let work = async move |ticket: Ticket| {
        let (key, id) = match edited {
            None => found.replay(&peyk, &ticket).await?,
            Some(payload) => {
                let edit = edit(&by, &found.message.spec.payload, &payload);
                found.replay_edited(&peyk, (payload, edit, given), &ticket).await?
            }
        };
        peyk.engine.let_one(found.endpoint, key);
        Ok(replayed_as(id))
    };
    once(&shared, (&caller, &received), &place, work).await
}

fn traced(shared: &Shared) -> Traced<'_> {
    Traced::begin(shared, "/api/v1/app/{app}/dead-letter/{letter}/replay")
}

fn replayed_as(id: PublicId) -> Done {
    let shown = ReplayOut { msg_id: id.text(Kind::Message) };
    Done::json(StatusCode::ACCEPTED, &shown, Made::Nothing)
}

/// The payload to send instead, byte for byte. The body may be left out.
fn edited_payload(body: &[u8], bytes_max: usize) -> Result<Option<bytes::Bytes>, Problem> {
    if body.trim_ascii().is_empty() {
        return Ok(None);
    }
    let Ok(ReplayIn { payload }) = serde_json::from_slice(body) else {
        return Err(Fields::parse(body).err().unwrap_or_else(|| {
            Problem::field(&["body", "payload"], "must be given once", Invalid::KIND)
        }));
    };
    let Some(payload) = payload else { return Ok(None) };
    if !payload.get().starts_with('{') {
        return Err(Invalid::new("payload", "must be an object").into());
    }
    if payload.get().len() > bytes_max {
        return Err(Problem::payload_too_large(bytes_max));
    }
    domain::payload::check("payload", payload.get().as_bytes())?;
    Ok(Some(bytes::Bytes::copy_from_slice(payload.get().as_bytes())))
}

/// A pair of message and endpoint that is, or was, a dead letter of an application.
struct Found {
    app: AppSnapshot,
    message: Message,
    endpoint: EndpointKey,
}

impl Found {
    /// Looks the message up in the application, so that no id of another one's leads anywhere.
    async fn at(
        shared: &Shared,
        caller: &Caller,
        app: &str,
        letter: &str,
    ) -> Result<Self, Problem> {
        let app = own::app(shared, caller, app).await?;
        let (message, endpoint) = keys_of(letter).ok_or_else(own::missing)?;
        let message = own::message_by_key(shared, app.app.key, message).await?;
        let found = Self { app, message, endpoint };
        let is_known = found.app.endpoints.iter().any(|it| it.key == endpoint)
            || found.letter(shared).await?.is_some();
        if is_known { Ok(found) } else { Err(own::missing()) }
    }

    async fn letter(&self, shared: &Shared) -> Result<Option<DeadLetter>, Problem> {
        let dead_letters = &shared.engine.stores().dead_letters;
        Ok(dead_letters.dead_letter(self.message.key, self.endpoint).await?)
    }

    async fn replay(
        &self,
        shared: &Shared,
        ticket: &Ticket,
    ) -> Result<(MessageKey, PublicId), Problem> {
        let dead_letters = &shared.engine.stores().dead_letters;
        let id = self.message.id;
        let once = ticket.tells(move |made| (*made == Replayed::Pending).then(|| replayed_as(id)));
        match dead_letters.replay_once((self.message.key, self.endpoint), once).await? {
            Replayed::Pending => Ok((self.message.key, self.message.id)),
            Replayed::NotDead => Err(not_dead()),
            Replayed::PayloadGone => Err(payload_gone()),
            Replayed::NoEndpoint => Err(no_endpoint()),
        }
    }

    async fn replay_edited(
        &self,
        shared: &Shared,
        (payload, edit, given): (bytes::Bytes, Edit, Option<Arc<Given>>),
        ticket: &Ticket,
    ) -> Result<(MessageKey, PublicId), Problem> {
        let traced = traced(shared);
        let stores = shared.engine.stores();
        let mut spec = self.message.spec.clone();
        spec.payload = payload;
        spec.event_id = None;
        spec.trace = given;
        shared.schemas.check(&*stores.directory, self.app.app.org, &spec).await?;
        for _ in 0..ROUNDS_MAX {
            let app = stores.directory.app_by_key(self.app.app.key).await?;
            let app = app.ok_or_else(own::missing)?;
            let target = app.endpoints.iter().find(|it| it.key == self.endpoint);
            let message = NewMessage {
                app: app.app.key,
                app_version: app.app.version,
                spec: spec.clone(),
                random: random()?,
                targets: vec![Arc::clone(target.ok_or_else(no_endpoint)?)],
                key: None,
                edited_from: Some(self.message.id),
            };
            let edited = Edited { message, edit: edit.clone() };
            let once = ticket.tells(|made| match made {
                Some(Accepted::New { id, .. }) => Some(replayed_as(*id)),
                _ => None,
            });
            let letter = (self.message.key, self.endpoint);
            match stores.dead_letters.replay_edited_once(letter, edited, once).await? {
                Some(Accepted::New { key, id, .. }) => {
                    let first = Trace::of(&self.message.id, self.message.spec.trace.as_deref());
                    let link = Some((first.id(), first.accepted()));
                    traced.made(StatusCode::ACCEPTED, &id, &spec, link);
                    return Ok((key, id));
                }
                Some(Accepted::NoApplication) => return Err(own::missing()),
                None => return Err(not_dead()),
                // The application changed in between: once more, from fresh rows.
                Some(_) => {}
            }
        }
        Err(Problem::overloaded())
    }
}

fn not_dead() -> Problem {
    let detail = "This delivery is not dead any more: it was replayed, delivered or deleted";
    Problem::conflict("not_dead", detail)
}

fn no_endpoint() -> Problem {
    Problem::conflict("endpoint_deleted", "The endpoint was deleted; nothing can be sent to it")
}
