//! Messages: post, list, read, delete the content.
//!
//! A post is answered once the message and all its deliveries are durable. What repeats an earlier
//! post under the same idempotency key gets the answer of the first.
//! Never: write a payload anew; it is echoed as the bytes that came.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use domain::application::ApplicationSpec;
use domain::error::Invalid;
use domain::idempotency::IngestKey;
use domain::ids::{Kind, MessageKey, PublicId};
use domain::message::MessageSpec;
use domain::text;
use engine::ingest::Post;
use http::StatusCode;
use serde_json::value::RawValue;
use store::StoreError;
use store::directory::IdOrUid;
use store::history::MessageFilter;
use store::inbox::Accepted;
use store::page::Direction;

use super::applications;
use super::inputs::message::MessageIn as MessageBody;
use super::inputs::query::{Messages, WithContent};
use super::message_in::{self, MessageIn};
use super::operation::{Operation, Token};
use super::own;
use super::traced::Traced;
use super::views::message::{MessageOut, PayloadOut};
use crate::http::auth::Auth;
use crate::http::extract::{Escaped, Place, Received};
use crate::http::fields::Fields;
use crate::http::idempotency::{Answer, body_differs};
use crate::http::paging::{ListOut, Paging};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::tokens::Caller;
use crate::state::{Shared, random_for_id};

type Answered = Result<Response, Problem>;

pub(super) const CREATE: Operation = Operation::new(
    "v1.message.create",
    "Accepts a message; 202 once it and its deliveries are on disk.",
)
.token(Token::Org)
.query::<WithContent>()
.takes::<MessageBody>()
.once()
.gives::<MessageOut<'_>>(202)
.or("conflict");

/// `POST /app/{app}/msg`
pub(super) async fn create(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(app): Place<String>,
    query: Query,
    Escaped(received): Escaped,
) -> Answered {
    caller.org_only()?;
    let traced = Traced::begin(&shared, "/api/v1/app/{app}/msg");
    let with_content = query.flag("with_content", true)?;
    let which = own::id_or_uid(Kind::Application, &app);
    let key = ingest_key(&shared, &caller, &which, &received).await?;
    let MessageIn { mut spec, payload, application } =
        message_in::read(&received.body, shared.settings.payload_bytes_max)?;
    spec.trace = traced.given(&received);
    let most = shared.settings.bounds.channels_per_message;
    if spec.channels.len() > most {
        return Err(Invalid::new("channels", format!("must hold 1 to {most} channels")).into());
    }
    application.map_or(Ok(()), check_application)?;
    // What is sent in place of the payload is no JSON.
    if payload.is_some()
        && let Err(refusal) = obeys_schema(&shared, &caller, &spec).await
    {
        // A repeat gets the first one's answer, though its like may not be posted any more.
        let earlier = match key {
            Some(key) => shared.engine.stores().inbox.used(key).await?,
            None => None,
        };
        let accepted = earlier.ok_or(refusal)?;
        return answer((StatusCode::ACCEPTED, accepted), &spec, payload, with_content);
    }
    let post = Post {
        org: caller.org,
        app: which,
        spec: spec.clone(),
        only: None,
        key,
        random: random_for_id()?,
    };
    let again = application.map(|application| (application, post.clone()));
    let mut accepted = shared.engine.ingest(post).await?;
    if let (Accepted::NoApplication, Some((application, mut post))) = (&accepted, again) {
        create_application(&shared, &caller, &post.app, application).await?;
        post.key = ingest_key(&shared, &caller, &post.app, &received).await?;
        accepted = shared.engine.ingest(post).await?;
    }
    if accepted == Accepted::DeliverAtOutside {
        let rule = message_in::deliver_at_rule(&spec, shared.now());
        return Err(Invalid::new("deliverAt", rule).into());
    }
    traced.end(StatusCode::ACCEPTED, &accepted, &spec);
    answer((StatusCode::ACCEPTED, accepted), &spec, payload, with_content)
}

async fn obeys_schema(shared: &Shared, caller: &Caller, spec: &MessageSpec) -> Result<(), Problem> {
    shared.schemas.check(&*shared.engine.stores().directory, caller.org, spec).await
}

/// The post's key, scoped by the application that the path leads to now; without a key nothing is
/// looked up.
async fn ingest_key(
    shared: &Shared,
    caller: &Caller,
    which: &IdOrUid,
    received: &Received,
) -> Result<Option<IngestKey>, Problem> {
    if !received.has_idempotency_key() {
        return Ok(None);
    }
    let known = shared.engine.app(caller.org, which).await?;
    let place = known.map(|known| known.app.key.0.cast_unsigned());
    received.ingest_key(caller, place.as_slice())
}

