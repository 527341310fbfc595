//! Values to store: plain ones, and ones with every field set, for round trips.
//!
//! Never: chance; the same call gives the same value.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::application::ApplicationSpec;
use domain::attempt::{Answer, Attempt, Failure, FailureKind, Outcome};
use domain::dead_letter::DeadReason;
use domain::delivery::Pending;
use domain::edit::{Change, ChangeKind, Content, Edit};
use domain::email::EmailAddress;
use domain::endpoint::{Disabled, Endpoint, EndpointSpec, LiveSecret, Ordering};
use domain::event_type::EventType;
use domain::ids::{AppKey, EndpointKey, PublicId};
use domain::message::{ContentType, MessageSpec};
use domain::policy::{BreakerOverrides, RetryOn, RetryOverrides, Strategy};
use domain::target::Target;
use domain::trace::{Given, SpanId, TraceId};
use resilience::{Forced, RetryAfter, RetryAfterMode, Snapshot, Term, Timestamp};
use webhook::Secret;

use super::backend::START;
use crate::ledger::{Follow, LaneState, Outage, Suspended};

/// An application.
pub fn app(uid: Option<&str>) -> ApplicationSpec {
    ApplicationSpec {
        name: "Customer".to_owned(),
        uid: uid.map(str::to_owned),
        throttle_rate: None,
        metadata: "{}".to_owned(),
    }
}

/// A URL to send to.
pub fn target(text: &str) -> Target {
    Target::parse("url", text, false).unwrap()
}

/// An endpoint that leaves everything to the server.
pub fn endpoint() -> EndpointSpec {
    endpoint_to("https://example.com/hook")
}

/// The same with another URL.
pub fn endpoint_to(url: &str) -> EndpointSpec {
    EndpointSpec {
        target: target(url),
        description: String::new(),
        uid: None,
        version: 1,
        disabled: None,
        event_types: None,
        channels: None,
        throttle_rate: None,
        metadata: "{}".to_owned(),
        headers: Vec::new(),
        retry: RetryOverrides::default(),
        breaker: BreakerOverrides::default(),
        timeout: None,
        ordering: Ordering::Unordered,
        contact_email: None,
        auto_replay: None,
        health_check: None,
    }
}

/// An endpoint with every field set.
pub fn full_endpoint() -> EndpointSpec {
    EndpointSpec {
        target: target("https://example.com/a%2Fb?q=%20+ü"),
        description: "Zoë's <hook>\n".to_owned(),
        uid: Some("ep-1".to_owned()),
        version: u16::MAX,
        disabled: Some(Disabled::Gone),
        event_types: Some(vec!["user.created".to_owned(), "user.deleted".to_owned()]),
        channels: Some(vec!["eu".to_owned(), "us".to_owned()]),
        throttle_rate: Some(u16::MAX),
        metadata: r#"{"a":"b"}"#.to_owned(),
        headers: vec![
            ("X-Key".to_owned(), "one".to_owned()),
            ("x-empty".to_owned(), String::new()),
        ],
        retry: full_retry(),
        breaker: BreakerOverrides {
            failures: Some(9),
            open_for: Some(Duration::from_millis(1_500)),
            open_for_max: Some(Duration::from_secs(999)),
        },
        timeout: Some(Duration::from_millis(7_250)),
        ordering: Ordering::Strict,
        contact_email: Some(
            EmailAddress::parse("contactEmail", "o'zoe+hooks@example.com").unwrap(),
        ),
        auto_replay: Some(false),
        health_check: Some(target("https://example.com/health?a=%20")),
    }
}

fn full_retry() -> RetryOverrides {
    RetryOverrides {
        strategy: Some(Strategy::Schedule),
        base: Some(Duration::from_millis(250)),
        cap: Some(Duration::from_secs(77)),
        schedule: Some(vec![Duration::from_secs(5), Duration::ZERO, Duration::from_millis(1)]),
        attempts_max: Some(u32::MAX),
        age_max: Some(Duration::from_secs(7 * 86_400)),
        retry_on: Some(RetryOn::Listed(vec![(400, 404), (500, 599)])),
        retry_after: Some(RetryAfterMode::AtLeast),
    }
}

