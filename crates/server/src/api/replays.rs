//! Much at once for one endpoint, or one application: what failed, what is missing, what was sent,
//! and the end of all payloads.
//!
//! Each begins a background task.
//! Never: send anything from here.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::application::AppSnapshot;
use domain::error::Invalid;
use domain::limits::{RECOVER_SLACK, RECOVER_SPAN_MAX};
use domain::text;
use resilience::Timestamp;
use serde_json::Value;
use store::history::{MessageFilter, SentFilter};
use store::tasks::{During, TaskSpec, Work};

use super::attempted::STANDINGS;
use super::inputs::task::{BulkReplayIn, RecoverIn, ReplayIn};
use super::operation::{Operation, Token};
use super::own::{self, Names};
use super::resend::endpoint_disabled;
use super::tasks::begin;
use super::views::sent::status;
use super::views::task::TaskOut;
use crate::http::auth::Auth;
use crate::http::extract::{Place, Received};
use crate::http::fields::{Fields, checked, each, texts, time, whole, whole_of};
use crate::http::problem::Problem;
use crate::http::tokens::Caller;
use crate::spelling::one_of;
use crate::state::Shared;

type Answered = Result<Response, Problem>;

/// Classes of status codes; 0 for no answer.
const CLASSES: [u16; 6] = [0, 100, 200, 300, 400, 500];

pub(super) const RECOVER: Operation = Operation::new(
    "v1.endpoint.recover",
    "Puts back what an endpoint failed to take since a time.",
)
.takes::<RecoverIn>()
.once()
.gives::<TaskOut>(202)
.or("conflict")
.or("endpoint_disabled");

/// `POST /app/{app}/endpoint/{endpoint}/recover`
pub(super) async fn recover(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(names): Place<Names>,
    received: Received,
) -> Answered {
    let earliest = shared.now().minus(RECOVER_SPAN_MAX + RECOVER_SLACK);
    let work = |fields: &mut Fields<'_>, during: During| {
        if during.since.is_some_and(|since| since < earliest) {
            let days = RECOVER_SPAN_MAX.as_secs() / 86_400;
            fields.fail("since", format!("must not be more than {days} days ago"));
        }
        Work::Recover(during)
    };
    of_span(&shared, (&caller, &received), names, work).await
}

pub(super) const MISSING: Operation = Operation::new(
    "v1.endpoint.replay-missing",
    "Sends an endpoint what it never got since a time.",
)
.takes::<ReplayIn>()
.once()
.gives::<TaskOut>(202)
.or("conflict")
.or("endpoint_disabled");

/// `POST /app/{app}/endpoint/{endpoint}/replay-missing`
pub(super) async fn missing(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(names): Place<Names>,
    received: Received,
) -> Answered {
    of_span(&shared, (&caller, &received), names, |_, during| Work::Missing(during)).await
}

pub(super) const AGAIN: Operation = Operation::new(
    "v1.endpoint.bulk-replay",
    "Sends an endpoint again what it was sent since a time.",
)
.takes::<BulkReplayIn>()
.once()
.gives::<TaskOut>(202)
.or("conflict")
.or("endpoint_disabled");

/// `POST /app/{app}/endpoint/{endpoint}/bulk-replay`
pub(super) async fn again(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(names): Place<Names>,
    received: Received,
) -> Answered {
    let work = |fields: &mut Fields<'_>, during: During| {
        let message = MessageFilter {
            channel: fields.nullable(&["channel"], None, checked(text::channel)),
            tag: fields.nullable(&["tag"], None, checked(text::tag)),
            event_types: event_types(fields),
            before: during.until,
            after: during.since,
        };
        let standing = fields.nullable(&["status"], None, whole::<u8>(0..=4));
        let class = fields.nullable(&["statusCodeClass"], None, class);
        let mut standings = standing.map_or_else(Vec::new, |_| STANDINGS.to_vec());
        standings.retain(|it| standing.is_none_or(|asked| status(*it, true).0 == asked));
        Work::Again(SentFilter { message, standings, payloads: false }, class)
    };
    of_span(&shared, (&caller, &received), names, work).await
}

pub(super) const EXPUNGE_ALL: Operation = Operation::new(
    "v1.message.expunge-all-contents",
    "Deletes the payloads of all messages of an application.",
)
.token(Token::Org)
.once()
.gives::<TaskOut>(202)
.or("conflict");

/// `POST /app/{app}/msg/expunge-all-contents`
pub(super) async fn expunge_all(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(app): Place<String>,
    received: Received,
) -> Answered {
    caller.org_only()?;
    let app = own::app(&shared, &caller, &app).await?;
    begin(&shared, (&caller, &received), spec(&caller, &app, Work::Purge)).await
}

/// A task about what happened to an endpoint in a span of time; the endpoint must not be switched
/// off. `work` reads what else the body says.
async fn of_span(
    shared: &Arc<Shared>,
    (caller, received): (&Caller, &Received),
    (app, endpoint): Names,
    work: impl FnOnce(&mut Fields<'_>, During) -> Work,
) -> Answered {
    let mut fields = Fields::parse(&received.body)?;
    let during = span(&mut fields, shared.now());
    let work = work(&mut fields, during);
    fields.finish()?;
    let app = own::app(shared, caller, &app).await?;
    let endpoint = own::endpoint_of(&app, &endpoint)?;
    if endpoint.spec.disabled.is_some() {
        return Err(endpoint_disabled());
    }
    let spec = TaskSpec { endpoint: Some(endpoint.key), ..spec(caller, &app, work) };
    begin(shared, (caller, received), spec).await
}

/// A task about all of an application, at the rate of the settings.
pub(super) fn spec(caller: &Caller, app: &AppSnapshot, work: Work) -> TaskSpec {
    let (org, app) = (caller.org, app.app.key);
    TaskSpec { org, app, endpoint: None, work, rate_per_s: None, total: None }
}

/// Reads `since`, which must be given and past, and `until`.
fn span(fields: &mut Fields<'_>, now: Timestamp) -> During {
    let since = fields.firm("since", None, None, time);
    if since.is_some_and(|since| since > now) {
        fields.fail("since", "must not be in the future");
    }
    with_until(fields, since)
}

/// Reads `since` and `until`, either of which may be left out.
pub(super) fn during(fields: &mut Fields<'_>) -> During {
    let since = fields.nullable(&["since"], None, time);
    with_until(fields, since)
}

fn with_until(fields: &mut Fields<'_>, since: Option<Timestamp>) -> During {
    let until = fields.nullable(&["until"], None, time);
    if until.is_some_and(|until| since.is_some_and(|since| until <= since)) {
        fields.fail("until", "must be later than since");
    }
    During { since, until }
}

/// Reads `eventTypes`; none for all.
pub(super) fn event_types(fields: &mut Fields<'_>) -> Vec<String> {
    fields.nullable(&["eventTypes"], None, type_names).unwrap_or_default()
}

/// Names of event types.
pub(super) fn type_names(name: &'static str, value: &Value) -> Result<Vec<String>, Invalid> {
    let names = texts(name, value)?;
    each(name, &names, text::event_type_name)?;
    Ok(names)
}

fn class(name: &str, value: &Value) -> Result<u16, Invalid> {
    let found = CLASSES.into_iter().find(|class| whole_of(value) == Some(u64::from(*class)));
    found.ok_or_else(|| {
        let names = CLASSES.map(|class| class.to_string());
        Invalid::new(name, one_of(&names.each_ref().map(String::as_str)))
    })
}
