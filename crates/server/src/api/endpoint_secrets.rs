//! Signing secrets of an endpoint: read and rotate.
//!
//! A replaced secret signs on for its grace, so that receivers can change over; at most ten do at a
//! time.
//! Never: show the private half of a key pair.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use domain::endpoint::{Endpoint, LiveSecret};
use domain::error::Invalid;
use domain::limits;
use http::StatusCode;
use resilience::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use store::directory::EndpointChange;
use webhook::Secret;

use super::endpoint_change::change;
use super::inputs::endpoint::EndpointSecretRotateIn;
use super::once::once;
use super::operation::Operation;
use super::own;
use super::reach::Reach;
use super::shapes::SigningKey;
use crate::config::settings::SigningKind;
use crate::http::extract::Received;
use crate::http::fields::{Fields, text, whole};
use crate::http::idempotency::{Answer, Done, Made, Ticket};
use crate::http::problem::Problem;
use crate::state::{Shared, random};

type Answered = Result<Response, Problem>;

/// The newest secret.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EndpointSecretOut")]
struct SecretOut {
    #[schemars(with = "SigningKey")]
    key: String,
}

impl SecretOut {
    fn of(endpoint: &Endpoint) -> Result<Self, Problem> {
        let newest = endpoint.secrets.first().ok_or_else(own::missing)?;
        Ok(Self { key: newest.secret.to_public_text() })
    }
}

pub(super) const READ: Operation =
    Operation::new("v1.endpoint.get-secret", "Shows the secret that its requests are signed with.")
        .gives::<SecretOut>(200)
        .or("insufficient access");

/// `GET …/secret`
pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Reach { caller, place: (app, endpoint) }: Reach,
) -> Answered {
    caller.may_see_secrets()?;
    let found = own::endpoint(&shared, &caller, (&app, &endpoint)).await?;
    Ok(Answer::json(StatusCode::OK, &SecretOut::of(&found)?).into_response())
}

pub(super) const ROTATE: Operation = Operation::new(
    "v1.endpoint.rotate-secret",
    "Puts a new secret in place; the old one signs on for a while.",
)
.takes::<EndpointSecretRotateIn>()
.once()
.gives::<SecretOut>(200)
.or("limit_reached");

/// `POST …/secret/rotate`: answers with the new key, which newer SDKs read and older ones ignore.
pub(super) async fn rotate(
    State(shared): State<Arc<Shared>>,
    Reach { caller, place: (app, endpoint) }: Reach,
    received: Received,
) -> Answered {
    let mut fields = Fields::parse(&received.body)?;
    let secret = given(&mut fields, "key");
    let grace = fields.nullable(
        &["gracePeriodSeconds"],
        None,
        whole::<u64>(0..=limits::SECRET_GRACE_SECS_MAX),
    );
    fields.finish()?;
    let grace = Duration::from_secs(grace.unwrap_or(limits::SECRET_GRACE_SECS));
    let key = own::endpoint(&shared, &caller, (&app, &endpoint)).await?.key;
    let peyk = Arc::clone(&shared);
    let work = async move |ticket: Ticket| {
        let _edit = peyk.edit().await?;
        let old = peyk.engine.stores().directory.endpoint(key).await?.ok_or_else(own::missing)?;
        let secret = or_made(&peyk, secret)?;
        let secrets = rotated(&old.secrets, secret, grace, peyk.now())?;
        let change_of = EndpointChange { secrets: Some(secrets), ..EndpointChange::default() };
        let done = |endpoint: &Arc<Endpoint>| {
            Ok::<_, Problem>(Done::json(StatusCode::OK, &SecretOut::of(endpoint)?, Made::Nothing))
        };
        let once = ticket.tells(move |endpoint| done(endpoint).ok());
        done(&change(&peyk, &old, change_of, once).await?)
    };
    once(&shared, (&caller, &received), &[key.0.cast_unsigned()], work).await
}

/// Refuses another secret than the one in force, in a body that cannot say how long the old one
/// signs on.
pub(super) fn unchanged(fields: &mut Fields<'_>, endpoint: &Endpoint) {
    fields.nullable(&["secret"], None, |name, value| {
        if is_in_force(endpoint, &text(name, value)?) {
            return Ok(());
        }
        let rule =
            "must be left out: POST …/secret/rotate replaces it, and lets the old one sign on";
        Err(Invalid::new(name, rule))
    });
}

