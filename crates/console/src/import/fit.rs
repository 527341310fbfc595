//! What a row becomes where the server takes the same thing only in another form.
//!
//! In: rows as Svix has them. Out: rows as they can be taken over, each with what is to be said.
//! Never: a credential in what is said.

use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use serde_json::Value;
use url::Url;

use super::svix::rows::{All, Endpoint};

/// Headers that the server sets itself or sends to nobody, in lower case, `-` for `_`.
const LEFT_OUT: [&str; 19] = [
    "age",
    "cache-control",
    "clear-site-data",
    "connection",
    "expect",
    "expires",
    "host",
    "http2-settings",
    "idempotency-key",
    "keep-alive",
    "pragma",
    "te",
    "trailer",
    "trailers",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "warning",
    "x-idempotency-key",
];
/// Beginnings of others.
const LEFT_OUT_PREFIXES: [&str; 12] = [
    "content-", "proxy-", "svix-", "webhook-", "x-amz-", "x-amzn-", "x-azure-", "x-fd-", "x-gfe",
    "x-goog-", "x-google", "x-svix-",
];

/// Makes all rows fit.
pub(crate) fn fit(all: &mut All) {
    for app in &mut all.apps.read {
        metadata(app.metadata.as_mut(), &mut app.notes);
    }
    for endpoint in &mut all.endpoints.read {
        metadata(endpoint.metadata.as_mut(), &mut endpoint.notes);
        headers(endpoint);
        user(endpoint);
    }
}

/// Values must be texts.
fn metadata(metadata: Option<&mut Value>, notes: &mut Vec<String>) {
    for (name, value) in metadata.and_then(Value::as_object_mut).into_iter().flatten() {
        if !value.is_string() {
            *value = Value::String(value.to_string());
            notes.push(format!("its metadata {name} is no text: taken over as JSON in a text"));
        }
    }
}

fn headers(endpoint: &mut Endpoint) {
    let Some(headers) = &mut endpoint.headers else { return };
    headers.retain(|name, _| {
        let plain = name.to_ascii_lowercase().replace('_', "-");
        let goes = LEFT_OUT.contains(&plain.as_str())
            || LEFT_OUT_PREFIXES.iter().any(|prefix| plain.starts_with(prefix));
        if goes {
            endpoint.notes.push(format!("its header {name} is left out: no endpoint may set it"));
        }
        !goes
    });
}

/// A URL has no user: that is a header.
fn user(endpoint: &mut Endpoint) {
    let Ok(mut url) = Url::parse(&endpoint.url) else { return };
    let (user, password) = (decoded(url.username()), decoded(url.password().unwrap_or_default()));
    let has_user = !url.username().is_empty() || url.password().is_some();
    if !has_user || url.set_username("").is_err() || url.set_password(None).is_err() {
        return;
    }
    endpoint.url = url.into();
    let headers = endpoint.headers.get_or_insert_default();
    let note = if headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
        "the user in its URL is left out: it has an authorization header of its own"
    } else {
        let pair = BASE64.encode(&[&user[..], b":", &password].concat());
        headers.insert("Authorization".to_owned(), format!("Basic {pair}"));
        "the user in its URL is an authorization header now"
    };
    endpoint.notes.push(note.to_owned());
}

/// Bytes of a text where some are `%` and two hexadecimal digits.
fn decoded(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| HEXLOWER_PERMISSIVE.decode(code).ok());
        if let Some(byte) = code {
            bytes.extend(byte);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::svix::rows::Rows;
    use super::*;

    fn fitted(mut row: Value) -> Endpoint {
        let base = json!({
            "id": "ep_1", "app_id": "app_1", "uid": null, "description": "", "version": 1,
            "disabled": false, "rate_limit": null, "key": "\\x00",
        });
        row.as_object_mut().unwrap().extend(base.as_object().unwrap().clone());
        let endpoint = serde_json::from_value(row).unwrap();
        let endpoints = Rows { read: vec![endpoint], unread: Vec::new() };
        let mut all = All { endpoints, ..All::default() };
        fit(&mut all);
        all.endpoints.read.remove(0)
    }

    #[test]
    fn ur_04_a_user_in_a_url_becomes_a_header() {
        // url, url then, what the header says
        let table = [
            ("https://user:pa%3Ass@h.example/x", "https://h.example/x", "user:pa:ss"),
            ("https://us%zz@h.example", "https://h.example/", "us%zz:"),
            ("https://good.example@127.0.0.1/", "https://127.0.0.1/", "good.example:"),
            ("https://:secret@h.example/", "https://h.example/", ":secret"),
        ];
        for (url, plain, pair) in table {
            let row = fitted(json!({"url": url}));
            let expected = format!("Basic {}", BASE64.encode(pair.as_bytes()));
            assert_eq!(row.url, plain);
            assert_eq!(row.headers.unwrap()["Authorization"], expected);
            assert_eq!(row.notes.len(), 1);
            assert!(!row.notes[0].contains("secret"));
        }
        let own = json!({"url": "https://u:p@h/", "headers": {"authorization": "Bearer x"}});
        let row = fitted(own);
        assert_eq!((row.url.as_str(), row.headers.unwrap().len()), ("https://h/", 1));
        let row = fitted(json!({"url": "https://h.example"}));
        assert_eq!((row.url.as_str(), row.headers), ("https://h.example", None), "left alone");
    }

    #[test]
    fn headers_that_no_endpoint_may_set_are_left_out() {
        let headers = json!({"Host": "a", "X_AMZ_id": "b", "webhook-id": "c", "X-Own": "d"});
        let row = fitted(json!({"url": "https://h/", "headers": headers}));
        assert_eq!(row.headers.unwrap().into_keys().collect::<Vec<_>>(), ["X-Own"]);
        assert_eq!(row.notes.len(), 3);
    }

    #[test]
    fn metadata_becomes_text() {
        let mut notes = Vec::new();
        let mut value = json!({"a": "x", "b": 1, "c": {"d": [null]}, "e": null});
        metadata(Some(&mut value), &mut notes);
        let texts = json!({"a": "x", "b": "1", "c": r#"{"d":[null]}"#, "e": "null"});
        assert_eq!((value, notes.len()), (texts, 3));
    }
}
