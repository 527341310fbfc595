//! Rules and routes of alerts.
//!
//! In: settings as written. Out: a rule for each condition, named by it, and a route for each
//! channel that something is set for, named by that.
//! Never: reach a route; whether it answers is found out by `peyk alert test`.

use std::time::Duration;

use domain::alert::route::{Channel, OPSGENIE_URL, PAGERDUTY_URL, Route};
use domain::alert::rule::{Condition, Rule, Severity};
use domain::dead_letter::DeadReason;
use domain::email::EmailAddress;
use domain::error::Invalid;
use domain::ids::{Kind, PublicId};
use domain::limits::{ALERT_ADDRESSES_MAX, ALERT_COUNT_MAX};
use domain::target::Target;
use webhook::Secret;

use super::error::ConfigError;
use super::reader::Reader;
use crate::spelling;

/// How often rules are evaluated, at least and at most.
const INTERVAL: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(60);
/// A rule that is off.
const OFF: &str = "off";

/// What is set of alerts.
#[derive(Clone, Debug)]
pub(crate) struct Alerts {
    pub(crate) interval: Duration,
    /// Tokens of this organisation may see and set alerts.
    pub(crate) operator: PublicId,
    pub(crate) rules: Vec<Rule>,
    pub(crate) routes: Vec<Route>,
}

impl Alerts {
    /// Reads them; `mails` says whether there is a mail server.
    pub(super) fn read(
        read: &Reader<'_>,
        https_only: bool,
        mails: bool,
    ) -> Result<Self, ConfigError> {
        let interval = read.span("alerts.interval")?;
        if !INTERVAL.contains(&interval) {
            let [least, most] =
                [INTERVAL.start(), INTERVAL.end()].map(|it| spelling::duration_text(*it));
            return Err(read.fault("alerts.interval", &format!("must be from {least} to {most}")));
        }
        let operator = PublicId::parse(Kind::Organisation, read.text("alerts.operator")?)
            .ok_or_else(|| read.fault("alerts.operator", "must be the id of an organisation"))?;
        let routes = routes(read, https_only, mails)?;
        Ok(Self { interval, operator, rules: rules(read)?, routes })
    }
}

fn rules(read: &Reader<'_>) -> Result<Vec<Rule>, ConfigError> {
    let count = |key: &str| read.in_range(key, &(0..=ALERT_COUNT_MAX));
    let percent = |key: &str| {
        read.in_range(key, &(1..=99)).map(|percent| u8::try_from(percent).unwrap_or(u8::MAX))
    };
    let conditions = [
        Condition::DeadLetters {
            above: count("alerts.dead_letters.above")?,
            window: read.span("alerts.dead_letters.window")?,
            reasons: reasons(read, "alerts.dead_letters.reasons")?,
        },
        Condition::FailureRatio {
            above_percent: percent("alerts.failure_ratio.above")?,
            window: read.span("alerts.failure_ratio.window")?,
            count_min: count("alerts.failure_ratio.count_min")?,
        },
        Condition::EndpointFailing { after: read.span("alerts.endpoint_failing.after")? },
        Condition::OldestDue { above: read.span("alerts.oldest_due.after")? },
        Condition::NothingDelivered {
            window: read.span("alerts.nothing_delivered.window")?,
            count_min: count("alerts.nothing_delivered.count_min")?,
        },
        Condition::SendingPaused,
    ];
    conditions.into_iter().map(|condition| rule(read, condition)).collect()
}

/// A rule by the name of its condition.
fn rule(read: &Reader<'_>, condition: Condition) -> Result<Rule, ConfigError> {
    let name = condition.name();
    let key = |field: &str| format!("alerts.{name}.{field}");
    let severity = read.text(&key("severity"))?;
    let found = Severity::from_name(severity);
    if found.is_none() && severity != OFF {
        let names: Vec<_> = [OFF].into_iter().chain(Severity::ALL.map(Severity::name)).collect();
        return Err(read.fault(&key("severity"), &spelling::one_of(&names)));
    }
    // Rules of one's own begin with it, though that of the settings is off.
    let severity = found.unwrap_or_else(|| condition.severity());
    let rule = Rule {
        enabled: found.is_some(),
        hold: read.span(&key("hold"))?,
        ..Rule::new(name, condition, severity)
    };
    // Fields are spelled there as in JSON.
    rule.validate(&[]).map_err(|fault| {
        let field = match fault.loc.get(1).map(String::as_str) {
            Some("countMin") => "count_min",
            Some(field) => field,
            None => "severity",
        };
        read.fault(&key(field), &fault.rule)
    })?;
    Ok(rule)
}

