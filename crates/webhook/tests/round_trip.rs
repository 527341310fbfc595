//! From outside: what is signed verifies, whatever the bytes, and nothing else does.
//!
//! In come payloads known to break other implementations and random ones; each goes through
//! `signature_header` and `WebhookVerifier`. Never: a test that looks at private parts.

use proptest::prelude::*;
use webhook::{Secret, Verified, VerifyError, VerifyKey, WebhookVerifier, signature_header};

const ID: &str = "msg_2abc";
const NOW: i64 = 1_700_000_000;

fn secrets() -> [Secret; 2] {
    [Secret::from_random_hmac([5; 24]), Secret::from_random_ed25519([6; 32])]
}

fn verify(
    secret: &Secret,
    (id, timestamp, body): (&str, &str, &[u8]),
    signature: &str,
) -> Result<Verified, VerifyError> {
    let key = VerifyKey::parse(&secret.to_public_text()).expect("a public text verifies");
    let headers =
        [("webhook-id", id), ("webhook-timestamp", timestamp), ("webhook-signature", signature)];
    let verifier = WebhookVerifier::standard().key(key).build().expect("a key");
    verifier.verify(headers, body, NOW)
}

fn assert_round_trip(body: &[u8]) {
    for secret in secrets() {
        let signature = signature_header([&secret], ID, NOW, body).expect("a secret");
        let verified = verify(&secret, (ID, "1700000000", body), &signature).expect("genuine");
        assert_eq!((verified.id.as_deref(), verified.timestamp), (Some(ID), Some(NOW)));
        assert_eq!(verified.key_index, 0);
    }
}

/// The two bodies mean the same to a careless reader and must not verify for each other.
fn assert_distinct(sent: &[u8], received: &[u8]) {
    for secret in secrets() {
        let signature = signature_header([&secret], ID, NOW, sent).expect("a secret");
        let refused = verify(&secret, (ID, "1700000000", received), &signature);
        assert_eq!(refused, Err(VerifyError::NoMatch));
    }
}

