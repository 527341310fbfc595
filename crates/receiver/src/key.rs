//! Which request is a repeat of which: the key, where it is read from, and whose it is.
//!
//! Never: two different lines, of which one would be picked.

use std::fmt;
use std::sync::Arc;

use http::HeaderName;
use http::header::HeaderMap;
use http::request::Parts;
use webhook::{Verified, WEBHOOK_ID};

/// Most bytes of a key.
pub const KEY_BYTES_MAX: usize = 255;

/// A key and whose it is: equal keys of different scopes have nothing to do with each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopedKey {
    /// For example a tenant; empty if all callers are one.
    pub scope: String,
    /// What the caller sent.
    pub key: String,
}

/// A key that is not one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

type Read = dyn Fn(&Parts, &[u8]) -> Option<String> + Send + Sync;

/// Where the key is read from.
#[derive(Clone)]
pub struct KeySource(Kind);

#[derive(Clone)]
enum Kind {
    Header(String),
    WebhookId,
    Custom(Arc<Read>),
}

impl KeySource {
    /// From the header of this name: a quoted string as RFC 8941 writes it, or a bare token.
    pub fn header(name: &str) -> Self {
        Self(Kind::Header(name.to_owned()))
    }

    /// The id of the message: the verified one if
    /// [`WebhookVerifyLayer`](crate::WebhookVerifyLayer) found one, else the header `webhook-id`.
    pub fn webhook_id() -> Self {
        Self(Kind::WebhookId)
    }

    /// From anything in the request, for example an event id in the body: 1 to 255 bytes without
    /// U+0000, or none, which counts as missing. A request for which it panics is answered 500 and
    /// not handled.
    pub fn from_fn(read: impl Fn(&Parts, &[u8]) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Kind::Custom(Arc::new(read)))
    }

    /// Whether a header of that name can exist.
    pub(crate) fn is_valid(&self) -> bool {
        match &self.0 {
            Kind::Header(name) => name.parse::<HeaderName>().is_ok(),
            Kind::WebhookId | Kind::Custom(_) => true,
        }
    }

    pub(crate) fn read(&self, parts: &Parts, body: &[u8]) -> Result<Option<String>, Malformed> {
        let key = match &self.0 {
            Kind::Header(name) => only_line(&parts.headers, name)?.map(string_or_token),
            Kind::WebhookId => match parts.extensions.get::<Verified>() {
                Some(Verified { id: Some(id), .. }) => Some(token(id.as_bytes())),
                _ => only_line(&parts.headers, WEBHOOK_ID)?.map(token),
            },
            Kind::Custom(read) => {
                read(parts, body).map(|key| if fits(&key) { Ok(key) } else { Err(Malformed) })
            }
        };
        key.transpose()
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Header(name) => write!(f, "KeySource::header({name:?})"),
            Kind::WebhookId => f.write_str("KeySource::webhook_id()"),
            Kind::Custom(_) => f.write_str("KeySource::from_fn(_)"),
        }
    }
}

/// Within the bounds, and storable: PostgreSQL keeps no U+0000.
fn fits(key: &str) -> bool {
    (1..=KEY_BYTES_MAX).contains(&key.len()) && !key.contains('\0')
}

/// The value of the header; a second line is allowed only if it says the same.
fn only_line<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a [u8]>, Malformed> {
    let mut lines = headers.get_all(name).iter().map(|value| value.as_bytes());
    let first = lines.next();
    if lines.any(|line| Some(line) != first) {
        return Err(Malformed);
    }
    Ok(first)
}

fn string_or_token(value: &[u8]) -> Result<String, Malformed> {
    match value {
        [b'"', inside @ .., b'"'] if !inside.is_empty() => string(inside),
        _ => token(value),
    }
}