fn reasons(read: &Reader<'_>, key: &str) -> Result<Vec<DeadReason>, ConfigError> {
    let mut found = Vec::new();
    for name in read.list(key) {
        let reason = DeadReason::from_name(name).ok_or_else(|| {
            let names = DeadReason::ALL.map(DeadReason::name);
            read.fault(key, &format!("must hold reasons: each {}", &spelling::one_of(&names)))
        })?;
        if !found.contains(&reason) {
            found.push(reason);
        }
    }
    Ok(found)
}

fn routes(read: &Reader<'_>, https_only: bool, mails: bool) -> Result<Vec<Route>, ConfigError> {
    let mut channels = Vec::new();
    let url = |key: &str, usual: &str| {
        let text = read.optional(key).unwrap_or(usual);
        Target::parse(key, text, https_only).map_err(|fault: Invalid| read.fault(key, &fault.rule))
    };
    for (of, key) in [
        ("alerts.pagerduty_url", "alerts.pagerduty_key"),
        ("alerts.opsgenie_url", "alerts.opsgenie_key"),
    ] {
        if read.optional(of).is_some() && read.optional(key).is_none() {
            return Err(read.fault(of, &format!("needs `{key}`")));
        }
    }
    if let Some(key) = read.optional("alerts.pagerduty_key") {
        if key.len() != 32 || !key.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            let rule = "must be the 32 letters and digits of an integration key";
            return Err(read.fault("alerts.pagerduty_key", rule));
        }
        let routing_key = key.to_owned();
        channels.push(Channel::PagerDuty {
            url: url("alerts.pagerduty_url", PAGERDUTY_URL)?,
            routing_key,
        });
    }
    if let Some(key) = read.optional("alerts.opsgenie_key") {
        if key.len() > 256 || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            let rule = "must be at most 256 characters of ASCII without spaces";
            return Err(read.fault("alerts.opsgenie_key", rule));
        }
        let to = url("alerts.opsgenie_url", OPSGENIE_URL)?;
        if to.as_str().contains('?') {
            return Err(read.fault("alerts.opsgenie_url", "must not have a query"));
        }
        channels.push(Channel::Opsgenie { url: to, api_key: key.to_owned() });
    }
    if read.optional("alerts.slack_url").is_some() {
        channels.push(Channel::Slack { url: url("alerts.slack_url", "")? });
    }
    if read.optional("alerts.teams_url").is_some() {
        channels.push(Channel::Teams { url: url("alerts.teams_url", "")? });
    }
    if read.optional("alerts.webhook_url").is_some() {
        let secret = Secret::parse(read.text("alerts.webhook_secret")?);
        let secret = secret.map(Box::new).map_err(|fault| {
            read.fault("alerts.webhook_secret", &format!("is no signing secret: {fault}"))
        })?;
        channels.push(Channel::Webhook { url: url("alerts.webhook_url", "")?, secret });
    }
    let to = read.list("alerts.email_to");
    if !to.is_empty() {
        channels.push(Channel::Email { to: addresses(read, to, mails)? });
    }
    let route = |channel: Channel| Route { name: channel.name().to_owned(), channel };
    Ok(channels.into_iter().map(route).collect())
}

fn addresses(
    read: &Reader<'_>,
    texts: &[String],
    mails: bool,
) -> Result<Vec<EmailAddress>, ConfigError> {
    let key = "alerts.email_to";
    if !mails {
        return Err(read.fault(key, "needs a mail server: set smtp.host"));
    }
    if texts.len() > ALERT_ADDRESSES_MAX {
        let rule = format!("must hold at most {ALERT_ADDRESSES_MAX} addresses");
        return Err(read.fault(key, &rule));
    }
    let address = |text: &String| {
        EmailAddress::parse(key, text).map_err(|fault| read.fault(key, &fault.rule))
    };
    texts.iter().map(address).collect()
}