#[test]
fn sg_03_special_unicode_is_signed_as_it_is() {
    for text in [
        "{\"a\":\"\u{2028}\u{2029}\"}",
        "{\"a\":\"x\u{feff}y\"}",
        "\u{feff}{}",
        "{\"a\":\"👩\u{200d}👩\u{200d}👧\"}",
        "{\"a\":\"caf\u{e9}\"}",
        "{\"a\":\"cafe\u{301}\"}",
        "{\"a\":\"\u{200f}שלום\u{202e}\"}",
        "{\"имя\":\"Пётр\"}",
        "{\"a\":\"\u{0}\"}",
    ] {
        assert_round_trip(text.as_bytes());
    }
    assert_distinct("caf\u{e9}".as_bytes(), "cafe\u{301}".as_bytes());
    assert_distinct("\u{feff}{}".as_bytes(), b"{}");
    assert_distinct("\"\u{2028}\"".as_bytes(), br#""\u2028""#);
}

#[test]
fn sg_11_duplicate_keys_are_not_merged() {
    assert_round_trip(br#"{"a":1,"a":2}"#);
    assert_distinct(br#"{"a":1,"a":2}"#, br#"{"a":2}"#);
    assert_distinct(br#"{"a":1}"#, br#"{"a": 1}"#);
}

#[test]
fn sg_13_moving_the_full_stop_never_verifies() {
    let secret = &secrets()[0];
    let body = b"1700000000.{}";
    let signature = signature_header([secret], ID, NOW, body).expect("a secret");
    assert!(verify(secret, (ID, "1700000000", body), &signature).is_ok());
    // The same joined text, read as a longer id and a shorter body.
    let moved = "msg_2abc.1700000000";
    let refused = verify(secret, (moved, "1700000000", b"{}"), &signature);
    assert_eq!(refused, Err(VerifyError::MalformedId));
}

#[test]
fn pl_01_an_empty_body_is_signed_as_empty() {
    assert_round_trip(b"");
    assert_distinct(b"", b"{}");
    assert_distinct(b"", b"null");
}

#[test]
fn pl_02_any_kind_of_payload_is_signed_byte_for_byte() {
    for body in [
        &b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<a>\xe9</a>\r\n"[..],
        b"a=1&b=%2B",
        b"\x08\x96\x01\x12\x00",
        b"\xff",
        b"--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n",
        b"\x00",
    ] {
        assert_round_trip(body);
    }
    assert_distinct(b"a\n", b"a\r\n");
    assert_distinct(b"a", b"a\n");
}

fn flip(bytes: &mut [u8], at: prop::sample::Index) {
    let bit = at.index(bytes.len() * 8);
    bytes[bit / 8] ^= 1 << (bit % 8);
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_body_verifies(
        body in prop::collection::vec(any::<u8>(), 0..2048),
        id in "[A-Za-z0-9_-]{1,64}",
        age in -300_i64..=300,
    ) {
        for secret in secrets() {
            let at = NOW - age;
            let signature = signature_header([&secret], &id, at, &body).expect("a secret");
            let verified = verify(&secret, (&id, &at.to_string(), &body), &signature);
            let verified = verified.map(|v| (v.id, v.timestamp));
            prop_assert_eq!(verified, Ok((Some(id.clone()), Some(at))));
        }
    }

    #[test]
    fn any_flipped_bit_of_the_body_fails(
        body in prop::collection::vec(any::<u8>(), 1..512),
        at in any::<prop::sample::Index>(),
    ) {
        for secret in secrets() {
            let signature = signature_header([&secret], ID, NOW, &body).expect("a secret");
            let mut changed = body.clone();
            flip(&mut changed, at);
            let refused = verify(&secret, (ID, "1700000000", &changed), &signature);
            prop_assert_eq!(refused, Err(VerifyError::NoMatch));
        }
    }

    #[test]
    fn any_flipped_bit_of_the_headers_fails(
        body in prop::collection::vec(any::<u8>(), 0..64),
        which in 0_usize..3,
        at in any::<prop::sample::Index>(),
    ) {
        for secret in secrets() {
            let signature = signature_header([&secret], ID, NOW, &body).expect("a secret");
            let mut values = [ID.to_owned(), NOW.to_string(), signature].map(String::into_bytes);
            flip(&mut values[which], at);
            let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
            let verifier = WebhookVerifier::standard().key(&secret).build().expect("a key");
            let headers = names.into_iter().zip(&values);
            prop_assert!(verifier.verify(headers, &body, NOW).is_err());
        }
    }

    #[test]
    fn any_flipped_bit_of_the_key_fails(
        key in any::<[u8; 24]>(),
        at in any::<prop::sample::Index>(),
    ) {
        let signature = Secret::from_random_hmac(key).sign(ID, NOW, b"{}");
        let mut other = key;
        flip(&mut other, at);
        let other = Secret::from_random_hmac(other);
        let refused = verify(&other, (ID, "1700000000", b"{}"), &signature);
        prop_assert_eq!(refused, Err(VerifyError::NoMatch));
    }

    #[test]
    fn any_header_of_any_scheme_is_refused_without_a_panic(
        line in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            "(t=|v1=|v0=|sha256=|,|[0-9]{1,30}|[ -~]{0,9}){0,40}".prop_map(String::into_bytes),
        ],
        now in any::<i64>(),
    ) {
        let standard = WebhookVerifier::standard().key(Secret::from_random_hmac([1; 24]));
        let presets = [WebhookVerifier::stripe, WebhookVerifier::github, WebhookVerifier::slack];
        let presets = presets.map(|preset| preset("secret").expect("a secret"));
        for builder in presets.into_iter().chain([standard]) {
            let verifier = builder.build().expect("a key");
            let names = [
                "stripe-signature", "x-hub-signature-256", "x-slack-signature",
                "x-slack-request-timestamp", "webhook-id", "webhook-timestamp",
                "webhook-signature",
            ];
            let headers = names.map(|name| (name, &line));
            let refused = verifier.verify(headers, b"body", now).is_err();
            prop_assert!(refused);
        }
    }

    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in "(whsec_|whsk_|whpk_)?[ -~]{0,120}") {
        if let Ok(secret) = Secret::parse(&text) {
            prop_assert!(secret.to_private_text().len() >= text.len());
        }
        let _ = VerifyKey::parse(&text);
    }
}