/// Whether this is the newest secret, as it was given or as it is read back.
fn is_in_force(endpoint: &Endpoint, given: &str) -> bool {
    let given = Secret::parse(given).map_or_else(|_| given.to_owned(), |it| it.to_private_text());
    endpoint.secrets.first().is_some_and(|newest| {
        given == newest.secret.to_private_text() || given == newest.secret.to_public_text()
    })
}

/// Reads a secret that the caller chose.
pub(super) fn given(fields: &mut Fields<'_>, name: &'static str) -> Option<Secret> {
    fields.nullable(&[name], None, |name, value| {
        Secret::parse(&text(name, value)?)
            .map_err(|fault| Invalid::new(name, format!("is no signing secret: {fault}")))
    })
}

/// The given secret, or a new one of the kind that is set.
pub(super) fn or_made(shared: &Shared, secret: Option<Secret>) -> Result<Secret, Problem> {
    Ok(match (secret, shared.settings.signing_default) {
        (Some(secret), _) => secret,
        (None, SigningKind::Hmac) => Secret::from_random_hmac(random()?),
        (None, SigningKind::Ed25519) => Secret::from_random_ed25519(random()?),
    })
}

/// A secret that signs without end.
pub(super) const fn newest(secret: Secret) -> LiveSecret {
    LiveSecret { secret, expires_at: None }
}

/// The new secret, then the replaced one with its grace, then the older ones that still sign.
fn rotated(
    old: &[LiveSecret],
    secret: Secret,
    grace: Duration,
    now: Timestamp,
) -> Result<Vec<LiveSecret>, Problem> {
    let until = now.plus(grace);
    let replaced = old.iter().map(|live| LiveSecret {
        secret: live.secret.clone(),
        expires_at: Some(live.expires_at.unwrap_or(until)),
    });
    // One that comes back signs once.
    let again = secret.to_private_text();
    let alive = replaced
        .filter(|live| live.expires_at.is_none_or(|end| end > now))
        .filter(|live| live.secret.to_private_text() != again);
    let all: Vec<_> = std::iter::once(newest(secret)).chain(alive).collect();
    if all.len() > limits::SECRETS_ALIVE_MAX + 1 {
        let most = limits::SECRETS_ALIVE_MAX;
        let detail = format!("At most {most} replaced secrets may still sign at a time");
        return Err(Problem::bad_request("limit_reached", detail));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    fn secret(fill: u8) -> Secret {
        Secret::from_random_hmac([fill; 24])
    }

    #[test]
    fn ten_rotations_pass_and_the_eleventh_does_not() {
        let day = Duration::from_secs(86_400);
        let mut live = vec![newest(secret(0))];
        for turn in 1..=10 {
            live = rotated(&live, secret(turn), day, NOW).unwrap();
            assert_eq!(live.len(), usize::from(turn) + 1);
            assert!(
                live[0].expires_at.is_none()
                    && live[1..].iter().all(|old| old.expires_at.is_some())
            );
        }
        let refused = rotated(&live, secret(11), day, NOW).unwrap_err();
        assert_eq!(refused.status().as_u16(), 400);
        assert_eq!(rotated(&live, secret(11), Duration::ZERO, NOW).unwrap().len(), 11);
        let later = NOW.plus(day);
        assert_eq!(rotated(&live, secret(11), day, later).unwrap().len(), 2);
    }

    #[test]
    fn a_secret_that_comes_back_signs_once() {
        let day = Duration::from_secs(86_400);
        let live = rotated(&[newest(secret(0))], secret(0), day, NOW).unwrap();
        assert_eq!((live.len(), live[0].expires_at), (1, None), "the one in force");
        let live = rotated(&live, secret(1), day, NOW).unwrap();
        let live = rotated(&live, secret(0), day, NOW).unwrap();
        let texts: Vec<_> = live.iter().map(|it| it.secret.to_private_text()).collect();
        assert_eq!(texts, [0, 1].map(|fill| secret(fill).to_private_text()), "an older one");
        assert!(live[0].expires_at.is_none() && live[1].expires_at.is_some());
    }

    #[test]
    fn no_grace_ends_a_secret_at_once() {
        let live = rotated(&[newest(secret(0))], secret(1), Duration::ZERO, NOW).unwrap();
        assert_eq!(live.len(), 1);
        assert_eq!(live[0].secret.to_private_text(), secret(1).to_private_text());
    }
}
