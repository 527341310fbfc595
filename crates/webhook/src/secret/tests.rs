//! Tests of the secrets: every refusal by name, both text forms, and known signatures.

use super::*;

const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const TIMESTAMP: i64 = 1_614_265_330;
const BODY: &[u8] = br#"{"test": 2432232314}"#;
const PAIR: &str =
    "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==";

fn hmac_text(bytes: usize) -> String {
    encode(SECRET_PREFIX, &vec![7; bytes])
}

#[test]
fn the_published_hmac_vector() {
    let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let signature = secret.sign(ID, TIMESTAMP, BODY);
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    assert_eq!(signature.len(), signature.capacity());
}

#[test]
fn the_published_ed25519_vector() {
    let secret = Secret::parse(PAIR).unwrap();
    assert_eq!(
        secret.sign(ID, TIMESTAMP, BODY),
        "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM\
         +m7TBAg=="
    );
    assert_eq!(secret.to_public_text(), "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=");
}

#[test]
fn both_kinds_survive_storage() {
    for secret in [Secret::from_random_hmac([9; 24]), Secret::from_random_ed25519([9; 32])] {
        let again = Secret::parse(&secret.to_private_text()).unwrap();
        assert_eq!(again.to_private_text(), secret.to_private_text());
        assert_eq!(again.to_public_text(), secret.to_public_text());
        assert_eq!(again.sign(ID, TIMESTAMP, BODY), secret.sign(ID, TIMESTAMP, BODY));
    }
}

#[test]
fn the_public_text_of_a_key_pair_holds_no_private_half() {
    let secret = Secret::from_random_ed25519([9; 32]);
    let public = secret.to_public_text();
    assert_eq!(decode(public.strip_prefix(PUBLIC_PREFIX).unwrap()).unwrap().len(), 32);
    assert_eq!(Secret::parse(&public).unwrap_err(), SecretError::SecretPrefix);
}

#[test]
fn sg_10_nothing_short_or_long_becomes_a_key() {
    assert_eq!(Secret::parse("").unwrap_err(), SecretError::Empty);
    for bytes in [0, 1, 23, 76, 500] {
        let refused = Secret::parse(&hmac_text(bytes)).unwrap_err();
        assert_eq!(refused, SecretError::HmacLength { bytes });
        assert_eq!(HmacSecret::new(&vec![7; bytes]).unwrap_err(), refused);
    }
    // 65 to 75 bytes are beyond the specification and allowed for secrets imported from Svix.
    for bytes in [24, 25, 26, 32, 64, 65, 75] {
        assert!(Secret::parse(&hmac_text(bytes)).is_ok(), "{bytes} bytes");
    }
}

#[test]
fn sg_10_padding_is_optional() {
    for bytes in 24..=75 {
        let padded = hmac_text(bytes);
        let bare = Secret::parse(padded.trim_end_matches('=')).unwrap();
        assert_eq!(bare.to_private_text(), padded);
        let padded = Secret::parse(&padded).unwrap();
        assert_eq!(bare.sign(ID, TIMESTAMP, BODY), padded.sign(ID, TIMESTAMP, BODY));
    }
    assert!(Secret::parse(PAIR.trim_end_matches('=')).is_ok());
}

#[test]
fn sg_10_white_space_is_named() {
    let good = hmac_text(24);
    for text in [format!("{good}\n"), format!("{good}\r\n"), format!(" {good}"), "\t".into()] {
        assert_eq!(Secret::parse(&text).unwrap_err(), SecretError::WhiteSpace, "{text:?}");
    }
    let inside = good.replacen("_", "_ ", 1);
    assert_eq!(Secret::parse(&inside).unwrap_err(), SecretError::WhiteSpace);
}

#[test]
fn sg_10_the_prefix_is_required() {
    let good = hmac_text(24);
    let bare = good.strip_prefix(SECRET_PREFIX).unwrap();
    for text in [bare, "whsec", "WHSEC_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH", "sk_x", "whsec-BwcH"] {
        assert_eq!(Secret::parse(text).unwrap_err(), SecretError::SecretPrefix, "{text}");
    }
}

#[test]
fn sg_10_only_standard_base64() {
    let good = hmac_text(25);
    let stray_bits = good.replace("Bw==", "Bx==");
    let url_safe = good.replacen("Bwc", "B-_", 1);
    let too_long = format!("{SECRET_PREFIX}{}", "A".repeat(1_000_000));
    for text in [&stray_bits, &url_safe, &too_long, "whsec_ä", "whsec_=", "whsk_%%%"] {
        assert_eq!(Secret::parse(text).unwrap_err(), SecretError::Base64);
    }
}

#[test]
fn a_key_pair_must_be_whole_and_match() {
    let mut bytes = decode(PAIR.strip_prefix(SIGNING_PREFIX).unwrap()).unwrap();
    for length in [0, 32, 63] {
        let refused = Secret::parse(&encode(SIGNING_PREFIX, &bytes[..length])).unwrap_err();
        assert_eq!(refused, SecretError::KeyPairLength { bytes: length });
    }
    bytes[40] ^= 1;
    let refused = Secret::parse(&encode(SIGNING_PREFIX, &bytes)).unwrap_err();
    assert_eq!(refused, SecretError::KeyPairMismatch);
    bytes[40] ^= 1;
    bytes[0] ^= 1;
    let refused = Secret::parse(&encode(SIGNING_PREFIX, &bytes)).unwrap_err();
    assert_eq!(refused, SecretError::KeyPairMismatch);
}

#[test]
fn debug_and_errors_show_no_key() {
    let hmac = Secret::from_random_hmac([9; 24]);
    assert_eq!(format!("{hmac:?}"), "Hmac(<redacted>)");
    let pair = Secret::parse(PAIR).unwrap();
    assert_eq!(format!("{pair:?}"), "Ed25519(<redacted>)");
    let refused = Secret::parse("whsec_U0VDUkVU").unwrap_err();
    assert!(!format!("{refused} {refused:?}").contains("U0VD"));
    assert!(refused.to_string().contains("24 to 75 bytes"), "{refused}");
}
