//! Tokens: who asks, and what they may reach.
//!
//! In: the text of a token. Out: a [`Caller`], or 401. HS256; `sub` is an `org_…`, or an
//! `app_…` beside `org`. A token that was verified once is known by its hash until it expires.
//! Never: log a token, or compare a secret byte by byte.

use std::sync::Arc;
use std::time::Duration;

use domain::ids::{Kind, PublicId};
use http::Method;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use quick_cache::sync::Cache;
use resilience::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::capabilities::{self, Capability, LOGOUT};
use super::problem::Problem;
use super::revoked::{Revocations, Shown};

/// The organisation of `peyk token` when none is named.
pub(crate) const DEFAULT_ORG: &str = "org_2PeykDefaultOrganisation000";
/// Clocks may differ by so much.
const LEEWAY_SECS: i64 = 15 * 60;
/// Verified tokens remembered.
const TOKENS_MAX: usize = 10_000;
/// A longer token is not looked at.
const TOKEN_BYTES_MAX: usize = 8_192;
/// Tokens made here are good for 10 years.
const MADE_FOR_SECS: u64 = 3_650 * 24 * 3_600;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The organisation.
    pub(crate) org: PublicId,
    /// The one application that may be reached; `None` for all of the organisation.
    pub(crate) app: Option<PublicId>,
    /// The token's subject, as it stands there.
    pub(crate) subject: String,
    /// Event types with one of these flags are shown to an application's token.
    pub(crate) feature_flags: Vec<String>,
    /// The session that the token belongs to.
    pub(crate) session: Option<String>,
    /// Whether it may only look, and not at secrets.
    pub(crate) read_only: bool,
    /// What it may do; `None` for all.
    pub(crate) capabilities: Option<Vec<Capability>>,
    /// SHA-256 of the token.
    pub(crate) hash: [u8; 32],
    /// When the token ends, leeway included.
    pub(crate) until: Timestamp,
    issued_at: Option<Timestamp>,
}

impl Caller {
    /// Refuses an application's token.
    pub(crate) fn org_only(&self) -> Result<(), Problem> {
        if self.app.is_some() { Err(Problem::forbidden()) } else { Ok(()) }
    }

    /// The same caller, standing in for another organisation.
    pub(crate) fn within(&self, org: PublicId) -> Self {
        Self { org, ..self.clone() }
    }

    /// Refuses a request that the token may not make, though one of its kind might.
    pub(crate) fn may(&self, method: &Method, route: &str) -> Result<(), Problem> {
        if self.read_only && !method.is_safe() && route != LOGOUT {
            return Err(Problem::read_only());
        }
        match &self.capabilities {
            Some(all) if !capabilities::allow(all, method, route) => Err(Problem::incapable()),
            _ => Ok(()),
        }
    }

    /// Refuses a token that may see no signing secrets.
    pub(crate) fn may_see_secrets(&self) -> Result<(), Problem> {
        if self.read_only {
            return Err(Problem::read_only());
        }
        match &self.capabilities {
            Some(all) if !capabilities::show_secrets(all) => Err(Problem::incapable()),
            _ => Ok(()),
        }
    }

    fn shown(&self) -> Shown<'_> {
        let session = self.session.as_deref();
        Shown { hash: &self.hash, app: self.app, session, issued_at: self.issued_at }
    }
}

/// What is read of a token; dates are numbers that may have a fraction.
#[derive(Debug, Deserialize)]
struct Claims {
    sub: String,
    org: Option<String>,
    iat: Option<f64>,
    nbf: Option<f64>,
    exp: Option<f64>,
    #[serde(default)]
    feature_flags: Vec<String>,
    session_id: Option<String>,
    #[serde(default)]
    read_only: bool,
    capabilities: Option<Vec<Capability>>,
}

/// What a token of an application may do.
#[derive(Debug)]
pub(crate) struct Grant {
    /// Sees event types with these flags.
    pub(crate) feature_flags: Vec<String>,
    /// Belongs to this session.
    pub(crate) session: Option<String>,
    /// May only look.
    pub(crate) read_only: bool,
    /// May do this; `None` for all.
    pub(crate) capabilities: Option<Vec<Capability>>,
    /// Is good so long.
    pub(crate) good_for: Duration,
}

/// What is written into a token.
#[derive(Debug, Serialize)]
struct Made<'a> {
    iss: &'static str,
    sub: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    org: Option<&'a str>,
    /// To the millisecond, so that what is issued after tokens were expired is told from those.
    iat: f64,
    nbf: i64,
    exp: i64,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    feature_flags: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    read_only: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<&'a [Capability]>,
}

/// A token whose signature was checked.
#[derive(Debug)]
struct Verified {
    caller: Arc<Caller>,
    not_before: Option<i64>,
    expires: Option<i64>,
}

impl Verified {
    fn is_good_at(&self, now: Timestamp) -> bool {
        let now = now.as_secs();
        self.not_before.is_none_or(|at| at.saturating_sub(LEEWAY_SECS) <= now)
            && self.expires.is_none_or(|at| now < at.saturating_add(LEEWAY_SECS))
    }
}

/// Makes and checks tokens of one secret.
pub(crate) struct Tokens {
    secret: Vec<u8>,
    sign: EncodingKey,
    check: DecodingKey,
    rules: Validation,
    known: Cache<[u8; 32], Arc<Verified>>,
    revoked: Revocations,
}

