//! Tokens of applications: made for one, ended one by one or all at once.
//!
//! A token that was ended is refused from the answer on, also after a restart.
//! Never: show a token again, or keep more of it than a hash.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use domain::application::AppSnapshot;
use domain::error::Invalid;
use domain::ids::Kind;
use domain::limits::{APP_TOKEN_MAX, APP_TOKEN_MIN};
use http::StatusCode;
use resilience::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use store::directory::IdOrUid;
use store::revocations::{Expired, Revoked};

use super::inputs::token::{AppPortalAccessIn, ApplicationTokenExpireIn};
use super::messages::{check_application, create_application};
use super::once::{once, once_read};
use super::operation::{Operation, Token};
use super::own;
use crate::http::auth::Auth;
use crate::http::capabilities::capabilities;
use crate::http::extract::{Place, Received};
use crate::http::fields::{Fields, flag, text, texts, whole};
use crate::http::idempotency::{Done, Made, Ticket};
use crate::http::problem::Problem;
use crate::http::tokens::{Caller, Grant, Tokens};
use crate::state::Shared;

type Answered = Result<Response, Problem>;

/// Names in a list, and characters of a session, at most.
const NAMES_MAX: usize = 100;
const NAME_CHARS_MAX: usize = 256;

/// A token and a link with it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AppPortalAccessOut")]
struct AccessOut {
    url: String,
    token: String,
}

/// What an answer is made of again, so that no token is stored.
#[derive(Serialize, Deserialize)]
struct Kept {
    origin: String,
    claims: Box<RawValue>,
}

impl Kept {
    fn shown(&self, tokens: &Tokens) -> Option<AccessOut> {
        let token = tokens.signed(&self.claims)?;
        Some(AccessOut { url: format!("{}/portal/#key={token}", self.origin), token })
    }

    /// The answer again; `None` once its token is good no more: then another one is made.
    fn read(stored: &[u8], tokens: &Tokens, now: Timestamp) -> Option<Bytes> {
        let shown = serde_json::from_slice::<Self>(stored).ok()?.shown(tokens)?;
        tokens.check(&shown.token, now).ok()?;
        serde_json::to_vec(&shown).ok().map(Bytes::from)
    }
}

pub(super) const PORTAL: Operation = Operation::new(
    "v1.authentication.app-portal-access",
    "Makes a token for an application, and a link with it.",
)
.token(Token::Org)
.may_take::<AppPortalAccessIn>()
.once()
.gives::<AccessOut>(200);
/// The same under an older path.
pub(super) const PORTAL_OLD: Operation =
    PORTAL.deprecated("v1.authentication.dashboard-access", "The same under an older path.");

/// `POST /auth/app-portal-access/{app}`; also under the older name, and then without a body too.
pub(super) async fn portal(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(app): Place<String>,
    received: Received,
) -> Answered {
    caller.org_only()?;
    let mut fields = Fields::parse(body_of(&received))?;
    let grant = grant(&mut fields);
    let application = fields.nullable_raw(&["application"], None, |_, raw| Ok(raw));
    fields.finish()?;
    application.map_or(Ok(()), check_application)?;
    let app = app_or_new(&shared, &caller, &app, application).await?;
    let origin = received.origin(&shared.origin);
    let (peyk, place) = (Arc::clone(&shared), [app.app.key.0.cast_unsigned()]);
    let work = async move |_| {
        let (org, id) = (app.app.org.text(Kind::Organisation), app.app.id.text(Kind::Application));
        let claims = Tokens::claims((&org, Some(&id)), &grant, peyk.now());
        let kept = Kept { origin, claims: claims.ok_or_else(Problem::overloaded)? };
        let shown = kept.shown(&peyk.tokens).ok_or_else(Problem::overloaded)?;
        let done = Done::json(StatusCode::OK, &shown, Made::Application(app.app.key));
        Ok(done.kept_as(&kept))
    };
    let peyk = Arc::clone(&shared);
    let read = Box::new(move |stored: Bytes| Kept::read(&stored, &peyk.tokens, peyk.now()));
    once_read(&shared, (&caller, &received), &place, read, work).await
}

/// The body, which may be left out.
fn body_of(received: &Received) -> &[u8] {
    let body = received.body.trim_ascii();
    if body.is_empty() { b"{}" } else { body }
}

fn grant(fields: &mut Fields<'_>) -> Grant {
    let range = APP_TOKEN_MIN.as_secs()..=APP_TOKEN_MAX.as_secs();
    let secs = fields.nullable(&["expiry"], None, whole(range));
    Grant {
        capabilities: fields.nullable(&["capabilities"], None, capabilities),
        feature_flags: fields.nullable(&["featureFlags"], None, names).unwrap_or_default(),
        session: fields.nullable(&["sessionId"], None, session),
        read_only: fields.nullable(&["readOnly"], None, flag).unwrap_or_default(),
        good_for: secs.map_or(APP_TOKEN_MAX, Duration::from_secs),
    }
}

