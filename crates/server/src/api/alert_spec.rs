//! Rules and routes of alerts as operators describe them: read, checked, merged with what there
//! was.
//!
//! Never: reach the store, or repeat a credential in a fault.

use std::time::Duration;

use domain::alert::route::{Channel, OPSGENIE_URL, PAGERDUTY_URL, Route};
use domain::alert::rule::{Condition, Rule, Severity};
use domain::dead_letter::DeadReason;
use domain::email::EmailAddress;
use domain::error::Invalid;
use domain::limits::{ALERT_ADDRESSES_MAX, ALERT_COUNT_MAX};
use domain::target::Target;
use serde_json::Value;
use webhook::Secret;

use super::endpoint_secrets as secrets;
use super::own;
use crate::http::fields::{Fields, flag, text, texts, whole};
use crate::http::problem::Problem;
use crate::spelling;

/// Characters of the key of an integration of PagerDuty.
const ROUTING_KEY_CHARS: usize = 32;
/// Characters of the key of an integration of Opsgenie, at most.
const API_KEY_CHARS_MAX: usize = 256;

/// What a rule leaves to the settings, and which routes there are.
pub(crate) struct Usual<'a> {
    /// A rule for each condition.
    pub(crate) rules: &'a [Rule],
    /// The names of all routes.
    pub(crate) routes: &'a [String],
}

/// The figures of a condition, as far as they were given.
struct Figures {
    above: Option<u64>,
    window: Option<Duration>,
    reasons: Option<Vec<DeadReason>>,
    count_min: Option<u64>,
    after: Option<Duration>,
}

/// Reads a rule; with an old one, as a patch of it.
pub(crate) fn rule_of(
    mut fields: Fields<'_>,
    name: &str,
    old: Option<&Rule>,
    usual: &Usual<'_>,
) -> Result<Rule, Problem> {
    let kind = fields.firm("condition", old.map(|old| old.condition.name()), None, condition_name);
    let like = kind.and_then(|kind| usual.rules.iter().find(|rule| rule.condition.name() == kind));
    let same = old.filter(|old| Some(old.condition.name()) == kind);
    let base = same.or(like).map(|rule| &rule.condition);
    let condition = base.map(|base| condition(&mut fields, base));
    let severity = old.map(|old| old.severity);
    let severity = fields.nullable(&["severity"], severity, severity_of);
    let enabled = fields.firm("enabled", old.map(|old| old.enabled), Some(true), flag);
    let hold = fields.nullable(&["hold"], old.map(|old| old.hold), span);
    let clear_after = fields.nullable(&["clearAfter"], old.map(|old| old.clear_after), span);
    let percent = old.map(|old| old.clear_percent);
    let clear_percent = fields.nullable(&["clearPercent"], percent, whole(0..=100));
    let routes = fields.nullable(&["routes"], old.and_then(|old| old.routes.clone()), texts);
    let title = fields.nullable(&["title"], old.and_then(|old| old.title.clone()), text);
    let runbook = old.and_then(|old| old.runbook.clone());
    let runbook = fields.nullable(&["runbookUrl"], runbook, |name, value| {
        Target::parse(name, &text(name, value)?, false)
    });
    let (Some(condition), Some(like)) = (condition, like) else {
        return Err(fields.finish().err().unwrap_or_else(own::missing));
    };
    let rule = Rule {
        name: name.to_owned(),
        condition,
        severity: severity.unwrap_or(like.severity),
        enabled: enabled.unwrap_or(true),
        hold: hold.unwrap_or(like.hold),
        clear_after: clear_after.unwrap_or(like.clear_after),
        clear_percent: clear_percent.unwrap_or(like.clear_percent),
        routes,
        title,
        runbook,
    };
    fields.check(rule.validate(usual.routes));
    fields.finish().map(|()| rule)
}

/// Reads the figures of a condition; what is not given is as in `base`.
fn condition(fields: &mut Fields<'_>, base: &Condition) -> Condition {
    let Figures { above, window, reasons, count_min, after } = figures(fields);
    let mut unused = vec![
        ("above", above.is_some()),
        ("window", window.is_some()),
        ("reasons", reasons.is_some()),
        ("countMin", count_min.is_some()),
        ("after", after.is_some()),
    ];
    let mut uses = |names: &[&str]| unused.retain(|(name, _)| !names.contains(name));
    let read = match base {
        Condition::DeadLetters { above: a, window: w, reasons: r } => {
            uses(&["above", "window", "reasons"]);
            let reasons = reasons.unwrap_or_else(|| r.clone());
            Condition::DeadLetters {
                above: above.unwrap_or(*a),
                window: window.unwrap_or(*w),
                reasons,
            }
        }
        Condition::FailureRatio { above_percent, window: w, count_min: c } => {
            uses(&["above", "window", "countMin"]);
            Condition::FailureRatio {
                above_percent: above
                    .map_or(*above_percent, |above| u8::try_from(above).unwrap_or(u8::MAX)),
                window: window.unwrap_or(*w),
                count_min: count_min.unwrap_or(*c),
            }
        }
        Condition::EndpointFailing { after: a } => {
            uses(&["after"]);
            Condition::EndpointFailing { after: after.unwrap_or(*a) }
        }
        Condition::OldestDue { above } => {
            uses(&["after"]);
            Condition::OldestDue { above: after.unwrap_or(*above) }
        }
        Condition::NothingDelivered { window: w, count_min: c } => {
            uses(&["window", "countMin"]);
            let (window, count_min) = (window.unwrap_or(*w), count_min.unwrap_or(*c));
            Condition::NothingDelivered { window, count_min }
        }
        Condition::SendingPaused => Condition::SendingPaused,
    };
    for (name, given) in unused {
        if given {
            fields.fail(name, format!("has no meaning for {}", base.name()));
        }
    }
    read
}