/// The inside of a string of RFC 8941, section 3.3.3: printable ASCII, with `\` before `"` and `\`.
fn string(inside: &[u8]) -> Result<String, Malformed> {
    let mut key = String::with_capacity(inside.len());
    let mut bytes = inside.iter().copied();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'\\' => bytes.next().filter(|byte| matches!(byte, b'"' | b'\\')).ok_or(Malformed)?,
            b' '..=b'~' if byte != b'"' => byte,
            _ => return Err(Malformed),
        };
        key.push(char::from(byte));
    }
    if fits(&key) { Ok(key) } else { Err(Malformed) }
}

/// A bare key: visible ASCII without what would end an item of a structured header.
fn token(value: &[u8]) -> Result<String, Malformed> {
    let plain = |byte: &u8| matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b',' | b';');
    let text = std::str::from_utf8(value).map_err(|_| Malformed)?;
    if fits(text) && value.iter().all(plain) { Ok(text.to_owned()) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Request};
    use proptest::prelude::*;

    use super::*;

    fn read(source: &KeySource, lines: &[&[u8]]) -> Result<Option<String>, Malformed> {
        let (mut parts, ()) = Request::new(()).into_parts();
        for line in lines {
            let value = HeaderValue::from_bytes(line).unwrap();
            parts.headers.append("idempotency-key", value);
        }
        source.read(&parts, b"body")
    }

    #[test]
    fn strings_and_bare_tokens_are_read() {
        let source = KeySource::header("Idempotency-Key");
        assert_eq!(read(&source, &[]), Ok(None));
        for (line, key) in [
            (&b"8e03978e-40d5-43dd-bc93-6894a57f9324"[..], "8e03978e-40d5-43dd-bc93-6894a57f9324"),
            (b"\"8e03\"", "8e03"),
            (br#""a \"b\" \\ c, d;e""#, r#"a "b" \ c, d;e"#),
            (b"a:b/c=d", "a:b/c=d"),
        ] {
            assert_eq!(read(&source, &[line]), Ok(Some(key.to_owned())));
            assert_eq!(read(&source, &[line, line]), Ok(Some(key.to_owned())));
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let source = KeySource::header("idempotency-key");
        let long = vec![b'a'; KEY_BYTES_MAX + 1];
        let lines: [&[u8]; 12] = [
            b"",
            b"\"\"",
            b"\"",
            b"\"a",
            b"a\"",
            b"a b",
            b"a,b",
            b"\"a\";p=1",
            br#""\a""#,
            br#""a\""#,
            b"\xc3\xa9",
            &long,
        ];
        for line in lines {
            assert_eq!(read(&source, &[line]), Err(Malformed), "{line:?}");
        }
        assert_eq!(read(&source, &[b"a", b"b"]), Err(Malformed));
        assert_eq!(read(&source, &[b"\"a\xff\""]), Err(Malformed));
    }

    fn good() -> Vec<Vec<u8>> {
        let long = "k".repeat(KEY_BYTES_MAX - 1);
        ["8e03978e-40d5-43dd", "\"8e03\"", r#""a \"b\" \\ c, d;e""#, "a:b/c=d", &long, ""]
            .map(|text| text.as_bytes().to_vec())
            .to_vec()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn fuzz_of_idempotency_keys(line in testparts::spoilt(good())) {
            prop_assume!(HeaderValue::from_bytes(&line).is_ok());
            let source = KeySource::header("idempotency-key");
            let Ok(Some(key)) = read(&source, &[&line]) else { return Ok(()) };
            prop_assert!(fits(&key) && key.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            let written = format!("\"{}\"", key.replace('\\', r"\\").replace('"', "\\\""));
            prop_assert_eq!(read(&source, &[written.as_bytes()]), Ok(Some(key)));
        }
    }

    #[test]
    fn a_function_reads_from_anywhere() {
        let source = KeySource::from_fn(|_, body| String::from_utf8(body.to_vec()).ok());
        assert_eq!(read(&source, &[]), Ok(Some("body".to_owned())));
        let empty = KeySource::from_fn(|_, _| Some(String::new()));
        assert_eq!(read(&empty, &[]), Err(Malformed));
        let nul = KeySource::from_fn(|_, _| Some("a\0b".to_owned()));
        assert_eq!(read(&nul, &[]), Err(Malformed), "DB-01");
    }
}
