//! What is the caller's own: applications, endpoints and messages, found from the organisation
//! down.
//!
//! In: a caller and the texts of a path. Out: the thing, or 404.
//! Never: find by a public id alone; another organisation's id leads nowhere.

use std::sync::Arc;

use domain::application::AppSnapshot;
use domain::endpoint::Endpoint;
use domain::ids::{AppKey, Kind, MessageKey, PublicId};
use domain::message::Message;
use store::directory::IdOrUid;
use store::history::MessageFilter;
use store::page::{Direction, PageOf};

use super::views::edit::EditOut;
use crate::http::problem::Problem;
use crate::http::tokens::Caller;
use crate::state::Shared;

/// The texts of application and endpoint in a path.
pub(super) type Names = (String, String);

/// A text of a path, which is an id or the caller's own.
pub(super) fn id_or_uid(kind: Kind, text: &str) -> IdOrUid {
    PublicId::parse(kind, text).map_or_else(|| IdOrUid::Uid(text.to_owned()), IdOrUid::Id)
}

/// Refuses what no thing can be called, in a path that would make one.
pub(super) fn can_be_named(part: &str, text: &str) -> Result<(), Problem> {
    domain::text::uid(part, text, None)
        .map_err(|fault| Problem::field(&["path", part], fault.rule, fault.kind))
}

/// The 404 of everything that is not there.
pub(super) fn missing() -> Problem {
    Problem::not_found("Entity not found")
}

/// An application with its endpoints, as committed.
pub(super) async fn app(
    shared: &Shared,
    caller: &Caller,
    text: &str,
) -> Result<AppSnapshot, Problem> {
    let which = id_or_uid(Kind::Application, text);
    let found = shared.engine.stores().directory.app(caller.org, which).await?;
    found.filter(|found| caller.app.is_none_or(|own| own == found.app.id)).ok_or_else(missing)
}

/// An endpoint of an application.
pub(super) fn endpoint_of(app: &AppSnapshot, text: &str) -> Result<Arc<Endpoint>, Problem> {
    let which = id_or_uid(Kind::Endpoint, text);
    let is_it = |endpoint: &&Arc<Endpoint>| match &which {
        IdOrUid::Id(id) => endpoint.id == *id,
        IdOrUid::Uid(uid) => endpoint.spec.uid.as_ref() == Some(uid),
    };
    app.endpoints.iter().find(is_it).cloned().ok_or_else(missing)
}

/// An endpoint of the caller's.
pub(super) async fn endpoint(
    shared: &Shared,
    caller: &Caller,
    (app_text, endpoint_text): (&str, &str),
) -> Result<Arc<Endpoint>, Problem> {
    endpoint_of(&app(shared, caller, app_text).await?, endpoint_text)
}

/// A message of an application.
pub(super) async fn message_of(
    shared: &Shared,
    app: AppKey,
    text: &str,
) -> Result<Arc<Message>, Problem> {
    let which = id_or_uid(Kind::Message, text);
    shared.engine.stores().history.message(app, which).await?.ok_or_else(missing)
}

/// A message of an application by inner key.
pub(super) async fn message_by_key(
    shared: &Shared,
    app: AppKey,
    key: MessageKey,
) -> Result<Message, Problem> {
    let page = PageOf {
        beyond: key.0.checked_add(1).map(MessageKey),
        direction: Direction::Descending,
        limit: 1,
    };
    let history = &shared.engine.stores().history;
    let found = history.messages(app, MessageFilter::default(), page, true).await?;
    found.rows.into_iter().find(|message| message.key == key).ok_or_else(missing)
}

/// The edit that made a message; of most nothing is looked up.
pub(super) async fn edit_of(
    shared: &Shared,
    message: &Message,
) -> Result<Option<EditOut>, Problem> {
    if message.edited_from.is_none() {
        return Ok(None);
    }
    let edit = shared.engine.stores().dead_letters.edit(message.key).await?;
    Ok(edit.map(|edit| EditOut::new(edit, message.accepted_at)))
}