fn figures(fields: &mut Fields<'_>) -> Figures {
    Figures {
        above: fields.nullable(&["above"], None, whole(0..=ALERT_COUNT_MAX)),
        window: fields.nullable(&["window"], None, span),
        reasons: fields.nullable(&["reasons"], None, reasons),
        count_min: fields.nullable(&["countMin"], None, whole(1..=ALERT_COUNT_MAX)),
        after: fields.nullable(&["after"], None, span),
    }
}

/// Reads a route; with an old one, as a patch of it. `mails` says whether there is a mail server.
pub(crate) fn route_of(
    mut fields: Fields<'_>,
    name: &str,
    old: Option<&Route>,
    (https_only, mails): (bool, bool),
) -> Result<Route, Problem> {
    let old = old.map(|old| &old.channel);
    let kind = fields.firm("channel", old.map(Channel::name), None, channel_name);
    let parts = ["url", "routingKey", "apiKey", "secret", "to"];
    let named = parts.into_iter().filter(|name| fields.names(name));
    let (was_given, was_cleared) = named.partition(|name| fields.is_given(name));
    let given = Given {
        was_given,
        was_cleared,
        url: fields.nullable(&["url"], None, |name, value| {
            Target::parse(name, &text(name, value)?, https_only)
        }),
        routing_key: fields.nullable(&["routingKey"], None, routing_key),
        api_key: fields.nullable(&["apiKey"], None, api_key),
        secret: secrets::given(&mut fields, "secret").map(Box::new),
        to: fields.nullable(&["to"], None, addresses),
    };
    let Some(kind) = kind else {
        return Err(fields.finish().err().unwrap_or_else(own::missing));
    };
    if kind == "email" && !mails {
        fields.fail("channel", "needs a mail server: set `smtp.host`");
    }
    let channel = given.channel(&mut fields, kind, old.filter(|old| old.name() == kind));
    match (fields.finish(), channel) {
        (Ok(()), Some(channel)) => Ok(Route { name: name.to_owned(), channel }),
        (Ok(()), None) => Err(own::missing()),
        (Err(problem), _) => Err(problem),
    }
}

/// What was given of a channel.
struct Given {
    /// What there was a value for, right or wrong: a fault of it was told.
    was_given: Vec<&'static str>,
    /// What `null` was given for: nothing of it is kept.
    was_cleared: Vec<&'static str>,
    url: Option<Target>,
    routing_key: Option<String>,
    api_key: Option<String>,
    secret: Option<Box<Secret>>,
    to: Option<Vec<EmailAddress>>,
}

