//! Rules, routes, silences and incidents of alerts as the API shows them.
//!
//! Never: a credential beyond its last characters, or a URL beyond its origin.

use domain::alert::incident::{Incident, Phase};
use domain::alert::route::{Channel, Route, Silence};
use domain::alert::rule::{Condition, Rule, Severity};
use domain::attempt::{Attempt, FailureKind, Outcome};
use domain::classify::describe;
use domain::ids::{Kind, PublicId};
use domain::target::Target;
use schemars::JsonSchema;
use serde::Serialize;

use super::time;
use crate::api::shapes::{
    AlertName, DeadReason, Email, EndpointId, IncidentId, SilenceId, Span, Time, or_null,
};
use crate::spelling::duration_text;

/// Where something was set.
const SOURCES: [&str; 2] = ["settings", "api"];
/// Characters of a credential that are shown, of one that is long enough.
const SHOWN_CHARS: usize = 4;
const LONG_ENOUGH_CHARS: usize = 16;

/// A rule.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlertRuleOut {
    #[schemars(with = "AlertName")]
    name: String,
    #[schemars(extend("enum" = Condition::NAMES))]
    condition: &'static str,
    above: Option<u64>,
    #[schemars(with = "Option<Span>")]
    window: Option<String>,
    #[schemars(with = "Option<Vec<DeadReason>>")]
    reasons: Option<Vec<&'static str>>,
    count_min: Option<u64>,
    #[schemars(with = "Option<Span>")]
    after: Option<String>,
    #[schemars(extend("enum" = Severity::ALL.map(Severity::name)))]
    severity: &'static str,
    enabled: bool,
    #[schemars(with = "Span")]
    hold: String,
    #[schemars(with = "Span")]
    clear_after: String,
    clear_percent: u8,
    /// Null for all.
    #[schemars(with = "Option<Vec<AlertName>>")]
    routes: Option<Vec<String>>,
    title: Option<String>,
    runbook_url: Option<String>,
    /// Whether it is one of the settings or was set over the API.
    #[schemars(extend("enum" = SOURCES))]
    source: &'static str,
}

impl AlertRuleOut {
    /// A rule, and whether it was set over the API.
    pub(crate) fn new(rule: &Rule, is_own: bool) -> Self {
        let (mut above, mut reasons, mut count_min, mut after) = (None, None, None, None);
        match &rule.condition {
            Condition::DeadLetters { above: number, reasons: of, .. } => {
                above = Some(*number);
                reasons = Some(of.iter().map(|reason| reason.name()).collect());
            }
            Condition::FailureRatio { above_percent, count_min: least, .. } => {
                above = Some(u64::from(*above_percent));
                count_min = Some(*least);
            }
            Condition::EndpointFailing { after: span } | Condition::OldestDue { above: span } => {
                after = Some(duration_text(*span));
            }
            Condition::NothingDelivered { count_min: least, .. } => count_min = Some(*least),
            Condition::SendingPaused => {}
        }
        Self {
            name: rule.name.clone(),
            condition: rule.condition.name(),
            above,
            window: rule.condition.window().map(duration_text),
            reasons,
            count_min,
            after,
            severity: rule.severity.name(),
            enabled: rule.enabled,
            hold: duration_text(rule.hold),
            clear_after: duration_text(rule.clear_after),
            clear_percent: rule.clear_percent,
            routes: rule.routes.clone(),
            title: rule.title.clone(),
            runbook_url: rule.runbook.as_ref().map(|url| url.as_str().to_owned()),
            source: SOURCES[usize::from(is_own)],
        }
    }
}

/// A route.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlertRouteOut {
    #[schemars(with = "AlertName")]
    name: String,
    #[schemars(extend("enum" = Channel::NAMES))]
    channel: &'static str,
    /// Scheme, host and port of its URL.
    origin: Option<String>,
    /// The last characters of its key or secret.
    credential: Option<String>,
    #[schemars(with = "Option<Vec<Email>>")]
    to: Option<Vec<String>>,
    /// Whether it is one of the settings or was set over the API.
    #[schemars(extend("enum" = SOURCES))]
    source: &'static str,
    /// Of a route over HTTP that something was sent on.
    delivery: Option<Delivery>,
}

impl AlertRouteOut {
    /// A route, and whether it was set over the API.
    pub(crate) fn new(route: &Route, is_own: bool, delivery: Option<Delivery>) -> Self {
        let channel = &route.channel;
        let credential = match channel {
            Channel::PagerDuty { routing_key, .. } => Some(end_of(routing_key)),
            Channel::Opsgenie { api_key, .. } => Some(end_of(api_key)),
            Channel::Webhook { secret, .. } => Some(end_of(&secret.to_private_text())),
            Channel::Slack { .. } | Channel::Teams { .. } | Channel::Email { .. } => None,
        };
        let to = match channel {
            Channel::Email { to } => Some(to.iter().map(|it| it.as_str().to_owned()).collect()),
            _ => None,
        };
        Self {
            name: route.name.clone(),
            channel: channel.name(),
            origin: channel.url().map(Target::origin),
            credential,
            to,
            source: SOURCES[usize::from(is_own)],
            delivery,
        }
    }
}

/// How messages on a route fare.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AlertDeliveryOut")]
#[serde(rename_all = "camelCase")]
pub(crate) struct Delivery {
    #[schemars(with = "EndpointId")]
    endpoint_id: String,
    /// Nothing is sent since it answered 410; setting the route anew enables it.
    disabled: bool,
    /// Messages that wait, counted up to 1,000.
    waiting: u64,
    last_attempt: Option<LastAttempt>,
}

