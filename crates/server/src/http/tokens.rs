//! Tokens: who asks, and what they may reach.
//!
//! In: the text of a token. Out: a [`Caller`], or 401. HS256; `sub` is an `org_…`, or an
//! `app_…` beside `org`. A token that was verified once is known by its hash until it expires.
//! Never: log a token, or compare a secret byte by byte.

use std::sync::Arc;

use domain::ids::{Kind, PublicId};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use quick_cache::sync::Cache;
use resilience::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::problem::Problem;

/// The organisation of `peyk token` when none is named.
pub(crate) const DEFAULT_ORG: &str = "org_2PeykDefaultOrganisation000";
/// Clocks may differ by so much.
const LEEWAY_SECS: i64 = 15 * 60;
/// Verified tokens remembered.
const TOKENS_MAX: usize = 10_000;
/// A longer token is not looked at.
const TOKEN_BYTES_MAX: usize = 8_192;
/// Tokens made here are good for 10 years.
const MADE_FOR_SECS: i64 = 3_650 * 24 * 3_600;

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
}

impl Caller {
    /// Refuses an application's token.
    pub(crate) fn org_only(&self) -> Result<(), Problem> {
        if self.app.is_some() { Err(Problem::forbidden()) } else { Ok(()) }
    }
}

/// What is read of a token; dates are numbers that may have a fraction.
#[derive(Debug, Deserialize)]
struct Claims {
    sub: String,
    org: Option<String>,
    nbf: Option<f64>,
    exp: Option<f64>,
    #[serde(default)]
    feature_flags: Vec<String>,
}

/// What is written into a token.
#[derive(Debug, Serialize)]
struct Made<'a> {
    iss: &'static str,
    sub: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    org: Option<&'a str>,
    iat: i64,
    nbf: i64,
    exp: i64,
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
        })
    }

    /// A token for an organisation, or for one application of it.
    pub(crate) fn make(&self, org: &str, app: Option<&str>, now: Timestamp) -> Option<String> {
        let now = now.as_secs();
        let claims = Made {
            iss: "peyk",
            sub: app.unwrap_or(org),
            org: app.map(|_| org),
            iat: now,
            nbf: now,
            exp: now.saturating_add(MADE_FOR_SECS),
        };
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
                let verified = Arc::new(self.verify(token)?);
                self.known.insert(hash, Arc::clone(&verified));
                verified
            }
        };
        if !verified.is_good_at(now) {
            self.known.remove(&hash);
            return Err(invalid());
        }
        Ok(Arc::clone(&verified.caller))
    }

    fn verify(&self, token: &str) -> Result<Verified, Problem> {
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
        let caller = Arc::new(caller_of(&claims).ok_or_else(|| {
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

fn caller_of(claims: &Claims) -> Option<Caller> {
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
    })
}

#[expect(clippy::cast_possible_truncation, reason = "saturates, and no date is that far off")]
const fn whole(secs: f64) -> i64 {
    secs as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
    const APP: &str = "app_2PeykDefaultApplication000A";

    fn tokens() -> Tokens {
        Tokens::new("a secret for tests only").unwrap()
    }

    fn signed(claims: &serde_json::Value, algorithm: Algorithm) -> String {
        let key = EncodingKey::from_secret(b"a secret for tests only").unwrap();
        jsonwebtoken::encode(&Header::new(algorithm), claims, &key).unwrap()
    }

    fn status(token: &str, now: Timestamp) -> u16 {
        tokens().check(token, now).map_or_else(|problem| problem.status().as_u16(), |_| 200)
    }

    #[test]
    fn what_is_made_is_accepted() {
        let tokens = tokens();
        let org = tokens.check(&tokens.make(DEFAULT_ORG, None, NOW).unwrap(), NOW).unwrap();
        assert_eq!((org.app, org.subject.as_str()), (None, DEFAULT_ORG));
        assert!(org.org_only().is_ok());
        let app = tokens.check(&tokens.make(DEFAULT_ORG, Some(APP), NOW).unwrap(), NOW).unwrap();
        assert_eq!((app.org, app.app), (org.org, PublicId::parse(Kind::Application, APP)));
        assert_eq!(app.org_only().unwrap_err().status().as_u16(), 403);
    }

    #[test]
    fn times_are_honoured_with_a_leeway() {
        let at = NOW.as_secs();
        let cases = [
            (serde_json::json!({"sub": DEFAULT_ORG}), 200),
            (serde_json::json!({"sub": DEFAULT_ORG, "exp": at - 899}), 200),
            (serde_json::json!({"sub": DEFAULT_ORG, "exp": at - 900}), 401),
            (serde_json::json!({"sub": DEFAULT_ORG, "nbf": at + 900}), 200),
            (serde_json::json!({"sub": DEFAULT_ORG, "nbf": at + 901}), 401),
            (serde_json::json!({"sub": DEFAULT_ORG, "exp": 1e300, "nbf": -1e300}), 200),
            (serde_json::json!({"sub": DEFAULT_ORG, "exp": "soon"}), 401),
            (serde_json::json!({"sub": DEFAULT_ORG, "aud": "x", "iss": "y"}), 200),
        ];
        for (claims, expected) in cases {
            assert_eq!(status(&signed(&claims, Algorithm::HS256), NOW), expected, "{claims}");
        }
    }

    #[test]
    fn a_known_token_still_expires() {
        let tokens = tokens();
        let token = signed(
            &serde_json::json!({"sub": DEFAULT_ORG, "exp": 1_800_000_000}),
            Algorithm::HS256,
        );
        assert!(tokens.check(&token, NOW).is_ok());
        assert!(tokens.check(&token, Timestamp::from_secs(1_800_000_900)).is_err());
        assert!(tokens.check(&token, NOW).is_ok(), "the clock was set back");
    }

    #[test]
    fn foreign_tokens_are_refused() {
        let claims = serde_json::json!({"sub": DEFAULT_ORG});
        assert_eq!(status(&signed(&claims, Algorithm::HS384), NOW), 401, "another algorithm");
        let none = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJvcmdfMiJ9.";
        for token in ["", "x", "a.b.c", none, &"x".repeat(10_000)] {
            assert_eq!(status(token, NOW), 401, "{token}");
        }
        let mut tampered = signed(&claims, Algorithm::HS256);
        tampered.pop();
        assert_eq!(status(&tampered, NOW), 401);
        let said = tokens().check("a secret for tests only", NOW).unwrap_err();
        assert!(format!("{said:?}").contains("peyk token"), "the hint");
    }

    #[test]
    fn a_subject_must_be_an_organisation_or_an_application_of_one() {
        for claims in [
            serde_json::json!({"sub": "me"}),
            serde_json::json!({"sub": APP}),
            serde_json::json!({"sub": APP, "org": "me"}),
            serde_json::json!({"sub": ""}),
        ] {
            assert_eq!(status(&signed(&claims, Algorithm::HS256), NOW), 400, "{claims}");
        }
    }
}
