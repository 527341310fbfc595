//! From outside, with texts that are nearly right: nothing panics, and nothing verifies that was
//! not signed. Never: a test that looks at private parts.

use std::sync::LazyLock;

use proptest::prelude::*;
use testparts::spoilt;
use webhook::{Secret, VerifyKey, WebhookVerifier, signature_header};

const ID: &str = "msg_2abc";
const OTHER: &str = "msg_other";
const NOW: i64 = 1_700_000_000;
const BODY: &[u8] = b"{}";
const SHARED: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn texts(all: &[&str]) -> Vec<Vec<u8>> {
    all.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn secrets() -> [Secret; 2] {
    [Secret::parse(SHARED).expect("a secret"), Secret::from_random_ed25519([6; 32])]
}

fn signature(id: &str) -> String {
    signature_header(&secrets(), id, NOW, BODY).expect("secrets")
}

fn signatures() -> Vec<Vec<u8>> {
    let (genuine, other) = (signature(ID), signature(OTHER));
    texts(&[&genuine, &format!("v2,unknown {genuine}"), &format!("{other} {genuine}"), &other])
}

static VERIFIER: LazyLock<WebhookVerifier> = LazyLock::new(|| {
    let keys = secrets().map(|secret| VerifyKey::parse(&secret.to_public_text()).expect("a key"));
    let builder = keys.into_iter().fold(WebhookVerifier::standard(), |all, key| all.key(key));
    builder.build().expect("keys")
});

/// Whether one of the entries of a list is our signature for that id. Base64 may be written without
/// its padding.
fn holds_a_genuine_one(list: &[u8], id: &str) -> bool {
    let list = String::from_utf8_lossy(list);
    let bare = |entry: &str| entry.trim_end_matches('=').to_owned();
    let genuine: Vec<_> = signature(id).split(' ').map(bare).collect();
    list.split(' ').any(|entry| genuine.contains(&bare(entry)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn fuzz_of_signature_headers(
        id in spoilt(texts(&[ID, ID, OTHER])),
        timestamp in spoilt(texts(&["1700000000", "1700000000", "01700000000", "-1"])),
        signature in spoilt(signatures()),
    ) {
        let headers = [
            ("webhook-id", id.as_slice()),
            ("webhook-timestamp", timestamp.as_slice()),
            ("webhook-signature", signature.as_slice()),
        ];
        if let Ok(verified) = VERIFIER.verify(headers, BODY, NOW) {
            let id = verified.id.unwrap_or_default();
            prop_assert!(id == ID || id == OTHER, "{}", id);
            prop_assert_eq!(verified.timestamp, Some(NOW));
            prop_assert!(holds_a_genuine_one(&signature, &id));
        }
    }

    #[test]
    fn fuzz_of_signature_headers_of_others(
        stripe in spoilt(texts(&["t=1700000000,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd"])),
        github in spoilt(texts(&["sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"])),
        slack in spoilt(texts(&["v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"])),
    ) {
        let headers = [
            ("stripe-signature", stripe.as_slice()),
            ("x-hub-signature-256", github.as_slice()),
            ("x-slack-signature", slack.as_slice()),
            ("x-slack-request-timestamp", b"1700000000"),
        ];
        for builder in [
            WebhookVerifier::stripe("whsec_test"),
            WebhookVerifier::github("a secret of theirs"),
            WebhookVerifier::slack("8f742231b10e8888abcd99yyyzzz85a5"),
        ] {
            let Ok(verifier) = builder.map(|builder| builder.build()) else { continue };
            let verifier = verifier.expect("a key");
            // None of these was made with these secrets.
            prop_assert!(verifier.verify(headers, BODY, NOW).is_err());
        }
    }

    #[test]
    fn fuzz_of_secrets(text in spoilt(
        secrets()
            .iter()
            .flat_map(|secret| [secret.to_private_text(), secret.to_public_text()])
            .map(String::into_bytes)
            .collect()
    )) {
        let text = String::from_utf8_lossy(&text);
        if let Ok(secret) = Secret::parse(&text) {
            let again = Secret::parse(&secret.to_private_text()).expect("as it is written");
            prop_assert_eq!(again.sign(ID, NOW, BODY), secret.sign(ID, NOW, BODY));
            prop_assert!(VerifyKey::parse(&secret.to_public_text()).is_ok());
        }
        if let Err(error) = VerifyKey::parse(&text) {
            let said = format!("{error} {error:?}");
            prop_assert!(text.len() < 12 || !said.contains(&*text), "a key in an error");
        }
    }
}
