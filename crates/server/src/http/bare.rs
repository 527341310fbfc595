//! Answers that the HTTP library gives by itself, to what is no request of HTTP: it writes a status
//! and no body. Here they get the body that every error has.
//!
//! In: bytes on their way to a client. Out: the bytes to send in their place, if they are such an
//! answer. An answer of ours is never taken for one: its errors all have a body.
//! Never: look at more than the head of an answer.

use http::{StatusCode, header};
use resilience::Timestamp;

use super::connections::HEAD_BYTES_MAX;
use super::problem::Problem;

const EMPTY: &[u8] = b"content-length: 0\r\n";
const END: &[u8] = b"\r\n\r\n";

/// The same answer with a body, if these bytes are a bare one from its first to its last byte.
pub(super) fn completed(bytes: &[u8]) -> Option<Vec<u8>> {
    let status = bytes.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    if !status.starts_with(b"4") || !bytes.ends_with(END) {
        return None;
    }
    let at = bytes.windows(EMPTY.len()).position(|window| window == EMPTY)?;
    let body = problem(StatusCode::from_bytes(status).ok()?)?.text();
    let (before, after) = (bytes.get(..at)?, bytes.get(at + EMPTY.len()..)?);
    let between = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    Some([before, between.as_bytes(), after, &body].concat())
}

fn problem(status: StatusCode) -> Option<Problem> {
    Some(match status {
        StatusCode::BAD_REQUEST => {
            Problem::bad_request("generic_error", "The head of the request is not well-formed HTTP")
        }
        StatusCode::URI_TOO_LONG => {
            Problem::new(status, "uri_too_long", "The target of the request is too long")
        }
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => head_too_large(),
        _ => return None,
    })
}

/// A head that is larger than it may be.
pub(super) fn head_too_large() -> Problem {
    let detail = format!(
        "The head of the request is larger than {HEAD_BYTES_MAX} bytes or has more than 100 headers"
    );
    Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large", detail)
}

/// What is sent on a connection whose head was not complete in time.
pub(super) fn head_timeout(now: Timestamp) -> Vec<u8> {
    let status = StatusCode::REQUEST_TIMEOUT;
    let body = Problem::new(status, "request_timeout", "The head did not arrive in time").text();
    let date = jiff::Timestamp::from_microsecond(now.as_micros()).ok().and_then(|now| {
        jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&now).ok()
    });
    let date = date.map(|date| format!("{}: {date}\r\n", header::DATE)).unwrap_or_default();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{date}\r\n"
    );
    [head.as_bytes(), &body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(answer: &[u8]) -> (String, serde_json::Value) {
        let text = String::from_utf8(answer.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
        (head.to_owned(), serde_json::from_str(body).unwrap())
    }

    #[test]
    fn bare_answers_get_a_body() {
        for (status, code) in [
            ("400 Bad Request", "generic_error"),
            ("414 URI Too Long", "uri_too_long"),
            ("431 Request Header Fields Too Large", "headers_too_large"),
        ] {
            let bare = format!(
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\ndate: d\r\n\r\n"
            );
            let (head, body) = parts(&completed(bare.as_bytes()).unwrap());
            assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\nconnection: close\r\n")));
            assert!(head.ends_with("\r\ndate: d"), "{head}");
            assert_eq!(body["code"], code);
        }
    }

    #[test]
    fn other_answers_are_left_alone() {
        for other in [
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 20\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK",
            "",
            "\r\n\r\n",
        ] {
            assert_eq!(completed(other.as_bytes()), None, "{other:?}");
        }
    }

    #[test]
    fn a_late_head_is_told_so() {
        let (head, body) = parts(&head_timeout(Timestamp::from_secs(0)));
        assert!(head.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{head}");
        assert!(head.ends_with("\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT"), "{head}");
        assert_eq!(body["code"], "request_timeout");
    }
}
