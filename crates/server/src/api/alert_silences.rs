//! Silences: list, create, delete.
//!
//! Never: one without an end.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use domain::alert::route::Silence;
use domain::alert::title;
use domain::error::Invalid;
use domain::ids::{Kind, PublicId, key_floor};
use domain::limits::{ALERT_SILENCE_MAX, ALERT_SILENCES_MAX};
use domain::text;
use http::StatusCode;
use resilience::Timestamp;
use serde_json::Value;
use store::page::Direction;

use super::alert_access::{InForce, limit, operator};
use super::inputs::alert::AlertSilenceIn;
use super::inputs::query::Page;
use super::operation::{Operation, Token};
use super::own;
use super::views::alert::AlertSilenceOut;
use crate::http::auth::Auth;
use crate::http::extract::{Place, Received};
use crate::http::fields::{Fields, checked, text as read_text, time};
use crate::http::idempotency::Answer;
use crate::http::paging::{ListOut, Paging};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::spelling;
use crate::state::{Shared, random};

type Answered = Result<Response, Problem>;

pub(super) const LIST: Operation =
    Operation::new("v1.alert.silence.list", "Lists the silences that are not over.")
        .token(Token::Org)
        .query::<Page>()
        .gives::<ListOut<AlertSilenceOut>>(200);

/// `GET /alert/silence`
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    query: Query,
) -> Answered {
    operator(&shared, &caller)?;
    let all = InForce::read(&shared).await?.silences;
    let seal = shared.iterators.of("silences", caller.org, &[]);
    let paging = Paging::fixed(&query, Direction::Ascending, seal)?;
    let is_row = async |id: String| {
        let id = PublicId::parse(Kind::Silence, &id);
        Ok(all.iter().any(|silence| Some(silence.id) == id))
    };
    let page = paging.page(|text| PublicId::parse(Kind::Silence, text), is_row).await?;
    let rows = Paging::cut(&page, all, |silence| silence.id);
    let list = paging.frame(rows, |silence| silence.id.text(Kind::Silence));
    let list = list.map(|silence| AlertSilenceOut::new(&silence));
    Ok(Answer::json(StatusCode::OK, &list).into_response())
}

pub(super) const CREATE: Operation = Operation::new(
    "v1.alert.silence.create",
    "Tells nobody of a rule, an endpoint or anything, for a while.",
)
.token(Token::Org)
.takes::<AlertSilenceIn>()
.gives::<AlertSilenceOut>(201)
.or("limit_reached");

/// `POST /alert/silence`
pub(super) async fn create(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    received: Received,
) -> Answered {
    operator(&shared, &caller)?;
    let _edit = shared.edits.lock().await;
    let all = InForce::read(&shared).await?;
    let now = shared.now();
    let rules: Vec<_> = all.rules.iter().map(|rule| rule.name.clone()).collect();
    let id = PublicId::new(key_floor(now), random()?);
    let silence = silence_of(&received.body, id, &rules, now)?;
    limit(all.silences.len(), ALERT_SILENCES_MAX, "silences")?;
    shared.engine.stores().alerts.put_silence(silence.clone()).await?;
    shared.engine.alerts_changed();
    let shown = AlertSilenceOut::new(&silence);
    Ok(Answer::json(StatusCode::CREATED, &shown).into_response())
}

pub(super) const DELETE: Operation =
    Operation::new("v1.alert.silence.delete", "Ends a silence.").token(Token::Org).ends(204);

/// `DELETE /alert/silence/{silence}`
pub(super) async fn delete(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(silence): Place<String>,
) -> Answered {
    operator(&shared, &caller)?;
    let id = PublicId::parse(Kind::Silence, &silence).ok_or_else(own::missing)?;
    if !shared.engine.stores().alerts.delete_silence(id).await? {
        return Err(own::missing());
    }
    shared.engine.alerts_changed();
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Reads a silence that begins now.
pub(super) fn silence_of(
    body: &[u8],
    id: PublicId,
    rules: &[String],
    now: Timestamp,
) -> Result<Silence, Problem> {
    let mut fields = Fields::parse(body)?;
    let rule = fields.nullable(&["rule"], None, |name, value| {
        let rule = read_text(name, value)?;
        let is_known = rules.contains(&rule);
        is_known.then_some(rule).ok_or_else(|| Invalid::new(name, "must be the name of a rule"))
    });
    let endpoint = fields.nullable(&["endpointId"], None, endpoint_id);
    // A fault of one of them is told by its own name.
    let was_given = ["until", "duration"].into_iter().any(|name| fields.is_given(name));
    let until = fields.nullable(&["until"], None, time);
    let span = fields.nullable(&["duration"], None, |name, value| {
        spelling::duration(&read_text(name, value)?).map_err(|rule| Invalid::new(name, rule))
    });
    let comment = fields.nullable(&["comment"], None, checked(text::description));
    let (name, until) = match (until, span) {
        (Some(_), Some(_)) => {
            fields.fail("duration", "must not be given beside `until`");
            ("duration", None)
        }
        (None, None) => {
            if !was_given {
                fields.fail("duration", "must be given, or `until`");
            }
            ("duration", None)
        }
        (Some(until), None) => ("until", Some(until)),
        (None, Some(span)) => ("duration", Some(now.plus(span))),
    };
    if until.is_some_and(|until| until <= now) {
        fields.fail(name, "must end in the future");
    }
    if until.is_some_and(|until| until > now.plus(ALERT_SILENCE_MAX)) {
        let most = title::span(ALERT_SILENCE_MAX);
        fields.fail(name, format!("must end within {most}"));
    }
    let until = until.unwrap_or(now);
    let comment = comment.unwrap_or_default();
    fields.finish().map(|()| Silence { id, rule, endpoint, from: now, until, comment })
}

fn endpoint_id(name: &'static str, value: &Value) -> Result<PublicId, Invalid> {
    PublicId::parse(Kind::Endpoint, &read_text(name, value)?)
        .ok_or_else(|| Invalid::new(name, "must be the id of an endpoint"))
}
