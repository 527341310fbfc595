//! Tests of the verifier: what is accepted, and one test per reason for refusal.

use std::time::Duration;

use super::*;
use crate::content::SignedContent;
use crate::error::{ConfigError, SIGNATURES_MAX};
use crate::headers::{WEBHOOK_ID, WEBHOOK_TIMESTAMP};
use crate::secret::{Secret, SecretError};
use crate::sign::signature_header;

const ID: &str = "msg_1";
const NOW: i64 = 1_700_000_000;
const BODY: &[u8] = br#"{"a":1}"#;

fn secret(seed: u8) -> Secret {
    Secret::from_random_hmac([seed; 24])
}

fn pair(seed: u8) -> Secret {
    Secret::from_random_ed25519([seed; 32])
}

fn verifier(secret: &Secret) -> WebhookVerifier {
    WebhookVerifier::standard().key(secret).build().unwrap()
}

/// A request with the given id and timestamp lines, rightly signed for them.
fn signed(secret: &Secret, id: &str, timestamp: &str) -> [(&'static str, String); 3] {
    let content = SignedContent { id, timestamp, body: BODY };
    let mut signature = String::new();
    secret.sign_into(&content, &mut signature);
    [
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", timestamp.to_owned()),
        ("webhook-signature", signature),
    ]
}

fn with_signature(signature: &str) -> [(&'static str, String); 3] {
    let mut headers = signed(&secret(1), ID, "1700000000");
    signature.clone_into(&mut headers[2].1);
    headers
}

fn refusal(headers: impl IntoIterator<Item = (&'static str, String)>) -> VerifyError {
    verifier(&secret(1)).verify(headers, BODY, NOW).unwrap_err()
}

#[test]
fn both_kinds_verify_and_say_what_was_verified() {
    for secret in [secret(1), pair(1)] {
        let verified = verifier(&secret).verify(signed(&secret, ID, "1700000000"), BODY, NOW);
        assert_eq!(
            verified.unwrap(),
            Verified { id: Some(ID.into()), timestamp: Some(NOW), key_index: 0 }
        );
    }
}

#[test]
fn a_receiver_needs_only_the_public_text() {
    for secret in [secret(1), pair(1)] {
        let key = VerifyKey::parse(&secret.to_public_text()).unwrap();
        let headers = signed(&secret, ID, "1700000000");
        let verifier = WebhookVerifier::standard().key(key).build().unwrap();
        assert!(verifier.verify(headers, BODY, NOW).is_ok());
    }
    let from_pair = VerifyKey::parse(&pair(1).to_private_text()).unwrap();
    assert!(format!("{from_pair:?}").starts_with("Ed25519(whpk_"));
    assert_eq!(format!("{:?}", VerifyKey::from(secret(1))), "Hmac(<redacted>)");
}

#[test]
fn bad_public_keys_are_refused() {
    let refused = |text: &str| VerifyKey::from_public_text(text).unwrap_err();
    let zeros = |count| format!("whpk_{}", "A".repeat(count));
    assert_eq!(refused(""), SecretError::Empty);
    assert_eq!(refused("whpk_\n"), SecretError::WhiteSpace);
    assert_eq!(refused(&secret(1).to_public_text()), SecretError::PublicPrefix);
    assert_eq!(refused("whpk_!"), SecretError::Base64);
    assert_eq!(refused("whpk_"), SecretError::PublicKeyLength { bytes: 0 });
    assert_eq!(refused(&zeros(44)), SecretError::PublicKeyLength { bytes: 33 });
    // The all-zero key is a point of order 4.
    assert_eq!(refused(&zeros(43)), SecretError::PublicKeyInvalid);
}

#[test]
fn sg_07_either_secret_of_a_rotation_verifies() {
    let (old, new) = (secret(1), secret(2));
    let header = signature_header([&new, &old], ID, NOW, BODY).unwrap();
    for known in [&old, &new] {
        assert!(verifier(known).verify(with_signature(&header), BODY, NOW).is_ok());
    }
    let after = with_signature(&signature_header([&new], ID, NOW, BODY).unwrap());
    assert_eq!(verifier(&old).verify(after.clone(), BODY, NOW), Err(VerifyError::NoMatch));
    let both = WebhookVerifier::standard().key(&old).key(&new).build().unwrap();
    assert_eq!(both.verify(after, BODY, NOW).unwrap().key_index, 1);
}

#[test]
fn sg_04_each_attempt_verifies_by_its_own_time() {
    let secret = secret(1);
    for at in [NOW, NOW + 5, NOW + 36_000] {
        let headers = signed(&secret, ID, &at.to_string());
        assert!(verifier(&secret).verify(headers.clone(), BODY, at + 1).is_ok());
        let stale = verifier(&secret).verify(headers, BODY, at + 301);
        assert_eq!(stale, Err(VerifyError::TooOld));
    }
}

#[test]
fn the_tolerance_ends_at_300_seconds_both_ways() {
    let secret = secret(1);
    let at = |now| verifier(&secret).verify(signed(&secret, ID, "1700000000"), BODY, now);
    assert!(at(NOW + 300).is_ok() && at(NOW - 300).is_ok());
    assert_eq!(at(NOW + 301), Err(VerifyError::TooOld));
    assert_eq!(at(NOW - 301), Err(VerifyError::TooNew));
    assert_eq!(at(i64::MAX), Err(VerifyError::TooOld));
    assert_eq!(at(i64::MIN), Err(VerifyError::TooNew));
    let now_only = Tolerance::past(Duration::ZERO).future(Duration::ZERO);
    let exact = WebhookVerifier::standard().key(&secret).tolerance(now_only).build().unwrap();
    assert!(exact.verify(signed(&secret, ID, "1700000000"), BODY, NOW).is_ok());
    assert!(exact.verify(signed(&secret, ID, "1700000000"), BODY, NOW + 1).is_err());
}

#[test]
fn sg_12_names_match_in_any_case_and_both_namings() {
    let values = signed(&secret(1), ID, "1700000000").map(|(_, value)| value);
    for names in [
        ["webhook-id", "webhook-timestamp", "webhook-signature"],
        ["Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"],
        ["WEBHOOK-ID", "WEBHOOK-TIMESTAMP", "WEBHOOK-SIGNATURE"],
        ["svix-id", "svix-timestamp", "svix-signature"],
        ["Svix-Id", "SVIX-Timestamp", "svix-Signature"],
    ] {
        let headers = names.into_iter().zip(values.clone()).rev().chain([("x-other", "1".into())]);
        assert!(verifier(&secret(1)).verify(headers, BODY, NOW).is_ok(), "{names:?}");
    }
}

#[test]
fn sg_12_differing_duplicates_are_refused_and_equal_ones_are_not() {
    let good = signed(&secret(1), ID, "1700000000").to_vec();
    let plus = |name, value: &str| {
        let mut headers = good.clone();
        headers.push((name, value.to_owned()));
        headers
    };
    for (name, value) in [
        ("Webhook-Id", ID),
        ("webhook-timestamp", "1700000000"),
        ("svix-id", ID),
        ("svix-signature", "v1,AAAA"),
        ("webhook-signature", "v1,AAAA"),
    ] {
        assert!(verifier(&secret(1)).verify(plus(name, value), BODY, NOW).is_ok(), "{name}");
    }
    for (name, value, reported) in [
        ("WEBHOOK-ID", "msg_2", WEBHOOK_ID),
        ("webhook-timestamp", "1700000001", WEBHOOK_TIMESTAMP),
        ("svix-id", "msg_2", WEBHOOK_ID),
        ("svix-timestamp", "1700000001", WEBHOOK_TIMESTAMP),
    ] {
        assert_eq!(refusal(plus(name, value)), VerifyError::ConflictingHeader(reported.into()));
    }
}

#[test]
fn missing_headers_are_named_and_namings_never_mixed() {
    let [id, timestamp, signature] = signed(&secret(1), ID, "1700000000");
    let missing = |name: &'static str| VerifyError::MissingHeader(name.into());
    assert_eq!(refusal([]), missing("webhook-id"));
    assert_eq!(refusal([timestamp.clone(), signature.clone()]), missing("webhook-id"));
    assert_eq!(refusal([id.clone(), signature.clone()]), missing("webhook-timestamp"));
    assert_eq!(refusal([id.clone(), timestamp.clone()]), missing("webhook-signature"));
    assert_eq!(refusal([("svix-id", id.1.clone())]), missing("svix-timestamp"));
    let mixed = [id, timestamp, ("svix-signature", signature.1)];
    assert_eq!(refusal(mixed), missing("webhook-signature"));
}

#[test]
fn sg_13_an_ambiguous_id_is_refused_though_its_signature_fits() {
    for id in ["", ".", "msg_1.1700000000", "msg.", ".msg"] {
        assert_eq!(refusal(signed(&secret(1), id, "1700000000")), VerifyError::MalformedId);
    }
    let mut bytes = signed(&secret(1), ID, "1700000000").map(|(n, v)| (n, v.into_bytes()));
    bytes[0].1 = vec![0xff];
    let refused = verifier(&secret(1)).verify(bytes, BODY, NOW);
    assert_eq!(refused, Err(VerifyError::MalformedId));
}

#[test]
fn sg_13_an_ambiguous_timestamp_is_refused_though_its_signature_fits() {
    for timestamp in [
        "",
        "1700000000.0",
        ".1700000000",
        "+1700000000",
        "-1700000000",
        " 1700000000",
        "1700000000 ",
        "01700000000",
        "1.7e9",
        "0x6553f100",
        "١٧",
        "99999999999999999999",
    ] {
        let refused = refusal(signed(&secret(1), ID, timestamp));
        assert_eq!(refused, VerifyError::MalformedTimestamp, "{timestamp:?}");
    }
    assert_eq!(refusal(signed(&secret(1), ID, "0")), VerifyError::TooOld);
}

#[test]
fn unknown_versions_and_rubbish_are_skipped() {
    let good = secret(1).sign(ID, NOW, BODY);
    let long = format!("v1,{}", "A".repeat(10_000));
    for before in ["v2,AAAA", "v1", "v1,", "v1,%%%", "v1a,AAAA", ",", "rubbish", " ", &long] {
        let headers = with_signature(&format!("{before} {good}"));
        assert!(verifier(&secret(1)).verify(headers, BODY, NOW).is_ok(), "{before}");
        assert_eq!(refusal(with_signature(before)), VerifyError::NoMatch);
    }
}

#[test]
fn a_signature_counts_only_under_its_own_version() {
    let bare = secret(1).sign(ID, NOW, BODY).replace("v1,", "");
    for version in ["v1a,", "v2,", "V1,", ""] {
        assert_eq!(refusal(with_signature(&format!("{version}{bare}"))), VerifyError::NoMatch);
    }
    // A prefix of the right tag is not the right tag.
    assert_eq!(refusal(with_signature(&format!("v1,{}", &bare[..40]))), VerifyError::NoMatch);
}

#[test]
fn the_number_of_signatures_is_bounded() {
    let good = secret(1).sign(ID, NOW, BODY);
    let most = format!("{}{good}", "v1,AAAA ".repeat(SIGNATURES_MAX - 1));
    assert!(verifier(&secret(1)).verify(with_signature(&most), BODY, NOW).is_ok());
    let too_many = with_signature(&format!("v9,AAAA {most}"));
    assert_eq!(refusal(too_many), VerifyError::TooManySignatures);
    let lines = vec![("webhook-signature", good); SIGNATURES_MAX + 1];
    assert_eq!(refusal(lines), VerifyError::TooManySignatures);
}

#[test]
fn past_and_future_have_tolerances_of_their_own() {
    let tolerance = Tolerance::past(Duration::from_secs(10)).future(Duration::from_secs(2));
    let secret = secret(1);
    let verifier = WebhookVerifier::standard().key(&secret).tolerance(tolerance).build().unwrap();
    let at = |now| verifier.verify(signed(&secret, ID, "1700000000"), BODY, now);
    assert!(at(NOW + 10).is_ok() && at(NOW - 2).is_ok());
    assert_eq!(at(NOW + 11), Err(VerifyError::TooOld));
    assert_eq!(at(NOW - 3), Err(VerifyError::TooNew));
}

#[test]
fn a_body_past_the_bound_is_refused_and_one_at_it_is_not() {
    let secret = secret(1);
    let with = |bytes| WebhookVerifier::standard().key(&secret).max_body(bytes).build().unwrap();
    let headers = signed(&secret, ID, "1700000000");
    assert!(with(BODY.len()).verify(headers.clone(), BODY, NOW).is_ok());
    let bytes_max = BODY.len() - 1;
    let refused = with(bytes_max).verify(headers, BODY, NOW);
    assert_eq!(refused, Err(VerifyError::BodyTooLarge { bytes_max }));
}

#[test]
fn sg_10_a_verifier_that_could_verify_nothing_is_not_built() {
    let none = WebhookVerifier::standard().build();
    assert_eq!(none.unwrap_err(), ConfigError::NoKeys);
    let nothing = WebhookVerifier::standard().key(secret(1)).max_body(0).build();
    let nothing = nothing.unwrap_err();
    assert_eq!((nothing, nothing.option()), (ConfigError::NoBody, "max_body"));
    assert_eq!(nothing.to_string(), "max_body must be at least 1 byte");
    for empty in [WebhookVerifier::stripe, WebhookVerifier::github, WebhookVerifier::slack] {
        assert_eq!(empty("").unwrap_err(), SecretError::Empty);
    }
    let text = pair(1).to_public_text();
    let paired = WebhookVerifier::github("s").unwrap().public_key(&text).unwrap().build();
    assert_eq!(paired.unwrap_err(), ConfigError::PublicKey);
}
