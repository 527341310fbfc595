//! Endpoints as callers describe them, and what is done to one.
//!
//! Never: read anything; `endpoint_spec` and its neighbours do.

#![expect(dead_code, reason = "read by their derives only")]

use std::collections::BTreeMap;

use domain::limits::{
    CHANNELS_PER_ENDPOINT_MAX, EVENT_TYPES_PER_ENDPOINT_MAX, HEADER_VALUE_BYTES_MAX, HEADERS_MAX,
    SECRET_GRACE_SECS_MAX,
};
use domain::policy::Strategy;
use schemars::JsonSchema;
use serde_json::json;

use crate::api::shapes::{
    Channel, Description, Email, EventTypeName, Metadata, PerSecond, SigningSecret, Span, Uid, Url,
    or_null,
};

/// Names of headers: tokens of HTTP.
const HEADER_NAME: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$";
/// Values of headers: no control characters.
const HEADER_VALUE: &str = r"^[^\x00-\x08\x0a-\x1f\x7f]*$";

/// An endpoint: a URL that messages are sent to.
#[derive(JsonSchema)]
pub(crate) struct EndpointIn {
    #[serde(flatten)]
    endpoint: EndpointUpdate,
    /// The secret that its requests are signed with; made unless given.
    secret: Option<SigningSecret>,
}

/// An endpoint, its secret left out: that is replaced by `…/secret/rotate`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndpointUpdate {
    /// `http` or `https`, without user-info.
    url: Url,
    /// Your own id, unique in the application; not beginning with `ep_`.
    uid: Option<Uid>,
    #[schemars(extend("default" = ""))]
    description: Option<Description>,
    /// A number of your own.
    #[schemars(range(min = 1, max = u16::MAX), extend("default" = 1))]
    version: Option<u16>,
    /// Whether deliveries wait; enabling sends the oldest first.
    #[schemars(extend("default" = false))]
    disabled: Option<bool>,
    /// Event types that it wants, each of which must exist, not be archived and be visible to the
    /// token; null for all. Also read as `filterTypes`.
    #[schemars(length(min = 1, max = EVENT_TYPES_PER_ENDPOINT_MAX))]
    event_types: Option<Vec<EventTypeName>>,
    /// Channels that it wants; null for all.
    #[schemars(length(min = 1, max = CHANNELS_PER_ENDPOINT_MAX))]
    channels: Option<Vec<Channel>>,
    /// Sends a second, enforced. Also read as `rateLimit`.
    throttle_rate: Option<PerSecond>,
    /// At most 4,096 bytes as JSON.
    metadata: Option<Metadata>,
    /// Extra headers of its requests, none that the server sets or that frames a request.
    #[schemars(extend(
        "maxProperties" = HEADERS_MAX,
        "propertyNames" = json!({"pattern": HEADER_NAME}),
        "additionalProperties" = json!({
            "type": "string", "maxLength": HEADER_VALUE_BYTES_MAX, "pattern": HEADER_VALUE
        })
    ))]
    headers: Option<BTreeMap<String, String>>,
    /// What differs from the retry policy of the server; null for nothing.
    retry_policy: Option<RetryPolicyIn>,
    /// What differs from the breaker of the server; null for nothing.
    breaker: Option<BreakerPolicyIn>,
    /// One attempt from DNS to the last byte, `5s` to `30s`; null for the server's.
    timeout: Option<Span>,
    /// Whether deliveries go out one at a time in order; with `strict` a dead one blocks until it
    /// is replayed or deleted.
    #[schemars(extend("type" = json!(["boolean", "string", "null"]), "enum" = json!([true, false, "strict", null])))]
    ordered: Option<serde_json::Value>,
    /// Whom to write to before it is suspended, when it is, and when it is resumed.
    contact_email: Option<Email>,
    /// Whether dead letters of an outage go back by themselves once the endpoint works again; null
    /// for the server's.
    auto_replay: Option<bool>,
    /// Asked by GET while the breaker is open or the endpoint is suspended; 2xx lets a probe go at
    /// once.
    health_check_url: Option<Url>,
}

/// What differs from the retry policy of the server; null for its value.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RetryPolicyIn {
    #[schemars(extend("enum" = or_null(&Strategy::ALL.map(Strategy::name))))]
    strategy: Option<String>,
    /// The first delay.
    base: Option<Span>,
    /// The longest delay.
    cap: Option<Span>,
    /// The delays of the strategy `schedule`, at most 100. An empty list is one send.
    #[schemars(length(max = 100))]
    schedule: Option<Vec<Span>>,
    /// Sends of one delivery.
    #[schemars(range(min = 1, max = 1_000))]
    attempts_max: Option<u32>,
    /// How long a delivery is tried.
    age_max: Option<Span>,
    /// `transient`, `all`, or statuses from 300 to 999 like `408`, `500-504`, `5xx`, as a list or
    /// with commas between.
    #[schemars(extend("type" = json!(["string", "array", "null"])))]
    retry_on: Option<serde_json::Value>,
    /// What a `Retry-After` does.
    #[schemars(extend("enum" = or_null(&["exact", "at_least", "ignore"])))]
    retry_after: Option<String>,
}

/// What differs from the breaker of the server; null for its value.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BreakerPolicyIn {
    /// Failures in a row that open it.
    #[schemars(range(min = 1, max = 1_000))]
    failures: Option<u32>,
    /// How long it is open at first.
    open_for: Option<Span>,
    /// How long it is open at most.
    open_for_max: Option<Span>,
}

/// Forces the breaker, until `auto` gives it back to itself, or suspends the endpoint.
#[derive(JsonSchema)]
pub(crate) struct BreakerIn {
    /// `suspended`, which is for tokens of an organisation, lasts until a probe is delivered or
    /// `auto`.
    #[schemars(extend("enum" = json!(["open", "closed", "auto", "suspended"])))]
    state: String,
}

/// All extra headers.
#[derive(JsonSchema)]
pub(crate) struct EndpointHeadersIn {
    #[schemars(extend(
        "maxProperties" = HEADERS_MAX,
        "propertyNames" = json!({"pattern": HEADER_NAME}),
        "additionalProperties" = json!({
            "type": "string", "maxLength": HEADER_VALUE_BYTES_MAX, "pattern": HEADER_VALUE
        })
    ))]
    headers: BTreeMap<String, String>,
}

/// Changes of extra headers.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndpointHeadersPatchIn {
    /// New values by name; null removes a header.
    #[schemars(extend(
        "maxProperties" = HEADERS_MAX,
        "propertyNames" = json!({"pattern": HEADER_NAME}),
        "additionalProperties" = json!({
            "type": ["string", "null"], "maxLength": HEADER_VALUE_BYTES_MAX,
            "pattern": HEADER_VALUE
        })
    ))]
    headers: Option<BTreeMap<String, Option<String>>>,
    /// Names of headers to remove, also such as `headers` sets.
    delete_headers: Option<Vec<String>>,
}

/// How the secret is replaced.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndpointSecretRotateIn {
    /// The new secret; made unless given.
    key: Option<SigningSecret>,
    /// How long the replaced one signs on; 24 hours unless given.
    #[schemars(range(min = 0, max = SECRET_GRACE_SECS_MAX))]
    grace_period_seconds: Option<u64>,
}

/// Which example is sent.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventExampleIn {
    /// `svix.ping`, or a type whose schema of version 1 has examples.
    event_type: EventTypeName,
    /// Which of the examples.
    #[schemars(range(min = 0, max = 10_000), extend("default" = 0))]
    example_index: Option<u32>,
}
