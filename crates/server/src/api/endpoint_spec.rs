//! Endpoints as callers describe them: read, checked, and merged with what there was.
//!
//! In: the fields of a body, and the old description for a PATCH. Out: a valid description, or all
//! that is wrong.
//! Never: reach the store; whether event types exist is asked by `endpoints`.

use std::time::Duration;

use domain::email::EmailAddress;
use domain::endpoint::{Disabled, EndpointSpec, Ordering};
use domain::error::Invalid;
use domain::ids::Kind;
use domain::policy::{BreakerOverrides, RetryOverrides, Strategy};
use domain::target::Target;
use domain::{headers, limits, text};
use resilience::BreakerConfig;
use serde_json::Value;

use crate::config::Settings;
use crate::config::bounds::Bounds;
use crate::config::settings::policy_field;
use crate::http::fields::{Fields, checked, each, flag, metadata, text as read_text, texts, whole};
use crate::http::problem::Problem;
use crate::spelling;

/// Reads an endpoint; with an old one, as a patch of it.
pub(super) fn spec_of(
    mut fields: Fields<'_>,
    old: Option<&EndpointSpec>,
    settings: &Settings,
) -> Result<EndpointSpec, Problem> {
    let target = target(&mut fields, old, settings);
    let uid_rule = |name: &str, uid: &str| text::uid(name, uid, Some(Kind::Endpoint));
    let description = fields.firm(
        "description",
        old.map(|old| old.description.clone()),
        Some(String::new()),
        checked(text::description),
    );
    let version =
        fields.firm("version", old.map(|old| old.version), Some(1), whole(1..=u64::from(u16::MAX)));
    let old_metadata = old.map(|old| old.metadata.clone());
    let uid = fields.nullable(&["uid"], old.and_then(|old| old.uid.clone()), checked(uid_rule));
    let throttle_rate = fields.nullable(
        &["throttleRate", "rateLimit"],
        old.and_then(|old| old.throttle_rate),
        whole(1..=u64::from(u16::MAX)),
    );
    let event_types = event_types(&mut fields, old, &settings.bounds);
    let channels = channels(&mut fields, old, &settings.bounds);
    let disabled = disabled(&mut fields, old);
    let metadata = fields.nullable(&["metadata"], old_metadata, metadata);
    let headers = fields.nullable(&["headers"], old.map(|old| old.headers.clone()), header_list);
    let retry = retry(&mut fields, old, settings);
    let breaker = breaker(&mut fields, old, settings);
    let timeout = fields.nullable(&["timeout"], old.and_then(|old| old.timeout), timeout);
    let ordering = fields.nullable(&["ordered"], old.map(|old| old.ordering), ordering);
    let contact_email = fields.nullable(
        &["contactEmail"],
        old.and_then(|old| old.contact_email.clone()),
        |name, value| EmailAddress::parse(name, &read_text(name, value)?),
    );
    let auto_replay = fields.nullable(&["autoReplay"], old.and_then(|old| old.auto_replay), flag);
    let health_check = fields.nullable(
        &["healthCheckUrl"],
        old.and_then(|old| old.health_check.clone()),
        |name, value| Target::parse(name, &read_text(name, value)?, settings.https_only),
    );
    fields.finish()?;
    Ok(EndpointSpec {
        // Without a fault above there is a target.
        target: target.ok_or_else(|| Invalid::new("url", "is required"))?,
        description: description.unwrap_or_default(),
        uid,
        version: version.unwrap_or(1),
        disabled,
        event_types,
        channels,
        throttle_rate,
        metadata: metadata.unwrap_or_else(|| "{}".to_owned()),
        headers: headers.unwrap_or_default(),
        retry,
        breaker,
        timeout,
        ordering: ordering.unwrap_or_default(),
        contact_email,
        auto_replay,
        health_check,
    })
}

