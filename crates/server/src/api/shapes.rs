//! The small shapes that requests and answers are made of, as JSON Schemas: ids, names, times.
//!
//! The types hold nothing: they stand for a text in a description, and their bounds are those that
//! the readers of the domain go by.
//! Never: read or check a value.

use std::borrow::Cow;

use domain::dead_letter::DeadReason as Reason;
use domain::ids::Kind;
use domain::limits::{
    ALERT_NAME_CHARS_MAX, DESCRIPTION_BYTES_MAX, EMAIL_BYTES_MAX, EVENT_TYPE_CHARS_MAX,
    IDEMPOTENCY_KEY_BYTES_MAX, NAME_CHARS_MAX, TAG_CHARS_MAX, UID_CHARS_MAX, URL_BYTES_MAX,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

/// What stands in paths: letters, digits, `-`, `_` and `.`, neither `.` nor `..`.
const PATH_TOKEN: &str = r"^(\.{3,}|\.*[a-zA-Z0-9_-][a-zA-Z0-9_.-]*)$";
/// No text holds what a store may refuse.
const PLAIN: &str = r"^[^\x00-\x08]*$";
/// Addresses without quotes: atoms, `@`, names of hosts.
const EMAIL: &str = concat!(
    r"^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-](\.?[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]){0,31}@",
    r"[A-Za-z0-9](-?[A-Za-z0-9]){0,30}(\.[A-Za-z0-9](-?[A-Za-z0-9]){0,30}){0,8}$",
);
/// A part of an id behind its prefix.
const BASE62: &str = "[0-9A-Za-z]{27}";

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident = $schema:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) enum $name {}

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    )*};
}

shapes! {
    /// The id of an application.
    AppId = id(Kind::Application);
    /// The id of an endpoint.
    EndpointId = id(Kind::Endpoint);
    /// The id of a message.
    MessageId = id(Kind::Message);
    /// The id of an attempt.
    AttemptId = id(Kind::Attempt);
    /// The id of a dead letter.
    DeadLetterId = id(Kind::DeadLetter);
    /// The id of a run of refusals.
    RunId = id(Kind::Run);
    /// The id of a background task.
    TaskId = id(Kind::Task);
    /// The id of an incident of alerts.
    IncidentId = id(Kind::Incident);
    /// The id of a silence.
    SilenceId = id(Kind::Silence);
    /// The name of a rule or a route of alerts.
    AlertName = token(ALERT_NAME_CHARS_MAX, "dead_letters");
    /// The caller's own id of a thing, or an id of that in a path.
    Uid = token(UID_CHARS_MAX, "order-4711");
    /// The name of an event type.
    EventTypeName = token(EVENT_TYPE_CHARS_MAX, "invoice.paid");
    /// A channel.
    Channel = json_schema!({
        "type": "string", "minLength": 1, "maxLength": domain::limits::CHANNEL_CHARS_MAX,
        "pattern": "^[a-zA-Z0-9_.-]+$", "examples": ["project-1"]
    });
    /// A tag of a message.
    Tag = plain(1, TAG_CHARS_MAX, "vip");
    /// A name for people.
    Name = plain(1, NAME_CHARS_MAX, "Example Ltd.");
    /// A longer text for people.
    Description = plain(0, DESCRIPTION_BYTES_MAX, "Tells the billing system of invoices");
    /// Where deliveries go.
    Url = json_schema!({
        "type": "string", "format": "uri", "maxLength": URL_BYTES_MAX,
        "examples": ["https://example.com/webhooks"]
    });
    /// An e-mail address without a name or quotes.
    Email = json_schema!({
        "type": "string", "format": "email", "maxLength": EMAIL_BYTES_MAX, "pattern": EMAIL,
        "examples": ["ops@example.com"]
    });
    /// A point in time, RFC 3339.
    Time = json_schema!({
        "type": "string", "format": "date-time", "examples": ["2030-01-31T10:00:00Z"]
    });
    /// A span of time: a whole number with a unit.
    Span = json_schema!({
        "type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$", "examples": ["10s"]
    });
    /// A whole number from 1 that is a rate a second.
    PerSecond = json_schema!({
        "type": "integer", "minimum": 1, "maximum": u16::MAX, "examples": [100]
    });
    /// Texts by name.
    Metadata = json_schema!({
        "type": "object", "additionalProperties": {"type": "string"},
        "examples": [{"plan": "gold"}]
    });
    /// A JSON object of any shape.
    Object = json_schema!({"type": "object", "examples": [{"invoice": "in_1", "amount": 4200}]});
    /// A text without spaces that names a request.
    IdempotencyKey = json_schema!({
        "type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_BYTES_MAX,
        "pattern": "^[!-~]+$"
    });
    /// A signing secret as it is given: symmetric, or an ed25519 key pair.
    SigningSecret = json_schema!({
        "type": "string", "pattern": "^(whsec_[A-Za-z0-9+/]{32,100}={0,2}|whsk_[A-Za-z0-9+/]{86}==)$",
        "examples": ["whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"]
    });
    /// A signing secret as it is shown: symmetric, or a public key.
    SigningKey = json_schema!({
        "type": "string", "pattern": "^(whsec|whpk)_[A-Za-z0-9+/]+={0,2}$",
        "examples": ["whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"]
    });
    /// How a delivery or an attempt stands.
    Status = json_schema!({
        "type": "integer", "enum": [0, 1, 2, 3, 4],
        "description": "0 success, 1 pending, 2 fail, 3 sending, 4 canceled"
    });
    /// The same in words.
    StatusText = named(&["success", "pending", "fail", "sending", "canceled"]);
    /// A class of status codes; 0 for no answer.
    StatusClass = json_schema!({"type": "integer", "enum": [0, 100, 200, 300, 400, 500]});
    /// Why a delivery was given up.
    DeadReason = named(&Reason::ALL.map(Reason::name));
    /// What a page leads on or back with.
    Iterator = json_schema!({"type": "string"});
    /// A text as it is.
    Text = json_schema!({"type": "string"});
}