/// An endpoint as stored, the only one of its application; nothing signs for it.
pub fn stored_endpoint(spec: EndpointSpec) -> Endpoint {
    Endpoint {
        key: EndpointKey(7),
        id: PublicId::new(1, [0; 12]),
        app: AppKey(1),
        app_id: PublicId::new(1, [0; 12]),
        spec,
        secrets: Vec::new(),
        version: 1,
        created_at: START,
        updated_at: START,
    }
}

/// A secret; even numbers sign with HMAC, odd ones with ed25519.
pub fn secret(number: u8) -> LiveSecret {
    let secret = if number.is_multiple_of(2) {
        Secret::from_random_hmac([number; 24])
    } else {
        Secret::from_random_ed25519([number; 32])
    };
    LiveSecret { secret, expires_at: None }
}

/// Asserts that two endpoints are equal in every field; some of their types have no equality of
/// their own.
pub fn assert_same_endpoint(a: &Endpoint, b: &Endpoint) {
    let secrets = |endpoint: &Endpoint| -> Vec<_> {
        let secrets = endpoint.secrets.iter();
        secrets.map(|live| (live.secret.to_private_text(), live.expires_at)).collect()
    };
    assert_eq!((a.key, a.id, a.app, a.app_id), (b.key, b.id, b.app, b.app_id));
    assert_eq!((a.version, a.created_at, a.updated_at), (b.version, b.created_at, b.updated_at));
    assert_eq!(secrets(a), secrets(b));
    assert_same_spec(&a.spec, &b.spec);
}

/// Asserts that what the caller decided is equal in every field.
pub fn assert_same_spec(a: &EndpointSpec, b: &EndpointSpec) {
    assert_eq!(a.target.as_str(), b.target.as_str());
    assert_eq!((&a.description, &a.uid, a.version), (&b.description, &b.uid, b.version));
    assert_eq!((a.disabled, a.ordering, a.timeout), (b.disabled, b.ordering, b.timeout));
    assert_eq!((&a.event_types, &a.channels), (&b.event_types, &b.channels));
    assert_eq!((a.throttle_rate, &a.metadata), (b.throttle_rate, &b.metadata));
    assert_eq!((&a.headers, &a.retry, &a.breaker), (&b.headers, &b.retry, &b.breaker));
}