impl Tokens {
    /// For a secret that is not empty.
    pub(crate) fn new(secret: &str) -> Result<Self, String> {
        let unusable = |_| "the jwt secret must not be empty".to_owned();
        // Times are checked here, with the clock that is passed in.
        let mut rules = Validation::new(Algorithm::HS256);
        rules.required_spec_claims.clear();
        rules.validate_exp = false;
        rules.validate_nbf = false;
        rules.validate_aud = false;
        Ok(Self {
            secret: secret.as_bytes().to_vec(),
            sign: EncodingKey::from_secret(secret.as_bytes()).map_err(unusable)?,
            check: DecodingKey::from_secret(secret.as_bytes()).map_err(unusable)?,
            rules,
            known: Cache::new(TOKENS_MAX),
            revoked: Revocations::default(),
        })
    }

    /// Tokens that are refused though they were signed.
    pub(crate) const fn revocations(&self) -> &Revocations {
        &self.revoked
    }

    /// A token for an organisation, or for one application of it, that may do all there is to do.
    pub(crate) fn make(&self, org: &str, app: Option<&str>, now: Timestamp) -> Option<String> {
        let grant = Grant {
            feature_flags: Vec::new(),
            session: None,
            read_only: false,
            capabilities: None,
            good_for: Duration::from_secs(MADE_FOR_SECS),
        };
        self.signed(&Self::claims((org, app), &grant, now)?)
    }

    /// What a token that may do so much says; [`Tokens::signed`] makes it one.
    pub(crate) fn claims(
        (org, app): (&str, Option<&str>),
        grant: &Grant,
        now: Timestamp,
    ) -> Option<Box<RawValue>> {
        let claims = Made {
            iss: "peyk",
            sub: app.unwrap_or(org),
            org: app.map(|_| org),
            iat: millis(now),
            nbf: now.as_secs(),
            exp: now.plus(grant.good_for).as_secs(),
            feature_flags: &grant.feature_flags,
            session_id: grant.session.as_deref(),
            read_only: grant.read_only,
            capabilities: grant.capabilities.as_deref(),
        };
        serde_json::value::to_raw_value(&claims).ok()
    }

    /// The token that says this, the same one for the same claims.
    pub(crate) fn signed(&self, claims: &RawValue) -> Option<String> {
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.sign).ok()
    }

    /// Who shows this token.
    pub(crate) fn check(&self, token: &str, now: Timestamp) -> Result<Arc<Caller>, Problem> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(invalid());
        }
        let hash: [u8; 32] = Sha256::digest(token).into();
        let verified = match self.known.get(&hash) {
            Some(verified) => verified,
            None => {
                let verified = Arc::new(self.verify(token, hash)?);
                self.known.insert(hash, Arc::clone(&verified));
                verified
            }
        };
        if !verified.is_good_at(now) {
            self.known.remove(&hash);
            return Err(invalid());
        }
        if self.revoked.hold(verified.caller.shown(), now) {
            return Err(invalid());
        }
        Ok(Arc::clone(&verified.caller))
    }

    fn verify(&self, token: &str, hash: [u8; 32]) -> Result<Verified, Problem> {
        let Ok(data) = jsonwebtoken::decode::<Claims>(token, &self.check, &self.rules) else {
            return Err(if bool::from(self.secret.ct_eq(token.as_bytes())) {
                Problem::unauthenticated(
                    "Invalid token: this is the secret that tokens are signed with; \
                     make a token with `peyk token`",
                )
            } else {
                invalid()
            });
        };
        let claims = data.claims;
        let caller = Arc::new(caller_of(&claims, hash).ok_or_else(|| {
            Problem::bad_request(
                "bad_token",
                "The token's `sub` must be an `org_…`, or an `app_…` beside `org`",
            )
        })?);
        let (not_before, expires) = (claims.nbf.map(whole), claims.exp.map(whole));
        Ok(Verified { caller, not_before, expires })
    }
}

/// The text of 401 says no more, so that nobody learns which part was wrong.
pub(crate) fn invalid() -> Problem {
    Problem::unauthenticated("Invalid token")
}

fn caller_of(claims: &Claims, hash: [u8; 32]) -> Option<Caller> {
    let app = PublicId::parse(Kind::Application, &claims.sub);
    let org = match app {
        Some(_) => claims.org.as_deref()?,
        None => &claims.sub,
    };
    Some(Caller {
        org: PublicId::parse(Kind::Organisation, org)?,
        app,
        subject: claims.sub.clone(),
        feature_flags: claims.feature_flags.clone(),
        session: claims.session_id.clone(),
        read_only: claims.read_only,
        capabilities: claims.capabilities.clone(),
        hash,
        until: claims.exp.map_or(Timestamp::MAX, |at| {
            Timestamp::from_secs(whole(at).saturating_add(LEEWAY_SECS))
        }),
        issued_at: claims
            .iat
            .map(|at| Timestamp::from_micros(whole((at * 1e3).round()).saturating_mul(1_000))),
    })
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds are far below 2^52")]
fn millis(at: Timestamp) -> f64 {
    (at.as_micros() / 1_000) as f64 / 1e3
}

#[expect(clippy::cast_possible_truncation, reason = "saturates, and no date is that far off")]
const fn whole(secs: f64) -> i64 {
    secs as i64
}

#[cfg(test)]
mod tests;
