//! The recorded first response, and its headers as bytes.
//!
//! Headers are kept the way HTTP/1.1 writes them, a line each: nothing a header may hold can be
//! mistaken for the end of one, and a person can read the record.
//! Never: a header that is not on the list of those to keep.

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode, response};
use http_body_util::Full;

use crate::error::StoreError;

/// A response as it was first given: status, the headers that are kept, and the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    /// Its status.
    pub status: StatusCode,
    /// The headers that are kept, in order.
    pub headers: HeaderMap,
    /// Its body, byte for byte.
    pub body: Bytes,
}

impl StoredResponse {
    /// Of a response, what is to be kept.
    pub(crate) fn keep(parts: &response::Parts, body: &Bytes, kept: &[HeaderName]) -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in &parts.headers {
            if kept.contains(name) {
                headers.append(name, value.clone());
            }
        }
        Self { status: parts.status, headers, body: body.clone() }
    }

    /// The response to send again.
    pub(crate) fn replay(self, mark: &HeaderName) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response.headers_mut().insert(mark, HeaderValue::from_static("true"));
        response
    }

    /// The headers as one text, for a store.
    #[must_use]
    pub fn head(&self) -> Vec<u8> {
        let mut head = Vec::new();
        for (name, value) in &self.headers {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head
    }

    /// Puts together what a store kept.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if no response could have been kept like that.
    pub fn from_kept(status: u16, head: &[u8], body: Bytes) -> Result<Self, StoreError> {
        let status = StatusCode::from_u16(status).map_err(|_| StoreError::Corrupt("status"))?;
        let mut headers = HeaderMap::new();
        let mut rest = head;
        while !rest.is_empty() {
            let (name, value, after) = line(rest).ok_or(StoreError::Corrupt("headers"))?;
            headers.append(name, value);
            rest = after;
        }
        Ok(Self { status, headers, body })
    }

    /// Bytes this response takes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        self.body.len() + headers.sum::<usize>()
    }
}

fn line(head: &[u8]) -> Option<(HeaderName, HeaderValue, &[u8])> {
    let end = head.windows(2).position(|pair| pair == b"\r\n")?;
    let (line, after) = head.split_at_checked(end)?;
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = line.split_at_checked(colon)?;
    let name = HeaderName::from_bytes(name).ok()?;
    let value = HeaderValue::from_bytes(value.strip_prefix(b": ")?).ok()?;
    Some((name, value, after.get(2..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(headers: &[(&'static str, &[u8])]) -> StoredResponse {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value).unwrap());
        }
        StoredResponse { status: StatusCode::CREATED, headers: map, body: Bytes::from("b") }
    }

    #[test]
    fn headers_survive_whatever_they_hold() {
        let several: [(_, &[u8]); 4] =
            [("location", b"/a: b?c=d"), ("link", b"<1>"), ("link", b"<2>"), ("etag", b"")];
        let bytes: [(_, &[u8]); 1] = [("etag", b" \xff\t: \xc3\xa9")];
        for headers in [&[][..], &several, &bytes] {
            let kept = response(headers);
            let again = StoredResponse::from_kept(201, &kept.head(), kept.body.clone());
            assert_eq!(again.unwrap(), kept);
        }
    }

    #[test]
    fn a_broken_record_is_named() {
        for (status, head) in
            [(99, &b""[..]), (200, b"etag"), (200, b"etag\r\n"), (200, b"e tag: 1\r\n")]
        {
            let broken = StoredResponse::from_kept(status, head, Bytes::new());
            assert!(matches!(broken, Err(StoreError::Corrupt(_))), "{head:?}");
        }
    }

    #[test]
    fn only_listed_headers_are_kept() {
        let (parts, ()) = Response::builder()
            .header("set-cookie", "secret")
            .header("etag", "1")
            .body(())
            .unwrap()
            .into_parts();
        let kept = StoredResponse::keep(&parts, &Bytes::new(), &[http::header::ETAG]);
        assert_eq!(kept.head(), b"etag: 1\r\n");
    }
}
