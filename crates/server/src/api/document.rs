//! The OpenAPI document, made of the table of routes and of what stands beside each handler.
//!
//! In: routes with their operations. Out: OpenAPI 3.1 as JSON. Schemas are derived from the types
//! that answers are written from and bodies are described by; errors from the pages about them.
//! Never: name an operation, or a bound, of its own.

use std::collections::{BTreeMap, BTreeSet};

use domain::notice::NAMES;
use http::StatusCode;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::methods::Served;
use super::operation::{Answer, Body, Operation, Token};
use super::problem_pages::{codes, status_of};
use super::shapes::{
    AlertName, AttemptId, DeadLetterId, EventTypeName, IdempotencyKey, IncidentId, SilenceId,
    TaskId, Text, Uid,
};
use super::views::notice::NoticeOut;
use crate::http::problem::{Coded, FieldFaults};

const ABOUT: &str = "A webhook delivery engine. Requests below `/api/v1`, health and this document \
    apart, carry `authorization: Bearer` and a token, which `peyk token` makes. Times are RFC 3339 \
    in UTC; unknown fields and parameters are ignored. Bounds are those of the system; by `limits.*` \
    an operator may draw some closer: endpoints of an application (400 `limit_reached`), event types \
    and channels of an endpoint, channels of a message (422), the size of a payload (413), requests a \
    second of a token (429, none unless set). 429 and 503 say in `retry-after` after how many seconds \
    to ask again. What is not described here is answered by \
    404 `not_found`, another method by 405 `method_not_allowed`, a head that is no well-formed HTTP \
    by 400, 408, 414 or 431: every error has a JSON body.";

/// Resources in the order of the document: the part of an operation's name, title, description.
pub(super) const TAGS: [(&str, &str, &str); 13] = [
    ("application", "Application", "One customer of yours; each has endpoints and messages."),
    ("endpoint", "Endpoint", "A URL that messages of an application are sent to."),
    ("event-type", "Event Type", "What kinds of messages there are."),
    ("message", "Message", "An event, which every endpoint that wants it gets."),
    ("message-attempt", "Message Attempt", "What was tried, and how deliveries stand."),
    ("dead-letter", "Dead Letter", "Deliveries that were given up."),
    ("background-task", "Background Task", "Work over many deliveries."),
    (
        "operational-webhook",
        "Operational Webhook",
        "Endpoints that are told what happens in the organisation.",
    ),
    (
        "alert",
        "Alert",
        "Rules, routes, silences and incidents of alerts, for the operator of the installation.",
    ),
    ("authentication", "Authentication", "Tokens of applications."),
    ("statistics", "Statistics", "What the organisation has."),
    ("health", "Health", "The server itself."),
    ("document", "Document", "What is served, and what errors mean."),
];

/// Makes a schema of a type that is no component.
type Inline = fn(&mut SchemaGenerator) -> Schema;

/// The variable parts of paths.
const PLACES: [(&str, Inline, &str); 12] = [
    ("app", Uid::json_schema, "The id of an application, or its `uid`."),
    ("endpoint", Uid::json_schema, "The id of an endpoint, or its `uid`."),
    ("message", Uid::json_schema, "The id of a message, or its `eventId`."),
    ("attempt", AttemptId::json_schema, "The id of an attempt."),
    ("letter", DeadLetterId::json_schema, "The id of a dead letter."),
    ("task", TaskId::json_schema, "The id of a background task."),
    ("rule", AlertName::json_schema, "The name of a rule of alerts."),
    ("route", AlertName::json_schema, "The name of a route of alerts."),
    ("silence", SilenceId::json_schema, "The id of a silence."),
    ("incident", IncidentId::json_schema, "The id of an incident."),
    ("name", EventTypeName::json_schema, "The name of an event type."),
    ("code", Text::json_schema, "The code of an error."),
];

