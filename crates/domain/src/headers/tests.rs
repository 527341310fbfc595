//! Tests of custom headers. Never: send one.

use super::*;

#[test]
fn hd_02_a_long_value_is_whole_or_refused() {
    let token = format!("Bearer {}", "t".repeat(4_096 - 7));
    assert_eq!(token.len(), 4_096);
    assert_eq!(validate("Authorization", &token), Ok(()));
    let fault = validate("Authorization", &format!("{token}t")).unwrap_err();
    assert_eq!(fault.loc, ["body", "headers", "Authorization"]);
    assert!(!fault.to_string().contains("ttt"), "the value stays out of the message");
}

#[test]
fn hd_03_placeholders_are_literal() {
    for value in ["a{{b", "{{secret}}", "${x}", "%s", "", "a\tb", "é"] {
        assert_eq!(validate("x-template", value), Ok(()), "{value}");
    }
}

#[test]
fn system_headers_cannot_be_replaced() {
    let names = [
        "Host",
        "connection",
        "Content-Type",
        "content-length",
        "CONTENT-ENCODING",
        "user-agent",
        "User_Agent",
        "webhook-id",
        "Webhook-Signature",
        "webhook_signature",
        "webhook-attempt",
        "svix-id",
        "Svix_Signature",
        "x-svix-anything",
        "idempotency-key",
        "X-Idempotency-Key",
        "transfer-encoding",
        "te",
        "traceparent",
        "TraceState",
        "trailer",
        "trailers",
        "upgrade",
        "expect",
        "keep-alive",
        "proxy-authorization",
        "Proxy-Connection",
        "age",
        "cache-control",
        "clear-site-data",
        "expires",
        "pragma",
        "warning",
        "x-amz-date",
        "x-amzn-trace-id",
        "x-google-a",
        "x-goog-b",
        "x-gfe-c",
        "x-azure-d",
        "x-fd-e",
    ];
    for name in names {
        assert!(validate(name, "v").is_err(), "{name}");
    }
    for name in ["Authorization", "x-api-key", "Accept", "X-Content", "x-webhook-id", "cookie"] {
        assert_eq!(validate(name, "v"), Ok(()), "{name}");
    }
}

#[test]
fn db_01_nothing_can_break_out_of_a_header() {
    for name in ["", "a b", "a:b", "a\r\nb", "é", "a\0", ":authority"] {
        assert!(validate(name, "v").is_err(), "{name:?}");
    }
    for value in ["a\r\nhost: b", "a\nb", "a\0b", "\u{7f}"] {
        assert!(validate("x-a", value).is_err(), "{value:?}");
    }
    let long = "n".repeat(HEADER_NAME_BYTES_MAX + 1);
    assert_eq!(validate(&long, "v").unwrap_err().loc, ["body", "headers"]);
}

#[test]
fn lists_are_bounded_and_free_of_doubles() {
    let pair = |name: &str| (name.to_owned(), "v".to_owned());
    assert_eq!(validate_all(&[pair("x-a"), pair("x-b")]), Ok(()));
    assert!(validate_all(&[pair("x-a"), pair("X-A")]).is_err());
    let many = |count: usize| (0..count).map(|n| pair(&format!("x-{n}"))).collect::<Vec<_>>();
    assert_eq!(validate_all(&many(HEADERS_MAX)), Ok(()));
    assert!(validate_all(&many(HEADERS_MAX + 1)).is_err());
}

#[test]
fn credentials_are_known_by_their_names() {
    for (name, sensitive) in [
        // The six names of the wire contract.
        ("authorization", true),
        ("proxy-authenticate", true),
        ("proxy-authorization", true),
        ("www-authenticate", true),
        ("x-api-key", true),
        ("x-auth-token", true),
        // The same in other spellings, and what vendors call theirs.
        ("Authorization", true),
        ("X-Authorization", true),
        ("X-AUTH", true),
        ("apikey", true),
        ("Ocp-Apim-Subscription-Key", true),
        ("X-Vault-Token", true),
        ("PRIVATE-TOKEN", true),
        ("x-client-secret", true),
        ("x_password", true),
        ("X-Passwd", true),
        ("x-credentials", true),
        ("Cookie", true),
        ("X-Hub-Signature-256", true),
        ("x-session-id", true),
        // Names that give nothing away.
        ("accept", false),
        ("x-request-id", false),
        ("x-tenant", false),
        ("x-pass", false),
        ("x-environment", false),
    ] {
        assert_eq!(is_sensitive(name), sensitive, "{name}");
    }
}