/// One of these.
pub(crate) fn named(names: &[&str]) -> Schema {
    json_schema!({"type": "string", "enum": names})
}

/// The names and `null`, for a field that may have none.
pub(crate) fn or_null(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json!(name)).chain([Value::Null]).collect()
}

fn id(kind: Kind) -> Schema {
    let prefix = kind.prefix();
    json_schema!({
        "type": "string", "pattern": format!("^{prefix}{BASE62}$"),
        "examples": [format!("{prefix}1srOrx2ZWZBpBUvZwXKQmoEYga2")]
    })
}

fn token(chars_max: usize, example: &str) -> Schema {
    json_schema!({
        "type": "string", "minLength": 1, "maxLength": chars_max, "pattern": PATH_TOKEN,
        "examples": [example]
    })
}

fn plain(chars_min: usize, chars_max: usize, example: &str) -> Schema {
    json_schema!({
        "type": "string", "minLength": chars_min, "maxLength": chars_max, "pattern": PLAIN,
        "examples": [example]
    })
}

/// What is read of `T` as a change of something: nothing is required, and what has a default cannot
/// be cleared.
pub(crate) struct Patch<T>(std::marker::PhantomData<T>);

impl<T: JsonSchema> JsonSchema for Patch<T> {
    fn schema_name() -> Cow<'static, str> {
        let name = T::schema_name();
        format!("{}Patch", name.trim_end_matches("Update").trim_end_matches("In")).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        schema.remove("required");
        if let Some(Value::Object(fields)) = schema.get_mut("properties") {
            for field in fields.values_mut().filter_map(Value::as_object_mut) {
                if field.remove("default").is_some() {
                    forbid_null(field);
                }
            }
        }
        schema
    }
}

fn forbid_null(field: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = field.get("type") else { return };
    if let Some(only) = types.iter().find(|name| *name != "null").cloned() {
        field.insert("type".to_owned(), only);
    }
}
