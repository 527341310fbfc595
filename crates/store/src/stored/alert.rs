//! Rules, routes, incidents and notifications, packed in a column each.
//!
//! The key of a route is sealed, with a main key, for its name, so that one cannot be moved to
//! another route.
//! Never: a credential in an error, or a number with a second meaning.

use domain::alert::evaluate::Telling;
use domain::alert::incident::{Incident, Phase, Told};
use domain::alert::notice::{Notice, Occasion};
use domain::alert::reading::Failing;
use domain::alert::route::{Channel, Route};
use domain::alert::rule::{Condition, Rule, Severity};
use domain::dead_letter::DeadReason;
use domain::email::EmailAddress;
use domain::ids::PublicId;
use domain::target::Target;
use resilience::Timestamp;
use webhook::Secret;

use super::codes::Code;
use super::fault::unreadable;
use super::pack::{Packer, Unpacker};
use super::seal::{open, seal};
use crate::StoreError;
use crate::cipher::Cipher;

impl Code for Severity {
    const CODES: &'static [(Self, i64)] =
        &[(Self::Low, 1), (Self::Medium, 2), (Self::High, 3), (Self::Critical, 4)];
}

impl Code for Phase {
    const CODES: &'static [(Self, i64)] =
        &[(Self::Pending, 0), (Self::Firing, 1), (Self::Resolved, 2)];
}

impl Code for Occasion {
    const CODES: &'static [(Self, i64)] = &[
        (Self::Firing, 1),
        (Self::Updated, 2),
        (Self::Acknowledged, 3),
        (Self::Resolved, 4),
        (Self::Test, 5),
        (Self::TestOver, 6),
    ];
}

/// A rule, but for its name.
pub(crate) fn rule(rule: &Rule) -> Vec<u8> {
    let mut packer = Packer::default();
    pack_condition(&mut packer, &rule.condition);
    put_code(&mut packer, rule.severity);
    packer.number(u64::from(rule.enabled)).span(rule.hold).span(rule.clear_after);
    packer.number(u64::from(rule.clear_percent));
    packer.maybe(rule.routes.as_ref(), |packer, routes| {
        packer.list(routes, |packer, route| text(packer, route));
    });
    packer.maybe(rule.title.as_deref(), text);
    packer.maybe(rule.runbook.as_ref().map(Target::as_str), text);
    packer.done()
}

pub(crate) fn read_rule(name: String, bytes: &[u8]) -> Result<Rule, StoreError> {
    let mut packed = Unpacker::new(bytes);
    let read = Rule {
        name,
        condition: read_condition(&mut packed)?,
        severity: code(&mut packed)?,
        enabled: packed.number()? == 1,
        hold: packed.span()?,
        clear_after: packed.span()?,
        clear_percent: packed.small()?,
        routes: packed.maybe(|packed| packed.list(Unpacker::text))?,
        title: packed.maybe(Unpacker::text)?,
        runbook: packed.maybe(target)?,
    };
    whole(&packed, read)
}

fn pack_condition(packer: &mut Packer, condition: &Condition) {
    match condition {
        Condition::DeadLetters { above, window, reasons } => {
            packer.number(1).number(*above).span(*window);
            packer.list(reasons, |packer, reason| put_code(packer, *reason));
        }
        Condition::FailureRatio { above_percent, window, count_min } => {
            packer.number(2).number(u64::from(*above_percent)).span(*window).number(*count_min);
        }
        Condition::EndpointFailing { after } => {
            packer.number(3).span(*after);
        }
        Condition::OldestDue { above } => {
            packer.number(4).span(*above);
        }
        Condition::NothingDelivered { window, count_min } => {
            packer.number(5).span(*window).number(*count_min);
        }
        Condition::SendingPaused => {
            packer.number(6);
        }
    }
}

fn read_condition(packed: &mut Unpacker<'_>) -> Result<Condition, StoreError> {
    Ok(match packed.number()? {
        1 => Condition::DeadLetters {
            above: packed.number()?,
            window: packed.span()?,
            reasons: packed.list(code::<DeadReason>)?,
        },
        2 => Condition::FailureRatio {
            above_percent: packed.small()?,
            window: packed.span()?,
            count_min: packed.number()?,
        },
        3 => Condition::EndpointFailing { after: packed.span()? },
        4 => Condition::OldestDue { above: packed.span()? },
        5 => Condition::NothingDelivered { window: packed.span()?, count_min: packed.number()? },
        6 => Condition::SendingPaused,
        _ => return Err(unreadable()),
    })
}