fn names(name: &str, value: &Value) -> Result<Vec<String>, Invalid> {
    let names = texts(name, value)?;
    if names.len() > NAMES_MAX {
        return Err(Invalid::new(name, format!("must have at most {NAMES_MAX} entries")));
    }
    names.iter().try_for_each(|entry| checked(name, entry))?;
    Ok(names)
}

fn session(name: &str, value: &Value) -> Result<String, Invalid> {
    let session = text(name, value)?;
    checked(name, &session).map(|()| session)
}

fn checked(name: &str, text: &str) -> Result<(), Invalid> {
    if (1..=NAME_CHARS_MAX).contains(&text.chars().count()) {
        return Ok(());
    }
    Err(Invalid::new(name, format!("must have 1 to {NAME_CHARS_MAX} characters")))
}

/// The application of the path, or the one that was brought along for it.
async fn app_or_new(
    shared: &Shared,
    caller: &Caller,
    text: &str,
    new: Option<&RawValue>,
) -> Result<AppSnapshot, Problem> {
    let which = own::id_or_uid(Kind::Application, text);
    if let Some(new) = new
        && let IdOrUid::Uid(_) = which
        && shared.engine.stores().directory.app(caller.org, which.clone()).await?.is_none()
    {
        create_application(shared, caller, &which, new).await?;
    }
    own::app(shared, caller, text).await
}

pub(super) const LOGOUT: Operation =
    Operation::new("v1.authentication.logout", "Ends the token that it is asked with.").ends(204);

/// `POST /auth/logout`
pub(super) async fn logout(State(shared): State<Arc<Shared>>, Auth(caller): Auth) -> Answered {
    if caller.app.is_none() {
        let detail = "Only tokens of applications can be logged out";
        return Err(Problem::bad_request("bad_token", detail));
    }
    let revoked = Revoked { hash: caller.hash, until: caller.until };
    // Goes on when the caller hangs up: what is stored must be in force.
    let ending = tokio::spawn(async move {
        shared.engine.stores().revocations.revoke(revoked.clone()).await?;
        shared.tokens.revocations().revoke(&revoked, shared.now());
        Ok::<_, Problem>(StatusCode::NO_CONTENT.into_response())
    });
    ending.await.unwrap_or_else(|_| Err(Problem::overloaded()))
}

pub(super) const EXPIRE_ALL: Operation = Operation::new(
    "v1.authentication.expire-all",
    "Ends tokens of an application that were issued before now.",
)
.token(Token::Org)
.may_take::<ApplicationTokenExpireIn>()
.once()
.ends(204);

/// `POST /auth/app/{app}/expire-all`
pub(super) async fn expire_all(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(app): Place<String>,
    received: Received,
) -> Answered {
    caller.org_only()?;
    let mut fields = Fields::parse(body_of(&received))?;
    let range = 0..=APP_TOKEN_MAX.as_secs();
    let grace = fields.nullable(&["expiry"], None, whole::<u64>(range)).unwrap_or_default();
    let sessions = fields.nullable(&["sessionIds"], None, names).unwrap_or_default();
    fields.finish()?;
    let app = own::app(&shared, &caller, &app).await?;
    let (peyk, place) = (Arc::clone(&shared), [app.app.key.0.cast_unsigned()]);
    let work = async move |ticket: Ticket| {
        let now = peyk.now();
        // Tokens say to the millisecond when they were issued.
        let issued_before = Timestamp::from_micros((now.as_micros() / 1_000 + 1) * 1_000);
        let from = now.plus(Duration::from_secs(grace));
        let expire = |session| Expired { app: app.app.id, session, issued_before, from };
        let tokens: Vec<_> = match sessions.is_empty() {
            true => vec![expire(None)],
            false => sessions.into_iter().map(|session| expire(Some(session))).collect(),
        };
        let done = || Done::empty(StatusCode::NO_CONTENT);
        let once = ticket.tells(move |(): &()| Some(done()));
        peyk.engine.stores().revocations.expire_once(tokens.clone(), once).await?;
        peyk.tokens.revocations().expire(tokens, now);
        Ok(done())
    };
    // Not undone by a caller that hangs up.
    let answer = async move { once(&shared, (&caller, &received), &place, work).await };
    tokio::spawn(answer).await.unwrap_or_else(|_| Err(Problem::overloaded()))
}
