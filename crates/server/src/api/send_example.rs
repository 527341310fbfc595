//! An example of an event type, sent to one endpoint whatever that filters.
//!
//! It is a message like any other: stored, signed, retried.
//! Never: an example that is made up; without one in the schema there is none.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use domain::message::{ContentType, MessageSpec};
use domain::text;
use engine::ingest::Post;
use http::StatusCode;
use serde_json::value::RawValue;
use store::directory::IdOrUid;
use store::inbox::Accepted;

use super::inputs::endpoint::EventExampleIn;
use super::inputs::query::WithoutContent;
use super::messages;
use super::operation::{Operation, Token};
use super::own::{self, Names};
use super::resend::endpoint_disabled;
use super::traced::Traced;
use super::views::message::MessageOut;
use crate::http::auth::Auth;
use crate::http::extract::{Place, Received};
use crate::http::fields::{Fields, checked, whole};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::tokens::Caller;
use crate::state::{Shared, random_for_id};

/// The event type that every endpoint understands.
const PING: &str = "svix.ping";
const PING_PAYLOAD: &[u8] = br#"{"success": true}"#;
/// The version of the schema that examples are taken from.
const VERSION: &str = "1";

pub(super) const SEND: Operation = Operation::new(
    "v1.endpoint.send-example",
    "Sends an example of an event type to it, whatever it filters.",
)
.token(Token::Org)
.query::<WithoutContent>()
.takes::<EventExampleIn>()
.once()
.gives::<MessageOut<'_>>(200)
.or("endpoint_disabled")
.or("invalid_scheme");

/// `POST /app/{app}/endpoint/{endpoint}/send-example`
pub(super) async fn send(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, endpoint)): Place<Names>,
    query: Query,
    received: Received,
) -> Result<Response, Problem> {
    caller.org_only()?;
    let traced = Traced::begin(&shared, "/api/v1/app/{app}/endpoint/{endpoint}/send-example");
    let with_content = query.flag("with_content", false)?;
    let mut fields = Fields::parse(&received.body)?;
    let event_type = fields.firm("eventType", None, None, checked(text::event_type_name));
    let index = fields.firm("exampleIndex", None, Some(0), whole::<usize>(0..=10_000));
    fields.finish()?;
    let (event_type, index) = (event_type.unwrap_or_default(), index.unwrap_or_default());
    let app = own::app(&shared, &caller, &app).await?;
    let to = own::endpoint_of(&app, &endpoint)?;
    if to.spec.disabled.is_some() {
        return Err(endpoint_disabled());
    }
    let place = [app.app.key.0.cast_unsigned(), to.key.0.cast_unsigned()];
    let key = received.ingest_key(&caller, &place)?;
    let payload = payload(&shared, &caller, &event_type, index).await?;
    let spec = MessageSpec {
        event_type,
        event_id: None,
        channels: Vec::new(),
        tags: Vec::new(),
        payload,
        content_type: ContentType::Json,
        retention_hours: None,
        deliver_at: None,
        trace: traced.given(&received),
    };
    let post = Post {
        org: caller.org,
        app: IdOrUid::Id(app.app.id),
        spec: spec.clone(),
        only: Some(to.key),
        key,
        random: random_for_id()?,
    };
    match shared.engine.ingest(post).await? {
        Accepted::NoApplication => Err(own::missing()),
        accepted => {
            traced.end(StatusCode::OK, &accepted, &spec);
            messages::answer((StatusCode::OK, accepted), &spec, None, with_content)
        }
    }
}

/// What is sent, byte for byte as the schema has it.
async fn payload(
    shared: &Shared,
    caller: &Caller,
    event_type: &str,
    index: usize,
) -> Result<Bytes, Problem> {
    if event_type == PING {
        return Ok(Bytes::from_static(PING_PAYLOAD));
    }
    let directory = &shared.engine.stores().directory;
    let found = directory.event_type(caller.org, event_type.to_owned()).await?;
    let schemas = found.and_then(|found| found.schemas);
    let example = schemas.as_deref().and_then(|schemas| example(schemas, index));
    let Some(example) = example else {
        let detail =
            format!("The schema of version {VERSION} has no such example, or is not there");
        return Err(Problem::bad_request("invalid_scheme", detail));
    };
    let most = shared.settings.payload_bytes_max;
    if example.get().len() > most {
        return Err(Problem::payload_too_large(most));
    }
    domain::payload::check("exampleIndex", example.get().as_bytes())?;
    Ok(Bytes::copy_from_slice(example.get().as_bytes()))
}

/// One of the examples of a schema, if it can be a payload.
fn example(schemas: &str, index: usize) -> Option<&RawValue> {
    let versions: BTreeMap<String, &RawValue> = serde_json::from_str(schemas).ok()?;
    let schema: BTreeMap<String, &RawValue> =
        serde_json::from_str(versions.get(VERSION)?.get()).ok()?;
    let examples: Vec<&RawValue> = serde_json::from_str(schema.get("examples")?.get()).ok()?;
    examples.get(index).copied().filter(|example| example.get().starts_with('{'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_keeps_its_spelling() {
        let schemas = r#"{"1": {"examples": [{"n": 1.00, "a": "\u00e9"}, {"b":2}, 3]}, "2": {}}"#;
        let found = |index| example(schemas, index).map(RawValue::get);
        assert_eq!(found(0), Some(r#"{"n": 1.00, "a": "\u00e9"}"#));
        assert_eq!(found(1), Some(r#"{"b":2}"#));
        assert_eq!((found(2), found(3)), (None, None), "no object, not there");
        for none in [r#"{"2":{"examples":[{}]}}"#, r#"{"1":true}"#, r#"{"1":{"examples":{}}}"#] {
            assert!(example(none, 0).is_none(), "{none}");
        }
    }
}