impl Given {
    /// The channel, the old one's parts where nothing was given; `None` after a fault.
    fn channel(
        self,
        fields: &mut Fields<'_>,
        kind: &str,
        old: Option<&Channel>,
    ) -> Option<Channel> {
        self.refuse_unused(fields, kind);
        let (was_given, was_cleared) = (self.was_given, self.was_cleared);
        let kept = |name: &'static str| old.filter(|_| !was_cleared.contains(&name));
        let url = self.url.or_else(|| kept("url").and_then(Channel::url).cloned());
        let url = url.or_else(|| match kind {
            "pagerduty" => Target::parse("url", PAGERDUTY_URL, true).ok(),
            "opsgenie" => Target::parse("url", OPSGENIE_URL, true).ok(),
            _ => None,
        });
        let mut required = |name: &'static str, is_there: bool| {
            if !is_there && !was_given.contains(&name) {
                fields.fail(name, format!("is required for {kind}"));
            }
        };
        required("url", url.is_some() || kind == "email");
        Some(match kind {
            "pagerduty" => {
                let routing_key = self.routing_key.or_else(|| match kept("routingKey") {
                    Some(Channel::PagerDuty { routing_key, .. }) => Some(routing_key.clone()),
                    _ => None,
                });
                required("routingKey", routing_key.is_some());
                Channel::PagerDuty { url: url?, routing_key: routing_key? }
            }
            "opsgenie" => {
                let api_key = self.api_key.or_else(|| match kept("apiKey") {
                    Some(Channel::Opsgenie { api_key, .. }) => Some(api_key.clone()),
                    _ => None,
                });
                required("apiKey", api_key.is_some());
                let url = url?;
                if url.as_str().contains('?') {
                    fields.fail(
                        "url",
                        "must not have a query: what is done to an alert goes below it",
                    );
                }
                Channel::Opsgenie { url, api_key: api_key? }
            }
            "slack" => Channel::Slack { url: url? },
            "teams" => Channel::Teams { url: url? },
            "webhook" => {
                let secret = self.secret.or_else(|| match kept("secret") {
                    Some(Channel::Webhook { secret, .. }) => Some(secret.clone()),
                    _ => None,
                });
                required("secret", secret.is_some());
                Channel::Webhook { url: url?, secret: secret? }
            }
            _ => {
                let to = self.to.or_else(|| match kept("to") {
                    Some(Channel::Email { to }) => Some(to.clone()),
                    _ => None,
                });
                required("to", to.is_some());
                Channel::Email { to: to? }
            }
        })
    }

    fn refuse_unused(&self, fields: &mut Fields<'_>, kind: &str) {
        let of = [
            ("url", self.url.is_some(), kind != "email"),
            ("routingKey", self.routing_key.is_some(), kind == "pagerduty"),
            ("apiKey", self.api_key.is_some(), kind == "opsgenie"),
            ("secret", self.secret.is_some(), kind == "webhook"),
            ("to", self.to.is_some(), kind == "email"),
        ];
        for (name, given, used) in of {
            if given && !used {
                fields.fail(name, format!("has no meaning for {kind}"));
            }
        }
    }
}

fn condition_name(name: &'static str, value: &Value) -> Result<&'static str, Invalid> {
    of_names(&Condition::NAMES, name, value)
}

fn channel_name(name: &'static str, value: &Value) -> Result<&'static str, Invalid> {
    of_names(&Channel::NAMES, name, value)
}

fn of_names(
    names: &[&'static str],
    field: &'static str,
    value: &Value,
) -> Result<&'static str, Invalid> {
    let given = text(field, value)?;
    let found = names.iter().find(|name| **name == given);
    found.copied().ok_or_else(|| Invalid::new(field, spelling::one_of(names)))
}

fn severity_of(name: &'static str, value: &Value) -> Result<Severity, Invalid> {
    Severity::from_name(&text(name, value)?)
        .ok_or_else(|| Invalid::new(name, spelling::one_of(&Severity::ALL.map(Severity::name))))
}

fn reasons(name: &'static str, value: &Value) -> Result<Vec<DeadReason>, Invalid> {
    let mut read = Vec::new();
    for (at, text) in texts(name, value)?.iter().enumerate() {
        let Some(reason) = DeadReason::from_name(text) else {
            let rule = spelling::one_of(&DeadReason::ALL.map(DeadReason::name));
            return Err(Invalid::new(format!("[{at}]"), rule).within(name));
        };
        if !read.contains(&reason) {
            read.push(reason);
        }
    }
    Ok(read)
}

fn span(name: &'static str, value: &Value) -> Result<Duration, Invalid> {
    spelling::duration(&text(name, value)?).map_err(|rule| Invalid::new(name, rule))
}

fn routing_key(name: &'static str, value: &Value) -> Result<String, Invalid> {
    let key = text(name, value)?;
    let is_key = key.len() == ROUTING_KEY_CHARS && key.bytes().all(|b| b.is_ascii_alphanumeric());
    if is_key {
        return Ok(key);
    }
    let rule = format!("must be the {ROUTING_KEY_CHARS} letters and digits of an integration key");
    Err(Invalid::new(name, rule))
}

fn api_key(name: &'static str, value: &Value) -> Result<String, Invalid> {
    let key = text(name, value)?;
    let fits = (1..=API_KEY_CHARS_MAX).contains(&key.len());
    if fits && key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(key);
    }
    let rule = format!("must be 1 to {API_KEY_CHARS_MAX} characters of ASCII without spaces");
    Err(Invalid::new(name, rule))
}

fn addresses(name: &'static str, value: &Value) -> Result<Vec<EmailAddress>, Invalid> {
    let entries = texts(name, value)?;
    if !(1..=ALERT_ADDRESSES_MAX).contains(&entries.len()) {
        return Err(Invalid::new(name, format!("must hold 1 to {ALERT_ADDRESSES_MAX} addresses")));
    }
    let address = |(at, text): (usize, &String)| {
        EmailAddress::parse(&format!("[{at}]"), text).map_err(|fault| fault.within(name))
    };
    entries.iter().enumerate().map(address).collect()
}
