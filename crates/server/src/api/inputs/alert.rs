//! Rules, routes and silences of alerts as operators describe them.
//!
//! Never: read anything; `alert_spec` and `alert_silences` do.

#![expect(dead_code, reason = "read by their derives only")]

use domain::alert::route::Channel;
use domain::alert::rule::{Condition, Severity};
use domain::limits::{
    ALERT_ADDRESSES_MAX, ALERT_COUNT_MAX, ALERT_TITLE_CHARS_MAX, DESCRIPTION_BYTES_MAX,
};
use schemars::JsonSchema;

use crate::api::shapes::{
    AlertName, DeadReason, Email, EndpointId, SigningSecret, Span, Time, Url, or_null,
};

/// A rule: what is watched, and how bad it is.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlertRuleIn {
    /// What is watched. Figures that are left out are those of the settings.
    #[schemars(extend("enum" = Condition::NAMES))]
    condition: String,
    /// `dead_letters`: more than so many; `failure_ratio`: more than so many percent, 1 to 99.
    #[schemars(range(min = 0, max = ALERT_COUNT_MAX))]
    above: Option<u64>,
    /// `dead_letters`, `failure_ratio`, `nothing_delivered`: counted over so long, `1m` to `24h`.
    window: Option<Span>,
    /// `dead_letters`: of these reasons.
    #[schemars(length(min = 1))]
    reasons: Option<Vec<DeadReason>>,
    /// `failure_ratio`, `nothing_delivered`: with fewer attempts, or messages, nothing is said.
    #[schemars(range(min = 1, max = ALERT_COUNT_MAX))]
    count_min: Option<u64>,
    /// `endpoint_failing`, `oldest_due`: after so long.
    after: Option<Span>,
    #[schemars(extend("enum" = or_null(&Severity::ALL.map(Severity::name))))]
    severity: Option<String>,
    #[schemars(extend("default" = true))]
    enabled: Option<bool>,
    /// It fires once it has held so long.
    hold: Option<Span>,
    /// It is resolved once it has been clear so long.
    clear_after: Option<Span>,
    /// It is clear at so many percent of what it is compared with.
    #[schemars(range(min = 0, max = 100))]
    clear_percent: Option<u8>,
    /// Names of the routes it is told on; null for all.
    #[schemars(length(min = 1))]
    routes: Option<Vec<AlertName>>,
    /// Its title, in which `{rule}`, `{severity}`, `{value}`, `{threshold}` and `{window}` are
    /// replaced; null for the usual one.
    #[schemars(length(min = 1, max = ALERT_TITLE_CHARS_MAX))]
    title: Option<String>,
    /// What to read about it.
    runbook_url: Option<Url>,
}

/// A route: where notifications go.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlertRouteIn {
    #[schemars(extend("enum" = Channel::NAMES))]
    channel: String,
    /// Where it goes over HTTP; for `pagerduty` and `opsgenie` that of the vendor unless given.
    url: Option<Url>,
    /// `pagerduty`: the key of an integration of Events API v2.
    #[schemars(regex(pattern = "^[0-9A-Za-z]{32}$"))]
    routing_key: Option<String>,
    /// `opsgenie`: the key of an API integration.
    #[schemars(regex(pattern = "^[!-~]{1,256}$"))]
    api_key: Option<String>,
    /// `webhook`: what it is signed with.
    secret: Option<SigningSecret>,
    /// `email`: whom it goes to.
    #[schemars(length(min = 1, max = ALERT_ADDRESSES_MAX))]
    to: Option<Vec<Email>>,
}

/// A time in which nobody is told; `until` or `duration` says how long.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlertSilenceIn {
    /// Of this rule; null for all.
    rule: Option<AlertName>,
    /// Of this endpoint; null for everything.
    endpoint_id: Option<EndpointId>,
    /// At most 90 days from now.
    until: Option<Time>,
    duration: Option<Span>,
    /// Why.
    #[schemars(length(max = DESCRIPTION_BYTES_MAX))]
    comment: Option<String>,
}