fn target(
    fields: &mut Fields<'_>,
    old: Option<&EndpointSpec>,
    settings: &Settings,
) -> Option<Target> {
    fields.firm("url", old.map(|old| old.target.clone()), None, |name, value| {
        Target::parse(name, &read_text(name, value)?, settings.https_only)
    })
}

fn disabled(fields: &mut Fields<'_>, old: Option<&EndpointSpec>) -> Option<Disabled> {
    let was = old.and_then(|old| old.disabled);
    match fields.firm("disabled", old.map(|_| was.is_some()), Some(false), flag) {
        Some(true) => was.or(Some(Disabled::ByOwner)),
        _ => None,
    }
}

fn event_types(
    fields: &mut Fields<'_>,
    old: Option<&EndpointSpec>,
    bounds: &Bounds,
) -> Option<Vec<String>> {
    let old = old.and_then(|old| old.event_types.clone());
    fields.nullable(&["eventTypes", "filterTypes"], old, |name, value| {
        let mut names = texts(name, value)?;
        each(name, &names, text::event_type_name)?;
        names.sort_unstable();
        names.dedup();
        let most = bounds.event_types_per_endpoint;
        if names.is_empty() || names.len() > most {
            return Err(Invalid::new(
                name,
                format!("must hold 1 to {most} event types, or be null"),
            ));
        }
        Ok(names)
    })
}

fn channels(
    fields: &mut Fields<'_>,
    old: Option<&EndpointSpec>,
    bounds: &Bounds,
) -> Option<Vec<String>> {
    let old = old.and_then(|old| old.channels.clone());
    fields.nullable(&["channels"], old, |name, value| {
        let channels = texts(name, value)?;
        text::channels(name, &channels, bounds.channels_per_endpoint)?;
        Ok(channels)
    })
}

/// Reads custom headers: an object of names and values.
pub(super) fn header_list(
    name: &'static str,
    value: &Value,
) -> Result<Vec<(String, String)>, Invalid> {
    let refuse = || Invalid::new(name, "must be an object of texts");
    let map = value.as_object().ok_or_else(refuse)?;
    let pairs = map
        .iter()
        .map(|(key, value)| Ok((key.clone(), value.as_str().ok_or_else(refuse)?.to_owned())));
    let list = pairs.collect::<Result<Vec<_>, Invalid>>()?;
    headers::validate_all(&list).map(|()| list)
}

fn timeout(name: &'static str, value: &Value) -> Result<Duration, Invalid> {
    let span = span(name, value)?;
    let (least, most) = (limits::ATTEMPT_TIMEOUT_MIN, limits::ATTEMPT_TIMEOUT_MAX);
    if (least..=most).contains(&span) {
        return Ok(span);
    }
    let (least, most) = (spelling::duration_text(least), spelling::duration_text(most));
    Err(Invalid::new(name, format!("must be from {least} to {most}")))
}

fn ordering(name: &'static str, value: &Value) -> Result<Ordering, Invalid> {
    match value {
        Value::Bool(false) => Ok(Ordering::Unordered),
        Value::Bool(true) => Ok(Ordering::Ordered),
        Value::String(text) if text == "strict" => Ok(Ordering::Strict),
        _ => Err(Invalid::new(name, "must be true, false or \"strict\"")),
    }
}