/// The document.
pub(super) fn document(table: &[Served]) -> Value {
    let mut parts = Parts::new();
    let mut paths = Map::new();
    for Served { path, operations } in table {
        let described = operations
            .iter()
            .map(|(method, is)| (method.to_lowercase(), parts.of(path, method, is)));
        let item: Map<_, _> = described.collect();
        paths.insert((*path).to_owned(), Value::Object(item));
    }
    let tags = TAGS.map(|(_, name, about)| json!({"name": name, "description": about}));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Peyk", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT,
            "license": {"name": "Apache 2.0", "identifier": env!("CARGO_PKG_LICENSE")}
        },
        "servers": [{"url": "/", "description": "This server."}],
        "tags": tags,
        "security": [{"bearer": []}],
        "paths": paths,
        "webhooks": parts.webhooks(),
        "components": parts.components(),
    })
}

/// What operations refer to. Bodies and answers differ in what a field that may be left out means.
struct Parts {
    inputs: SchemaGenerator,
    outputs: SchemaGenerator,
}

impl Parts {
    fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        let outputs = settings.clone().for_serialize().into_generator();
        Self { inputs: settings.for_deserialize().into_generator(), outputs }
    }

    /// One operation.
    fn of(&mut self, path: &str, method: &str, is: &Operation) -> Value {
        let mut made = json!({
            "operationId": is.id,
            "summary": is.summary.trim_end_matches('.'),
            "description": described(is),
            "tags": [tag(is)],
            "responses": self.responses(path, method, is),
        });
        let parameters = self.parameters(path, is);
        if !parameters.is_empty() {
            made["parameters"] = Value::Array(parameters);
        }
        if let Some(Body { schema, required }) = is.body {
            let schema = schema(&mut self.inputs);
            made["requestBody"] =
                json!({"required": required, "content": {"application/json": {"schema": schema}}});
        }
        if is.token == Token::None {
            made["security"] = json!([]);
        }
        if is.deprecated {
            made["deprecated"] = json!(true);
        }
        made
    }

    /// What the server sends of itself.
    fn webhooks(&mut self) -> Value {
        let notice = self.outputs.subschema_for::<NoticeOut<'_>>();
        let told = |(name, about): (&str, &str)| {
            let schema = json!({"allOf": [notice, {"properties": {"type": {"const": name}}}]});
            let is = json!({
                "operationId": name,
                "summary": about.trim_end_matches('.'),
                "tags": ["Operational Webhook"],
                "security": [],
                "requestBody": {
                    "required": true, "content": {"application/json": {"schema": schema}}
                },
                "responses": {"2XX": {"description": "It arrived; else it is sent again."}},
            });
            (name.to_owned(), json!({"post": is}))
        };
        Value::Object(NAMES.into_iter().map(told).collect())
    }

    fn parameters(&mut self, path: &str, is: &Operation) -> Vec<Value> {
        let places = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let mut all: Vec<_> =
            places.map(|name| json!({"$ref": format!("#/components/parameters/{name}")})).collect();
        if let Some(query) = is.query {
            let schema = query(&mut self.inputs);
            let fields = schema.get("properties").and_then(Value::as_object);
            all.extend(fields.into_iter().flatten().map(|(name, field)| parameter(name, field)));
        }
        if is.once {
            all.push(json!({"$ref": "#/components/parameters/idempotency-key"}));
        }
        all
    }

    fn responses(&mut self, path: &str, method: &str, is: &Operation) -> Value {
        let mut all = Map::new();
        for Answer { status, body } in is.answers() {
            let mut answer = json!({"description": reason(status)});
            if let Some((media, schema)) = body {
                let schema = schema(&mut self.outputs);
                answer["content"] = json!({media: {"schema": schema}});
            }
            all.insert(status.to_string(), answer);
        }
        let statuses = is.statuses(path, method).into_iter();
        let mut refused: BTreeMap<_, _> = statuses.map(|status| (status, usual(status))).collect();
        for code in is.refusals() {
            let status = status_of(code).unwrap_or_default();
            refused.entry(status).or_default().insert(code.to_owned());
        }
        for (status, codes) in refused {
            let answer = if codes == usual(status) {
                json!({"$ref": format!("#/components/responses/{}", component(status))})
            } else {
                refusal(status, &self.coded(&codes))
            };
            all.insert(status.to_string(), answer);
        }
        Value::Object(all)
    }

    /// The shape of errors with these codes.
    fn coded(&mut self, codes: &BTreeSet<String>) -> Value {
        let coded = self.outputs.subschema_for::<Coded>();
        json!({"allOf": [coded, {"properties": {"code": {"enum": codes}}}]})
    }

    fn components(mut self) -> Value {
        let statuses = [400, 401, 403, 404, 408, 413, 422, 429, 500, 503];
        let responses = statuses.map(|status| {
            let schema = match status {
                422 => json!(self.outputs.subschema_for::<FieldFaults>()),
                _ => self.coded(&usual(status)),
            };
            (component(status), refusal(status, &schema))
        });
        let key = json!({
            "name": "idempotency-key", "in": "header", "schema": self.schema(IdempotencyKey::json_schema),
            "description": "Requests with the same key and body are carried out once."
        });
        let places = PLACES.map(|(name, schema, about)| {
            // What an example names need not be there.
            let mut schema = self.schema(schema);
            schema.remove("examples");
            let place = json!({
                "name": name, "in": "path", "required": true, "schema": schema,
                "description": about
            });
            (name.to_owned(), place)
        });
        let parameters: Map<_, _> =
            places.into_iter().chain([("idempotency-key".to_owned(), key)]).collect();
        let mut schemas = self.inputs.take_definitions(true);
        schemas.extend(self.outputs.take_definitions(true));
        json!({
            "schemas": schemas,
            "parameters": parameters,
            "responses": Map::from_iter(responses),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
            },
        })
    }

    fn schema(&mut self, of: Inline) -> Schema {
        of(&mut self.inputs)
    }
}

