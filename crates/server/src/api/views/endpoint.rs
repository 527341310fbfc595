//! An endpoint as the API shows it: the fields that SDKs know, and its own policies beside them.
//!
//! A policy field that is `null` is the server's. Whoever may read an endpoint may see its URL, but
//! for routes of alerts, whose URLs are credentials: those show their origin.
//! Never: show a secret or the value of a custom header; they have routes of their own.

use domain::endpoint::{Disabled, Endpoint, Ordering};
use domain::ids::{Kind, PublicId};
use domain::notice::MANAGEMENT;
use domain::policy::{BreakerOverrides, RetryOverrides, Strategy};
use engine::alert::ways;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{stored_json, time};
use crate::api::shapes::{
    Channel, Email, EndpointId, EventTypeName, Metadata, Span, Time, or_null,
};
use crate::spelling::{duration_text, retry_after_mode_text, retry_on_text};

/// An endpoint.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndpointOut {
    #[schemars(with = "EndpointId")]
    id: String,
    url: String,
    description: String,
    /// The same as `throttleRate`.
    rate_limit: Option<u16>,
    throttle_rate: Option<u16>,
    uid: Option<String>,
    version: u16,
    disabled: bool,
    /// Its owner did, or a receiver that answered 410.
    #[schemars(extend("enum" = or_null(&["owner", "gone"])))]
    disabled_reason: Option<&'static str>,
    #[schemars(with = "Option<Vec<EventTypeName>>")]
    event_types: Option<Vec<String>>,
    /// The same as `eventTypes`.
    #[schemars(with = "Option<Vec<EventTypeName>>")]
    filter_types: Option<Vec<String>>,
    #[schemars(with = "Option<Vec<Channel>>")]
    channels: Option<Vec<String>>,
    #[schemars(with = "Time")]
    created_at: String,
    #[schemars(with = "Time")]
    updated_at: String,
    #[schemars(with = "Metadata")]
    metadata: Box<RawValue>,
    retry_policy: Option<RetryOut>,
    breaker: Option<BreakerOut>,
    #[schemars(with = "Option<Span>")]
    timeout: Option<String>,
    ordered: Ordered,
    #[schemars(with = "Option<Email>")]
    contact_email: Option<String>,
    /// Whether dead letters of an outage go back by themselves.
    auto_replay: Option<bool>,
    /// Where it is asked whether it is well while nothing is sent to it.
    health_check_url: Option<String>,
}

/// `false`, `true` or `"strict"`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(untagged)]
enum Ordered {
    Flag(bool),
    Name(#[schemars(extend("const" = "strict"))] &'static str),
}

/// What differs from the retry policy of the server.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RetryPolicyOut")]
#[serde(rename_all = "camelCase")]
struct RetryOut {
    #[schemars(extend("enum" = or_null(&Strategy::ALL.map(Strategy::name))))]
    strategy: Option<&'static str>,
    #[schemars(with = "Option<Span>")]
    base: Option<String>,
    #[schemars(with = "Option<Span>")]
    cap: Option<String>,
    #[schemars(with = "Option<Vec<Span>>")]
    schedule: Option<Vec<String>>,
    attempts_max: Option<u32>,
    #[schemars(with = "Option<Span>")]
    age_max: Option<String>,
    retry_on: Option<String>,
    #[schemars(extend("enum" = or_null(&["exact", "at_least", "ignore"])))]
    retry_after: Option<&'static str>,
}

/// What differs from the breaker of the server.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "BreakerPolicyOut")]
#[serde(rename_all = "camelCase")]
struct BreakerOut {
    failures: Option<u32>,
    #[schemars(with = "Option<Span>")]
    open_for: Option<String>,
    #[schemars(with = "Option<Span>")]
    open_for_max: Option<String>,
}

impl From<&Endpoint> for EndpointOut {
    fn from(endpoint: &Endpoint) -> Self {
        let spec = &endpoint.spec;
        Self {
            id: endpoint.id.text(Kind::Endpoint),
            url: spec.target.as_str().to_owned(),
            description: spec.description.clone(),
            rate_limit: spec.throttle_rate,
            throttle_rate: spec.throttle_rate,
            uid: spec.uid.clone(),
            version: spec.version,
            disabled: spec.disabled.is_some(),
            disabled_reason: spec.disabled.map(|reason| match reason {
                Disabled::ByOwner => "owner",
                Disabled::Gone => "gone",
            }),
            event_types: spec.event_types.clone(),
            filter_types: spec.event_types.clone(),
            channels: spec.channels.clone(),
            created_at: time(endpoint.created_at),
            updated_at: time(endpoint.updated_at),
            metadata: stored_json(&spec.metadata),
            retry_policy: retry_out(&spec.retry),
            breaker: breaker_out(&spec.breaker),
            timeout: spec.timeout.map(duration_text),
            ordered: match spec.ordering {
                Ordering::Unordered => Ordered::Flag(false),
                Ordering::Ordered => Ordered::Flag(true),
                Ordering::Strict => Ordered::Name("strict"),
            },
            contact_email: spec.contact_email.as_ref().map(|address| address.as_str().to_owned()),
            auto_replay: spec.auto_replay,
            health_check_url: spec.health_check.as_ref().map(|url| url.as_str().to_owned()),
        }
    }
}

impl EndpointOut {
    /// One of this organisation.
    pub(crate) fn shown(endpoint: &Endpoint, org: PublicId) -> Self {
        let shown = Self::from(endpoint);
        if org == MANAGEMENT && ways::route_of(endpoint).is_some() {
            return Self { url: endpoint.spec.target.origin(), ..shown };
        }
        shown
    }
}

fn retry_out(own: &RetryOverrides) -> Option<RetryOut> {
    (*own != RetryOverrides::default()).then(|| RetryOut {
        strategy: own.strategy.map(Strategy::name),
        base: own.base.map(duration_text),
        cap: own.cap.map(duration_text),
        schedule: own
            .schedule
            .as_ref()
            .map(|delays| delays.iter().copied().map(duration_text).collect()),
        attempts_max: own.attempts_max,
        age_max: own.age_max.map(duration_text),
        retry_on: own.retry_on.as_ref().map(retry_on_text),
        retry_after: own.retry_after.map(retry_after_mode_text),
    })
}

fn breaker_out(own: &BreakerOverrides) -> Option<BreakerOut> {
    (*own != BreakerOverrides::default()).then(|| BreakerOut {
        failures: own.failures,
        open_for: own.open_for.map(duration_text),
        open_for_max: own.open_for_max.map(duration_text),
    })
}