/// A route, but for its name.
pub(crate) fn route(route: &Route, cipher: Option<&Cipher>) -> Result<Vec<u8>, StoreError> {
    let mut packer = Packer::default();
    match &route.channel {
        Channel::PagerDuty { url, routing_key } => {
            packer.number(1).text(url.as_str()).text(routing_key);
        }
        Channel::Opsgenie { url, api_key } => {
            packer.number(2).text(url.as_str()).text(api_key);
        }
        Channel::Slack { url } => {
            packer.number(3).text(url.as_str());
        }
        Channel::Teams { url } => {
            packer.number(4).text(url.as_str());
        }
        Channel::Webhook { url, secret } => {
            packer.number(5).text(url.as_str()).text(&secret.to_private_text());
        }
        Channel::Email { to } => {
            packer.number(6).list(to, |packer, address| text(packer, address.as_str()));
        }
    }
    seal(&packer.done(), route.name.as_bytes(), cipher)
}

pub(crate) fn read_route(
    name: String,
    stored: &[u8],
    cipher: Option<&Cipher>,
) -> Result<Route, StoreError> {
    let opened = open(stored, name.as_bytes(), cipher)?;
    let mut packed = Unpacker::new(&opened);
    let channel = match packed.number()? {
        1 => Channel::PagerDuty { url: target(&mut packed)?, routing_key: packed.text()? },
        2 => Channel::Opsgenie { url: target(&mut packed)?, api_key: packed.text()? },
        3 => Channel::Slack { url: target(&mut packed)? },
        4 => Channel::Teams { url: target(&mut packed)? },
        5 => Channel::Webhook {
            url: target(&mut packed)?,
            secret: Secret::parse(&packed.text()?).map(Box::new).map_err(|_| unreadable())?,
        },
        6 => Channel::Email {
            to: packed.list(|packed| {
                EmailAddress::parse("to", &packed.text()?).map_err(|_| unreadable())
            })?,
        },
        _ => return Err(unreadable()),
    };
    whole(&packed, Route { name, channel })
}

/// What of an incident has no column of its own.
pub(crate) fn incident(incident: &Incident) -> Vec<u8> {
    let mut packer = Packer::default();
    put_code(&mut packer, incident.severity);
    time(&mut packer, incident.since);
    packer.maybe(incident.fired_at, time).maybe(incident.clear_since, time);
    packer.number(u64::from(incident.flaps));
    packer.list(&incident.told.routes, |packer, route| text(packer, route));
    packer.maybe(incident.told.at, time).number(incident.told.count);
    packer.text(&incident.title);
    packer.done()
}

/// The columns of an incident.
pub(crate) struct Columns {
    pub(crate) id: PublicId,
    pub(crate) rule: String,
    pub(crate) phase: Phase,
    pub(crate) resolved_at: Option<Timestamp>,
    pub(crate) acknowledged_at: Option<Timestamp>,
}

pub(crate) fn read_incident(columns: Columns, bytes: &[u8]) -> Result<Incident, StoreError> {
    let mut packed = Unpacker::new(bytes);
    let Columns { id, rule, phase, resolved_at, acknowledged_at } = columns;
    let read = Incident {
        id,
        rule,
        severity: code(&mut packed)?,
        phase,
        since: read_time(&mut packed)?,
        fired_at: packed.maybe(read_time)?,
        clear_since: packed.maybe(read_time)?,
        resolved_at,
        acknowledged_at,
        flaps: packed.small()?,
        told: Told {
            routes: packed.list(Unpacker::text)?,
            at: packed.maybe(read_time)?,
            count: packed.number()?,
        },
        title: packed.text()?,
    };
    whole(&packed, read)
}