/// A message.
pub fn message() -> MessageSpec {
    MessageSpec {
        event_type: "user.created".to_owned(),
        event_id: None,
        channels: Vec::new(),
        tags: Vec::new(),
        payload: Bytes::from_static(br#"{"b": 1, "a": 1.0}"#),
        content_type: ContentType::Json,
        retention_hours: None,
        deliver_at: None,
        trace: None,
    }
}

/// A message with every field set.
pub fn full_message() -> MessageSpec {
    MessageSpec {
        event_type: "user.deleted".to_owned(),
        event_id: Some("event-1".to_owned()),
        channels: vec!["eu".to_owned(), "us".to_owned()],
        tags: vec!["blue".to_owned(), "Grün, hell".to_owned()],
        payload: Bytes::from_static(b"a=1&b=2"),
        content_type: ContentType::Other("application/x-www-form-urlencoded".to_owned()),
        retention_hours: Some(5 * 24),
        deliver_at: Some(START.plus(Duration::from_secs(3_600))),
        trace: Some(Arc::new(given())),
    }
}

/// A trace that a caller is in.
pub fn given() -> Given {
    Given {
        trace: TraceId([0xA1; 16]),
        parent: SpanId([0xF2; 8]),
        flags: 1,
        state: "vendor=value,other=1".to_owned(),
    }
}

/// An edit with every field set.
pub fn edit() -> Edit {
    let change = |kind, place: &str| Change { kind, place: place.to_owned() };
    Edit {
        by: "org_someone".to_owned(),
        before: Content { bytes: 17, hash: [0xA5; 32] },
        after: Content { bytes: 1 << 20, hash: [0x5A; 32] },
        changes: vec![
            change(ChangeKind::Added, "/a~1b/0"),
            change(ChangeKind::Changed, ""),
            change(ChangeKind::Removed, "/\u{e9}"),
        ],
        more: 1_000,
    }
}

/// Payloads and bodies that a store must not touch.
pub fn hard_bytes() -> Vec<Bytes> {
    vec![
        Bytes::new(),
        Bytes::from_static(b"{\"a\":\"x\\u0000y\",\"b\\u0000\":\"\\\\u0000\"}"),
        Bytes::from_static(b"{\"a\":\"\\ud800\",\"b\":\"\\udc00\\ud800\"}"),
        Bytes::from_static(b"\0"),
        Bytes::from_static(b"a\0b\0"),
        Bytes::from_static(b"\xFF\xFE\xFD"),
        Bytes::from_static(b"caf\xE9, cut: \xF0\x9F\x98"),
        Bytes::from_static(b" {\"b\":1,\r\n\t\"a\":1.00e+2} "),
        (0..1 << 20).map(|at: u32| at.to_le_bytes()[usize::from(at.is_multiple_of(7))]).collect(),
    ]
}

/// The next send of `row` was answered with `status`.
pub fn answered(row: &Pending, status: u16, started_at: Timestamp) -> Attempt {
    let body = Bytes::from_static(b"ok");
    let (retry_after, cut, redirect_origin) = (RetryAfter::Absent, None, None);
    let answer = Answer { status, retry_after, body, cut, redirect_origin };
    attempt(row, started_at, Outcome::Answered(answer))
}

/// The next send of `row` timed out.
pub fn timed_out(row: &Pending, started_at: Timestamp) -> Attempt {
    let failure = Failure { kind: FailureKind::Timeout, text: "no answer in time".to_owned() };
    attempt(row, started_at, Outcome::Failed(failure))
}

/// The next send of `row`.
pub fn attempt(row: &Pending, started_at: Timestamp, outcome: Outcome) -> Attempt {
    Attempt {
        number: row.sends + 1,
        started_at,
        took: Duration::from_millis(125),
        trigger: row.trigger,
        outcome,
        resent: false,
    }
}

/// Given up because it was refused.
pub fn dead() -> Follow {
    Follow::Dead { reason: DeadReason::Rejected, error: Some("answered 404".to_owned()) }
}

/// Tried again at `due_at`.
pub fn retry(due_at: Timestamp, budget_used: u32) -> Follow {
    let (tried_at, delay) = (due_at, Duration::from_millis(2_500));
    Follow::Retry { due_at, tried_at, budget_used, delay, term: Term::Backoff }
}

/// A lane state with every field set.
pub fn lane(endpoint: EndpointKey) -> LaneState {
    LaneState {
        endpoint,
        breaker: Snapshot {
            open_until: Some(START.plus(Duration::from_micros(1_234_567))),
            generation: 41,
            open_for: Duration::from_millis(60_500),
            failing_since: Some(START.minus(Duration::from_secs(9))),
            forced: Some(Forced::Open),
            since: START.minus(Duration::from_micros(1)),
        },
        hold_until: Some(START.plus(Duration::from_secs(5))),
        throttled_rounds: 3,
        rejected_until: Some(START.plus(Duration::from_secs(7))),
        rejected_for: Duration::from_secs(30),
        rejected_since: Some(START.minus(Duration::from_micros(7))),
        warned: true,
        suspended: Some(Suspended {
            since: START.minus(Duration::from_micros(3)),
            probe_at: START.plus(Duration::from_micros(599_999_999)),
        }),
        outage: Some(Outage {
            since: START.minus(Duration::from_secs(9)),
            until: Some(START.minus(Duration::from_micros(5))),
        }),
    }
}

/// A lane state with as little as there can be.
pub fn bare_lane(endpoint: EndpointKey) -> LaneState {
    LaneState {
        endpoint,
        breaker: Snapshot {
            open_until: None,
            generation: 0,
            open_for: Duration::from_secs(30),
            failing_since: None,
            forced: None,
            since: START,
        },
        hold_until: None,
        throttled_rounds: 0,
        rejected_until: None,
        rejected_for: Duration::ZERO,
        rejected_since: None,
        warned: false,
        suspended: None,
        outage: None,
    }
}

/// An event type.
pub fn event_type(name: &str) -> EventType {
    EventType {
        name: name.to_owned(),
        description: String::new(),
        archived: false,
        deprecated: false,
        schemas: None,
        feature_flag: None,
        created_at: START,
        updated_at: START,
    }
}
