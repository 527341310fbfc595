//! The published schemes against examples computed elsewhere, and every reason for refusal.
//!
//! The signatures of GitHub and Slack stand in their documentation; the others were computed with
//! Python's `hmac`.

use std::time::Duration;

use super::*;
use crate::verify::{Tolerance, WebhookVerifier};

const GITHUB: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
const GITHUB_SECRET: &str = "It's a Secret to Everybody";
const GITHUB_BODY: &[u8] = b"Hello, World!";

const SLACK: &str = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
const SLACK_SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
const SLACK_TIME: i64 = 1_531_420_618;
const SLACK_BODY: &[u8] = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&\
team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&\
user_name=roadrunner&command=%2Fwebhook-collect&text=&\
response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F\
96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";

const STRIPE: &str = "654b43d3508ecadb3f8cefc4bc7d3d2bdc5ba9e03bf2c89b2d0657a8e24e4543";
const STRIPE_SECRET: &str = "whsec_test_secret";
const STRIPE_TIME: i64 = 1_492_774_577;
const STRIPE_BODY: &[u8] = br#"{"id":"evt_1","object":"event"}"#;

type Outcome = Result<crate::Verified, VerifyError>;

fn github(line: &str) -> Outcome {
    let verifier = WebhookVerifier::github(GITHUB_SECRET).unwrap().build().unwrap();
    verifier.verify([("X-HUB-Signature-256", line)], GITHUB_BODY, 0)
}

fn slack(lines: &[(&str, &str)], now: i64) -> Outcome {
    let verifier = WebhookVerifier::slack(SLACK_SECRET).unwrap().build().unwrap();
    verifier.verify(lines.iter().copied(), SLACK_BODY, now)
}

fn stripe(line: &str, now: i64) -> Outcome {
    let verifier = WebhookVerifier::stripe("another").unwrap().secret(STRIPE_SECRET);
    let verifier = verifier.unwrap().build().unwrap();
    verifier.verify([("stripe-signature", line)], STRIPE_BODY, now)
}

#[test]
fn github_signs_the_body() {
    let verified = github(GITHUB).unwrap();
    assert_eq!((verified.id, verified.timestamp, verified.key_index), (None, None, 0));
    assert!(github(&GITHUB.replace("757107ea", "757107EA")).is_ok(), "hex in either case");
    let of_another = GITHUB.replace("757107ea", "757107eb");
    let sha1 = GITHUB.replace("sha256=", "sha1=");
    let short = &GITHUB[..GITHUB.len() - 2];
    let long = format!("{GITHUB}00");
    let spaced = format!(" {GITHUB}");
    for line in ["", "sha256=", "sha256=ü", &GITHUB[7..], short, &long, &spaced, &of_another, &sha1]
    {
        assert_eq!(github(line), Err(VerifyError::NoMatch), "{line}");
    }
}

#[test]
fn slack_signs_version_time_and_body() {
    let time = ("x-slack-request-timestamp", "1531420618");
    let signature = ("X-Slack-Signature", SLACK);
    let verified = slack(&[time, signature], SLACK_TIME + 300).unwrap();
    assert_eq!(verified.timestamp, Some(SLACK_TIME));
    assert_eq!(slack(&[time, signature], SLACK_TIME + 301), Err(VerifyError::TooOld));
    assert_eq!(slack(&[time, signature], i64::MIN), Err(VerifyError::TooNew));
    let other = ("x-slack-request-timestamp", "1531420619");
    assert_eq!(slack(&[other, signature], SLACK_TIME), Err(VerifyError::NoMatch));
    let missing = |name: &'static str| Err(VerifyError::MissingHeader(name.into()));
    assert_eq!(slack(&[signature], SLACK_TIME), missing("X-Slack-Request-Timestamp"));
    assert_eq!(slack(&[time], SLACK_TIME), missing("X-Slack-Signature"));
}

#[test]
fn stripe_signs_time_and_body_and_may_sign_twice() {
    let line = format!("t=1492774577,v1={STRIPE},v0=00");
    let verified = stripe(&line, STRIPE_TIME).unwrap();
    assert_eq!((verified.timestamp, verified.key_index), (Some(STRIPE_TIME), 1));
    let rotated = format!("t=1492774577, v1={}, v1={STRIPE}", "0".repeat(64));
    assert!(stripe(&rotated, STRIPE_TIME).is_ok());
    let header = || "Stripe-Signature".into();
    for (line, why) in [
        (format!("t=1492774577,v0={STRIPE}"), VerifyError::NoMatch),
        (format!("t=1492774578,v1={STRIPE}"), VerifyError::NoMatch),
        (format!("v1={STRIPE}"), VerifyError::MissingHeader(header())),
        (format!("t=1,t=2,v1={STRIPE}"), VerifyError::ConflictingHeader(header())),
        (format!("t=-1,v1={STRIPE}"), VerifyError::MalformedTimestamp),
        (format!("t=9999999999999999999,v1={STRIPE}"), VerifyError::MalformedTimestamp),
        (format!("t=9223372036854775807,v1={STRIPE}"), VerifyError::TooNew),
        (format!("t=0,v1={STRIPE}"), VerifyError::TooOld),
        (format!("t=1492774577{}", ",v1=00".repeat(33)), VerifyError::TooManySignatures),
    ] {
        assert_eq!(stripe(&line, STRIPE_TIME), Err(why), "{line}");
    }
}

#[test]
fn any_other_scheme_can_be_described() {
    let scheme = Scheme {
        signature_header: "x-sig".into(),
        layout: Layout::Prefixed(String::new()),
        encoding: Encoding::Base64,
        timestamp: Some(TimestampIn::Header("x-time".into())),
        id_header: Some("x-id".into()),
        content: vec![
            Part::Id,
            Part::Text("/".into()),
            Part::Timestamp,
            Part::Text("/".into()),
            Part::Body,
        ],
    };
    let verifier = WebhookVerifier::custom(scheme).secret("hush").unwrap();
    let verifier = verifier.tolerance(Tolerance::past(Duration::ZERO)).build().unwrap();
    let verify = |id: &str, time: &str| {
        let signature = "NxQBIlmkBHzQY1ZlLl9lHLlOuK+k6Al8fmqeqd/FIn4=";
        let headers = [("x-id", id), ("x-time", time), ("x-sig", signature)];
        verifier.verify(headers, br#"{"id":1}"#, 1_700_000_000)
    };
    assert_eq!(verify("evt_1", "1700000000").unwrap().id.as_deref(), Some("evt_1"));
    assert_eq!(verify("evt_1", "1699999999"), Err(VerifyError::TooOld));
    assert_eq!(verify("evt_2", "1700000000"), Err(VerifyError::NoMatch));
    assert_eq!(verify("evt_1/1700000000", "1700000000"), Err(VerifyError::MalformedId), "SG-13");
}

#[test]
fn sg_12_differing_lines_are_refused() {
    let verifier = WebhookVerifier::github(GITHUB_SECRET).unwrap().build().unwrap();
    let two = |other| [("x-hub-signature-256", GITHUB), ("X-Hub-Signature-256", other)];
    assert!(verifier.verify(two(GITHUB), GITHUB_BODY, 0).is_ok());
    let conflict = VerifyError::ConflictingHeader("X-Hub-Signature-256".into());
    assert_eq!(verifier.verify(two("sha256=00"), GITHUB_BODY, 0), Err(conflict));
}
