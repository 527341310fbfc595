//! Tokens that are made, shown, ended, revoked.
//!
//! Never: a clock of its own.

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
    let token =
        signed(&serde_json::json!({"sub": DEFAULT_ORG, "exp": 1_800_000_000}), Algorithm::HS256);
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

#[test]
fn a_grant_is_what_a_caller_may_do() {
    let tokens = tokens();
    let grant = Grant {
        feature_flags: vec!["beta".to_owned()],
        session: Some("s".to_owned()),
        read_only: true,
        capabilities: Some(vec![Capability::ViewBase]),
        good_for: Duration::from_secs(3_600),
    };
    let claims = Tokens::claims((DEFAULT_ORG, Some(APP)), &grant, NOW).unwrap();
    let token = tokens.signed(&claims).unwrap();
    assert_eq!(tokens.signed(&claims).as_ref(), Some(&token), "the same again");
    let caller = tokens.check(&token, NOW).unwrap();
    assert_eq!((&caller.feature_flags, &caller.session), (&grant.feature_flags, &grant.session));
    assert_eq!(caller.capabilities, grant.capabilities);
    let status = |may: Result<(), Problem>| may.unwrap_err().status().as_u16();
    assert_eq!(status(caller.may(&Method::POST, "/api/v1/app/{app}/endpoint")), 403);
    assert_eq!(status(caller.may_see_secrets()), 403);
    assert!(caller.may(&Method::POST, LOGOUT).is_ok() && caller.may(&Method::GET, "").is_ok());
    assert_eq!(caller.until, Timestamp::from_secs(NOW.as_secs() + 3_600 + LEEWAY_SECS));
    assert!(tokens.check(&token, caller.until).is_err());
}

#[test]
fn a_known_token_is_refused_once_it_is_revoked() {
    let tokens = tokens();
    let at = |millis| NOW.plus(Duration::from_millis(millis));
    let old = tokens.make(DEFAULT_ORG, Some(APP), at(250)).unwrap();
    let other = tokens.make(DEFAULT_ORG, Some(APP), at(251)).unwrap();
    let caller = tokens.check(&old, NOW).unwrap();
    let revoked = store::revocations::Revoked { hash: caller.hash, until: caller.until };
    tokens.revocations().revoke(&revoked, NOW);
    assert!(tokens.check(&old, NOW).is_err() && tokens.check(&other, NOW).is_ok());
    let all = store::revocations::Expired {
        app: caller.app.unwrap(),
        session: None,
        issued_before: at(252),
        from: at(252),
    };
    tokens.revocations().expire(vec![all], NOW);
    assert!(tokens.check(&other, at(252)).is_err());
    let new = tokens.make(DEFAULT_ORG, Some(APP), at(252)).unwrap();
    assert!(tokens.check(&new, at(252)).is_ok(), "made in the same second, but after");
}