/// Keeps the old policy when there is none in the body, and none when it is `null`.
fn policy<T: Clone + Default>(
    fields: &mut Fields<'_>,
    name: &'static str,
    old: Option<&T>,
    read: impl FnOnce(&mut Fields<'_>) -> T,
) -> T {
    if !fields.names(name) {
        return old.cloned().unwrap_or_default();
    }
    let Some(mut inner) = fields.object(name) else { return T::default() };
    let own = read(&mut inner);
    fields.absorb(inner);
    own
}

fn retry(
    fields: &mut Fields<'_>,
    old: Option<&EndpointSpec>,
    settings: &Settings,
) -> RetryOverrides {
    policy(fields, "retryPolicy", old.map(|old| &old.retry), |inner| {
        let own = RetryOverrides {
            strategy: inner.nullable(&["strategy"], None, spelled(spelling::strategy)),
            base: inner.nullable(&["base"], None, span),
            cap: inner.nullable(&["cap"], None, span),
            schedule: inner.nullable(&["schedule"], None, |name, value| {
                spelling::schedule(&texts(name, value)?).map_err(|rule| Invalid::new(name, rule))
            }),
            attempts_max: inner.nullable(&["attemptsMax"], None, whole(1..=1_000)),
            age_max: inner.nullable(&["ageMax"], None, span),
            retry_on: inner.nullable(&["retryOn"], None, retry_on),
            retry_after: inner.nullable(&["retryAfter"], None, spelled(spelling::retry_after_mode)),
        };
        let in_force = own.over(&settings.retry);
        let is_scheduled = in_force.strategy == Strategy::Schedule;
        if is_scheduled
            && settings.retry.strategy != Strategy::Schedule
            && own.schedule.is_none()
            && in_force.schedule.is_empty()
        {
            inner.fail("schedule", "is required; an empty one is one send");
        }
        if let Err(fault) = in_force.policy().validate() {
            inner.fail(&camel_case(policy_field(fault.option)), fault.rule);
        } else if own.schedule.is_some() && !is_scheduled {
            inner.fail("schedule", "has no effect unless strategy is `schedule`");
        }
        own
    })
}

fn breaker(
    fields: &mut Fields<'_>,
    old: Option<&EndpointSpec>,
    settings: &Settings,
) -> BreakerOverrides {
    policy(fields, "breaker", old.map(|old| &old.breaker), |inner| {
        let own = BreakerOverrides {
            failures: inner.nullable(&["failures"], None, whole(1..=1_000)),
            open_for: inner.nullable(&["openFor"], None, span),
            open_for_max: inner.nullable(&["openForMax"], None, span),
        };
        match own.over(&settings.breaker).validate() {
            Err(fault) => inner.fail(&camel_case(fault.option), fault.rule),
            Ok(()) => check_open_spans(inner, &own, &settings.breaker),
        }
        own
    })
}

/// What an endpoint leaves to the server must fit what it sets: a longer `openFor` would lift the
/// server's bound unasked.
fn check_open_spans(inner: &mut Fields<'_>, own: &BreakerOverrides, server: &BreakerConfig) {
    let first = own.open_for.unwrap_or(server.open_for);
    let longest = own.open_for_max.unwrap_or(server.open_for_max);
    if first <= longest {
        return;
    }
    let (first, longest) = (spelling::duration_text(first), spelling::duration_text(longest));
    if own.open_for.is_some() {
        inner.fail("openFor", format!("must not be above openForMax, which is {longest}"));
    } else {
        inner.fail("openForMax", format!("must not be below openFor, which is {first}"));
    }
}

fn span(name: &'static str, value: &Value) -> Result<Duration, Invalid> {
    spelling::duration(&read_text(name, value)?).map_err(|rule| Invalid::new(name, rule))
}

fn retry_on(name: &'static str, value: &Value) -> Result<domain::policy::RetryOn, Invalid> {
    let entries: Vec<String> = match value {
        Value::String(text) => text.split(',').map(|entry| entry.trim().to_owned()).collect(),
        Value::Array(entries) => entries
            .iter()
            .map(|entry| entry.as_str().map_or_else(|| entry.to_string(), str::to_owned))
            .collect(),
        _ => return Err(Invalid::new(name, "must be a text or a list")),
    };
    spelling::retry_on(&entries).map_err(|rule| Invalid::new(name, rule))
}

fn spelled<T>(
    read: impl FnOnce(&str) -> Result<T, String>,
) -> impl FnOnce(&'static str, &Value) -> Result<T, Invalid> {
    move |name, value| read(&read_text(name, value)?).map_err(|rule| Invalid::new(name, rule))
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut text, word| {
        let mut letters = word.chars();
        text.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        text.extend(letters);
        text
    })
}

#[cfg(test)]
mod tests;