/// The answer to a post, with this status if it was accepted.
pub(super) fn answer(
    (status, accepted): (StatusCode, Accepted),
    spec: &MessageSpec,
    payload: Option<&RawValue>,
    with_content: bool,
) -> Answered {
    let answer = match &accepted {
        Accepted::New { id, accepted_at, .. } => {
            let shown = match payload {
                _ if !with_content => PayloadOut::LeftOut,
                Some(raw) => PayloadOut::Object(raw),
                None => PayloadOut::of(&spec.payload),
            };
            MessageOut::new(*id, *accepted_at, spec, shown)
        }
        Accepted::Repeated(message) => MessageOut::stored(message, with_content),
        Accepted::BodyDiffers => return Err(body_differs()),
        Accepted::DeliverAtOutside => {
            let rule = "must be at most 24 hours from now, and before the payload goes";
            return Err(Invalid::new("deliverAt", rule).into());
        }
        Accepted::EventIdTaken => {
            let detail = "A message with this eventId exists already";
            return Err(Problem::conflict("conflict", detail));
        }
        Accepted::NoApplication => return Err(Problem::not_found("Application not found")),
        // The engine matches again by itself; this is left when it gave up.
        Accepted::Stale => return Err(Problem::overloaded()),
    };
    Ok(Answer::json(status, &answer).into_response())
}

/// Whether an application can be what a request brought along; it is told so though there is one
/// already, and so none is created.
pub(super) fn check_application(application: &RawValue) -> Result<(), Problem> {
    read_application(application).map(drop)
}

fn read_application(application: &RawValue) -> Result<ApplicationSpec, Problem> {
    applications::spec_of(Fields::parse_within("application", application)?, None)
}

/// Creates the application that a request brought along; its uid must be the one in the path.
pub(super) async fn create_application(
    shared: &Shared,
    caller: &Caller,
    which: &IdOrUid,
    application: &RawValue,
) -> Result<(), Problem> {
    let refuse = |kind: &'static str, rule: &str| {
        Err(Invalid::new("uid", rule).within("application").of_kind(kind).into())
    };
    let spec = read_application(application)?;
    match (&spec.uid, which) {
        (None, _) => return refuse("application_uid_missing", "is required"),
        (Some(uid), IdOrUid::Uid(named)) if uid == named => {}
        _ => return refuse("application_uid_mismatch", "must be the uid in the path"),
    }
    match applications::made(shared, caller, spec, None).await {
        // Somebody else was faster; theirs will do.
        Ok(_) | Err(StoreError::Conflict(_)) => Ok(()),
        Err(fault) => Err(fault.into()),
    }
}

pub(super) const LIST: Operation =
    Operation::new("v1.message.list", "Lists the messages of an application.")
        .query::<Messages>()
        .gives::<ListOut<MessageOut<'_>>>(200);

/// `GET /app/{app}/msg`
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(app): Place<String>,
    query: Query,
) -> Answered {
    let with_content = query.flag("with_content", true)?;
    let filter = filter_of(&query)?;
    let app = own::app(&shared, &caller, &app).await?.app.key;
    let seal = shared.iterators.of("messages", caller.org, &[app.0.cast_unsigned()]);
    let paging = Paging::fixed(&query, Direction::Descending, seal)?;
    let paging = paging.with_far_end(far_end(&filter));
    let history = &shared.engine.stores().history;
    let is_row = async |id: String| {
        Ok(history.message(app, own::id_or_uid(Kind::Message, &id)).await?.is_some())
    };
    let key_of = |text: &str| PublicId::parse(Kind::Message, text).map(|id| MessageKey(id.key()));
    let page = paging.page(key_of, is_row).await?;
    let found = history.messages(app, filter, page, with_content).await?;
    let bare = |key: MessageKey| PublicId::new(key.0, [0; 12]).text(Kind::Message);
    let list = paging.look(found, |message| message.id.text(Kind::Message), bare);
    let list = list.view(|message| MessageOut::stored(message, with_content));
    Ok(Answer::json(StatusCode::OK, &list).into_response())
}

/// With only a lower bound the earliest page after it is meant.
pub(super) const fn far_end(filter: &MessageFilter) -> bool {
    filter.after.is_some() && filter.before.is_none()
}

/// Reads which messages are asked for.
pub(super) fn filter_of(query: &Query) -> Result<MessageFilter, Problem> {
    Ok(MessageFilter {
        channel: query.text("channel", text::channel)?,
        tag: query.text("tag", text::tag)?,
        event_types: query.list("event_types", text::event_type_name)?,
        before: query.time("before")?,
        after: query.time("after")?,
    })
}

pub(super) const READ: Operation = Operation::new("v1.message.get", "Shows a message.")
    .query::<WithContent>()
    .gives::<MessageOut<'_>>(200);

/// `GET /app/{app}/msg/{message}`
pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, message)): Place<(String, String)>,
    query: Query,
) -> Answered {
    let with_content = query.flag("with_content", true)?;
    let app = own::app(&shared, &caller, &app).await?;
    let message = own::message_of(&shared, app.app.key, &message).await?;
    let edit = own::edit_of(&shared, &message).await?;
    let shown = MessageOut::stored(&message, with_content).with_edit(edit);
    Ok(Answer::json(StatusCode::OK, &shown).into_response())
}

pub(super) const EXPUNGE: Operation =
    Operation::new("v1.message.expunge-content", "Deletes the payload of a message.")
        .token(Token::Org)
        .ends(204);

/// `DELETE /app/{app}/msg/{message}/content`
pub(super) async fn expunge(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, message)): Place<(String, String)>,
) -> Answered {
    caller.org_only()?;
    let app = own::app(&shared, &caller, &app).await?;
    let message = own::message_of(&shared, app.app.key, &message).await?;
    shared.engine.stores().history.expunge(message.key).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