/// A notification.
pub(crate) fn telling(telling: &Telling) -> Vec<u8> {
    let mut packer = Packer::default();
    let notice = &telling.notice;
    packer.text(&telling.route);
    put_code(&mut packer, notice.occasion);
    id(&mut packer, notice.incident);
    packer.text(&notice.rule).text(&notice.condition);
    put_code(&mut packer, notice.severity);
    packer.text(&notice.title);
    packer.list(&notice.facts, |packer, (name, fact)| {
        packer.text(name).text(fact);
    });
    packer.list(&notice.subjects, |packer, it| {
        id(packer, it.endpoint);
        packer.maybe(it.endpoint_uid.as_deref(), text).text(&it.origin);
        id(packer, it.app);
        packer.text(&it.app_name);
        time(packer, it.since);
    });
    packer.number(notice.more).maybe(notice.runbook.as_deref(), text);
    time(&mut packer, notice.since);
    time(&mut packer, notice.at);
    packer.text(&notice.dedup_key);
    packer.done()
}

pub(crate) fn read_telling(bytes: &[u8]) -> Result<Telling, StoreError> {
    let mut packed = Unpacker::new(bytes);
    let packed = &mut packed;
    let route = packed.text()?;
    let notice = Notice {
        occasion: code(packed)?,
        incident: read_id(packed)?,
        rule: packed.text()?,
        condition: packed.text()?,
        severity: code(packed)?,
        title: packed.text()?,
        facts: packed.list(|packed| Ok((packed.text()?, packed.text()?)))?,
        subjects: packed.list(|packed| {
            Ok(Failing {
                endpoint: read_id(packed)?,
                endpoint_uid: packed.maybe(Unpacker::text)?,
                origin: packed.text()?,
                app: read_id(packed)?,
                app_name: packed.text()?,
                since: read_time(packed)?,
            })
        })?,
        more: packed.number()?,
        runbook: packed.maybe(Unpacker::text)?,
        since: read_time(packed)?,
        at: read_time(packed)?,
        dedup_key: packed.text()?,
    };
    whole(packed, Telling { route, notice })
}

/// What of a URL may be told: `scheme://host:port`.
pub(crate) fn origin(url: &str) -> String {
    Target::parse("url", url, false).map(|target| target.origin()).unwrap_or_default()
}

fn whole<T>(packed: &Unpacker<'_>, read: T) -> Result<T, StoreError> {
    if packed.is_empty() { Ok(read) } else { Err(unreadable()) }
}

fn text(packer: &mut Packer, value: &str) {
    packer.text(value);
}

fn target(packed: &mut Unpacker<'_>) -> Result<Target, StoreError> {
    Target::parse("url", &packed.text()?, false).map_err(|_| unreadable())
}

fn put_code<T: Code>(packer: &mut Packer, value: T) {
    packer.number(value.code().cast_unsigned());
}

fn code<T: Code>(packed: &mut Unpacker<'_>) -> Result<T, StoreError> {
    T::of(packed.number()?.cast_signed())
}

fn time(packer: &mut Packer, at: Timestamp) {
    packer.number(at.as_micros().cast_unsigned());
}

fn read_time(packed: &mut Unpacker<'_>) -> Result<Timestamp, StoreError> {
    Ok(Timestamp::from_micros(packed.number()?.cast_signed()))
}

fn id(packer: &mut Packer, id: PublicId) {
    packer.list(id.as_bytes(), |packer, byte| {
        packer.number(u64::from(*byte));
    });
}

fn read_id(packed: &mut Unpacker<'_>) -> Result<PublicId, StoreError> {
    let bytes = packed.list(Unpacker::small::<u8>)?;
    bytes.try_into().map(PublicId::from_bytes).map_err(|_| unreadable())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_route_needs_its_key_and_its_name() {
        let url = Target::parse("url", "https://events.example/v2", false).unwrap();
        let channel = Channel::PagerDuty { url, routing_key: "r0uting-key".into() };
        let made = Route { name: "ops".into(), channel };
        let cipher = Cipher::from_main_key("key");
        let sealed = route(&made, Some(&cipher)).unwrap();
        assert!(!sealed.windows(7).any(|piece| piece == b"r0uting"));
        let opened = read_route("ops".into(), &sealed, Some(&cipher)).unwrap();
        assert_eq!(route(&opened, None), route(&made, None));
        assert!(read_route("dev".into(), &sealed, Some(&cipher)).is_err());
        assert!(read_route("ops".into(), &sealed, None).is_err());
    }

    #[test]
    fn damage_is_an_error() {
        for bytes in [&[][..], &[9], &[0xFF; 30]] {
            assert!(read_rule("a".into(), bytes).is_err());
            assert!(read_telling(bytes).is_err());
        }
    }
}