/// The last attempt.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AlertAttemptOut")]
#[serde(rename_all = "camelCase")]
struct LastAttempt {
    #[schemars(with = "Time")]
    at: String,
    /// 0 for no answer.
    status_code: u16,
    /// What went wrong; null for 2xx.
    error: Option<String>,
    /// Why there was no answer; null if there was one.
    #[schemars(extend("enum" = or_null(&FailureKind::ALL.map(FailureKind::name))))]
    error_kind: Option<&'static str>,
}

impl Delivery {
    /// Of the endpoint that a route is.
    pub(crate) fn new(
        endpoint_id: String,
        disabled: bool,
        waiting: u64,
        last: Option<Attempt>,
    ) -> Self {
        let last_attempt = last.map(|attempt| LastAttempt {
            at: time(attempt.started_at),
            status_code: attempt.status(),
            error: describe(&attempt),
            error_kind: match &attempt.outcome {
                Outcome::Answered(_) => None,
                Outcome::Failed(failure) => Some(failure.kind.name()),
            },
        });
        Self { endpoint_id, disabled, waiting, last_attempt }
    }
}

/// A trial of a route.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlertTestOut {
    /// What the trial is called in the notification.
    #[schemars(with = "IncidentId")]
    incident_id: String,
}

impl AlertTestOut {
    /// A trial under this id.
    pub(crate) fn new(id: PublicId) -> Self {
        Self { incident_id: id.text(Kind::Incident) }
    }
}

/// A silence.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlertSilenceOut {
    #[schemars(with = "SilenceId")]
    id: String,
    /// Null for all.
    #[schemars(with = "Option<AlertName>")]
    rule: Option<String>,
    /// Null for everything.
    #[schemars(with = "Option<EndpointId>")]
    endpoint_id: Option<String>,
    #[schemars(with = "Time")]
    from: String,
    #[schemars(with = "Time")]
    until: String,
    comment: String,
}

impl AlertSilenceOut {
    /// A silence.
    pub(crate) fn new(silence: &Silence) -> Self {
        Self {
            id: silence.id.text(Kind::Silence),
            rule: silence.rule.clone(),
            endpoint_id: silence.endpoint.map(|id| id.text(Kind::Endpoint)),
            from: time(silence.from),
            until: time(silence.until),
            comment: silence.comment.clone(),
        }
    }
}

/// An incident.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlertIncidentOut {
    #[schemars(with = "IncidentId")]
    id: String,
    #[schemars(with = "AlertName")]
    rule: String,
    #[schemars(extend("enum" = Severity::ALL.map(Severity::name)))]
    severity: &'static str,
    /// `pending` until the rule has held long enough.
    #[schemars(extend("enum" = Phase::ALL.map(Phase::name)))]
    status: &'static str,
    /// As it was told last; empty before.
    title: String,
    /// The rule began to hold then.
    #[schemars(with = "Time")]
    since: String,
    #[schemars(with = "Option<Time>")]
    fired_at: Option<String>,
    #[schemars(with = "Option<Time>")]
    acknowledged_at: Option<String>,
    #[schemars(with = "Option<Time>")]
    resolved_at: Option<String>,
    /// The routes that were told.
    #[schemars(with = "Vec<AlertName>")]
    routes: Vec<String>,
    /// How often the rule fired again soon after the incident before.
    flaps: u32,
}

impl AlertIncidentOut {
    /// An incident.
    pub(crate) fn new(incident: &Incident) -> Self {
        Self {
            id: incident.id.text(Kind::Incident),
            rule: incident.rule.clone(),
            severity: incident.severity.name(),
            status: incident.phase.name(),
            title: incident.title.clone(),
            since: time(incident.since),
            fired_at: incident.fired_at.map(time),
            acknowledged_at: incident.acknowledged_at.map(time),
            resolved_at: incident.resolved_at.map(time),
            routes: incident.told.routes.clone(),
            flaps: incident.flaps,
        }
    }
}

/// The last characters of a credential, if it is long enough to keep the rest.
fn end_of(credential: &str) -> String {
    let count = credential.chars().count();
    if count < LONG_ENOUGH_CHARS {
        return "…".to_owned();
    }
    let end: String = credential.chars().skip(count - SHOWN_CHARS).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_route_shows_what_it_is_reached_by() {
        let url = || Target::parse("url", "https://hooks.example/T0/wonderland", false).unwrap();
        let secret = Box::new(webhook::Secret::from_random_hmac([7; 24]));
        let private = secret.to_private_text();
        let channels = [
            Channel::PagerDuty {
                url: url(),
                routing_key: "abcdefghijklmnopqrstuvwxyz012345".into(),
            },
            Channel::Opsgenie { url: url(), api_key: "short-key".into() },
            Channel::Slack { url: url() },
            Channel::Teams { url: url() },
            Channel::Webhook { url: url(), secret },
        ];
        for channel in channels {
            let route = Route { name: "ops".into(), channel };
            let shown = serde_json::to_string(&AlertRouteOut::new(&route, true, None)).unwrap();
            for hidden in ["wonderland", "abcdefgh", "short-key", &private] {
                assert!(!shown.contains(hidden), "{shown}");
            }
            assert!(shown.contains("https://hooks.example:443"), "{shown}");
        }
        assert_eq!(end_of("abcdefghijklmnopqrstuvwxyz012345"), "…2345");
    }
}