/// The codes that any operation with this status may answer with.
fn usual(status: u16) -> BTreeSet<String> {
    match status {
        400 => ["bad_token", "generic_error"].map(str::to_owned).into(),
        409 => BTreeSet::new(),
        _ => codes(status).into_iter().collect(),
    }
}

/// What it does and whose token it asks for.
fn described(is: &Operation) -> String {
    let token = match is.token {
        Token::None => "Needs no token.",
        Token::App => "Needs a token of the application or of the organisation.",
        Token::Org => "Needs a token of the organisation.",
    };
    format!("{} {token}", is.summary)
}

/// The title of its resource.
pub(super) fn tag(is: &Operation) -> &'static str {
    let known = TAGS.iter().find(|(resource, _, _)| *resource == is.resource());
    known.map_or("Other", |(_, title, _)| title)
}

/// A field of a query as a parameter, which cannot be `null`.
fn parameter(name: &str, field: &Value) -> Value {
    let mut schema = field.clone();
    let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
    if let Some(Value::Array(types)) = schema.get("type")
        && let Some(only) = types.iter().find(|name| *name != "null").cloned()
    {
        schema["type"] = only;
    }
    if let Some(Value::Array(names)) = schema.get_mut("enum") {
        names.retain(|name| !name.is_null());
    }
    // One that is empty counts as absent.
    let mut made = json!({"name": name, "in": "query", "allowEmptyValue": true, "schema": schema});
    if let Some(about) = about {
        made["description"] = about;
    }
    made
}

/// An error as a component.
fn refusal(status: u16, schema: &Value) -> Value {
    let mut made = json!({
        "description": reason(status), "content": {"application/json": {"schema": schema}}
    });
    if matches!(status, 429 | 503) {
        let about = "Seconds to wait before the request is sent again.";
        made["headers"] =
            json!({"retry-after": {"description": about, "schema": {"type": "integer"}}});
    }
    made
}

fn reason(status: u16) -> &'static str {
    let status = StatusCode::from_u16(status).ok();
    status.and_then(|status| status.canonical_reason()).unwrap_or_default()
}

fn component(status: u16) -> String {
    reason(status).replace(' ', "")
}
