//! As much of HTTP/1.1 as a load generator and a receiver need: heads and content lengths.
//!
//! In: bytes as they came. Out: where the head ends, and the few fields that matter; `None` while
//! it is not whole.
//! Never: chunked bodies, obsolete line folding, or anything that a peer under test would not send.

use crate::fault::{Fault, Result};

/// Longest head that is waited for.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnswerHead {
    /// Bytes up to and with the empty line.
    pub(crate) len: usize,
    /// The status.
    pub(crate) status: u16,
    /// Bytes of the body.
    pub(crate) body_len: usize,
    /// The peer closes after this one.
    pub(crate) close: bool,
}

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestHead<'a> {
    /// Bytes up to and with the empty line.
    pub(crate) len: usize,
    /// Path and query.
    pub(crate) path: &'a [u8],
    /// Bytes of the body.
    pub(crate) body_len: usize,
    /// The `webhook-id`, empty when there is none.
    pub(crate) webhook_id: &'a [u8],
}

/// Reads the head of an answer.
pub(crate) fn answer_head(bytes: &[u8]) -> Result<Option<AnswerHead>> {
    let mut lines = Lines { bytes, at: 0 };
    let Some(first) = lines.next() else { return too_long(bytes) };
    let status = first
        .strip_prefix(b"HTTP/1.1 ")
        .and_then(|rest| rest.get(..3))
        .and_then(decimal)
        .and_then(|status| u16::try_from(status).ok())
        .ok_or_else(|| Fault::new(format!("not an HTTP/1.1 answer: {:?}", lossy(first))))?;
    let (mut body_len, mut close) = (None, false);
    loop {
        let Some(line) = lines.next() else { return too_long(bytes) };
        if line.is_empty() {
            break;
        }
        if let Some(value) = field(line, b"content-length") {
            body_len = decimal(value);
        } else if let Some(value) = field(line, b"connection") {
            close = value.eq_ignore_ascii_case(b"close");
        } else if field(line, b"transfer-encoding").is_some() {
            return Err(Fault::new("the answer is chunked; the bench reads content-length only"));
        }
    }
    let bodiless = status == 204 || status == 304;
    let body_len = match body_len {
        Some(len) => len,
        None if bodiless => 0,
        None => return Err(Fault::new(format!("an answer with status {status} has no length"))),
    };
    Ok(Some(AnswerHead { len: lines.at, status, body_len, close }))
}

/// Reads the head of a request.
pub(crate) fn request_head(bytes: &[u8]) -> Result<Option<RequestHead<'_>>> {
    let mut lines = Lines { bytes, at: 0 };
    let Some(first) = lines.next() else { return too_long(bytes) };
    let mut words = first.split(|byte| *byte == b' ').skip(1);
    let (Some(path), Some(b"HTTP/1.1")) = (words.next(), words.next()) else {
        return Err(Fault::new(format!("not an HTTP/1.1 request: {:?}", lossy(first))));
    };
    let (mut body_len, mut webhook_id) = (0, &b""[..]);
    loop {
        let Some(line) = lines.next() else { return too_long(bytes) };
        if line.is_empty() {
            break;
        }
        if let Some(value) = field(line, b"content-length") {
            body_len = decimal(value).ok_or_else(|| Fault::new("a content-length is no number"))?;
        } else if let Some(value) = field(line, b"webhook-id") {
            webhook_id = value;
        } else if field(line, b"transfer-encoding").is_some() {
            return Err(Fault::new("a request is chunked; the bench reads content-length only"));
        }
    }
    Ok(Some(RequestHead { len: lines.at, path, body_len, webhook_id }))
}

/// Whole lines, without their ends.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        self.at += end + 1;
        let line = &rest[..end];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

/// The value of a header line if it has that name.
fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (found, rest) = line.split_at_checked(name.len())?;
    let value = rest.strip_prefix(b":")?;
    found.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

fn decimal(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn too_long<T>(bytes: &[u8]) -> Result<Option<T>> {
    if bytes.len() > HEAD_BYTES_MAX {
        return Err(Fault::new("a head is longer than 16 KiB"));
    }
    Ok(None)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_once_whole() {
        let text = b"HTTP/1.1 202 Accepted\r\nContent-Length: 12\r\nx: y\r\n\r\n{\"id\":\"abc\"}";
        let head = answer_head(text).unwrap().unwrap();
        assert_eq!((head.status, head.body_len, head.close), (202, 12, false));
        assert_eq!(&text[head.len..], b"{\"id\":\"abc\"}");
        for cut in 0..head.len {
            assert_eq!(answer_head(&text[..cut]).unwrap(), None, "cut at {cut}");
        }
    }

    #[test]
    fn odd_answers() {
        let bodiless = answer_head(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
        let head = bodiless.unwrap().unwrap();
        assert_eq!((head.body_len, head.close), (0, true));
        assert!(answer_head(b"HTTP/1.1 200 OK\r\n\r\n").is_err(), "no length");
        assert!(answer_head(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(answer_head(b"SSH-2.0\r\n").is_err());
        assert!(answer_head(&[b'x'; HEAD_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn requests_are_read_once_whole() {
        let text = b"POST /ok/7?x HTTP/1.1\r\nWebhook-Id: msg_1\r\ncontent-length:2\r\n\r\n{}POST";
        let head = request_head(text).unwrap().unwrap();
        assert_eq!(
            (head.path, head.webhook_id, head.body_len),
            (&b"/ok/7?x"[..], &b"msg_1"[..], 2)
        );
        assert_eq!(&text[head.len..head.len + 2], b"{}");
        assert_eq!(request_head(&text[..head.len - 1]).unwrap(), None);
        let bare = request_head(b"GET / HTTP/1.1\r\n\r\n").unwrap().unwrap();
        assert_eq!((bare.body_len, bare.webhook_id), (0, &b""[..]));
        assert!(request_head(b"GET /\r\n\r\n").is_err());
    }
}
