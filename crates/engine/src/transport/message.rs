//! The request as it goes out, and what it takes to write it once more.
//!
//! In: target, headers and body. Out: a request in origin form.
//! Never: change a header that was given, or leave the length of the body open.

use bytes::Bytes;
use domain::target::Target;
use http::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, Uri};
use http_body_util::Full;

/// Scheme, host and port as the target spells them; a default port is left out.
pub(super) fn origin(target: &Target) -> &str {
    let url = target.as_str();
    // A target holds no user-info and no fragment.
    &url[..url.len() - target.path_and_query().len()]
}

/// The request; `None` if the target cannot be written into one, which its parser excludes.
pub(super) fn request(
    target: &Target,
    mut headers: HeaderMap,
    body: Bytes,
) -> Option<Request<Full<Bytes>>> {
    let (_scheme, host) = origin(target).split_once("://")?;
    headers.insert(HOST, HeaderValue::from_str(host).ok()?);
    if body.is_empty() {
        // For a body of length zero hyper would leave it out, and the peer might wait for one.
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    let path = PathAndQuery::try_from(target.path_and_query()).ok()?;
    Some(assemble(Uri::from(path), headers, body))
}

/// A question to a target: GET, and no body.
pub(super) fn question(target: &Target, mut headers: HeaderMap) -> Option<Request<Full<Bytes>>> {
    let (_scheme, host) = origin(target).split_once("://")?;
    headers.insert(HOST, HeaderValue::from_str(host).ok()?);
    let path = PathAndQuery::try_from(target.path_and_query()).ok()?;
    let mut request = assemble(Uri::from(path), headers, Bytes::new());
    *request.method_mut() = Method::GET;
    Some(request)
}

fn assemble(uri: Uri, headers: HeaderMap, body: Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    request
}

/// What is kept of a request to write it again.
///
/// Sending consumes the headers. It is rarely needed again, and cloning them costs an allocation
/// for each name and value; so they are kept as text.
pub(super) struct Spare {
    uri: Uri,
    /// `name:value\n`; neither part can hold what separates them.
    lines: Vec<u8>,
    body: Full<Bytes>,
}

impl Spare {
    /// Of a request about to be sent.
    pub(super) fn of(request: &Request<Full<Bytes>>) -> Self {
        let headers = request.headers();
        let parts = || headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let len = parts().map(|(name, value)| name.len() + value.len() + 2).sum();
        let mut lines = Vec::with_capacity(len);
        for (name, value) in parts() {
            lines.extend_from_slice(name.as_bytes());
            lines.push(b':');
            lines.extend_from_slice(value);
            lines.push(b'\n');
        }
        Self { uri: request.uri().clone(), lines, body: request.body().clone() }
    }

    /// The same request again.
    pub(super) fn request(self) -> Request<Full<Bytes>> {
        let lines = self.lines.split(|&byte| byte == b'\n');
        let headers = lines.filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            let name = HeaderName::from_bytes(&line[..colon]).ok()?;
            Some((name, HeaderValue::from_bytes(&line[colon + 1..]).ok()?))
        });
        let mut map = HeaderMap::with_capacity(self.lines.len() / 16);
        for (name, value) in headers {
            map.append(name, value);
        }
        let mut request = Request::new(self.body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri;
        *request.headers_mut() = map;
        request
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn hc_06_a_spare_is_the_same_request() {
        let target = Target::parse("url", "https://h.example:444/a?b=%2F", false).unwrap();
        assert_eq!(origin(&target), "https://h.example:444");
        let mut headers = HeaderMap::new();
        for (name, value) in [("x-a", "1"), ("x-a", "2:3"), ("x-b", ""), ("x-c", " \u{e9}\t")] {
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        for body in ["", "{\"a\":1}"] {
            let first = request(&target, headers.clone(), Bytes::from(body)).unwrap();
            let again = Spare::of(&first).request();
            assert_eq!((again.uri(), again.method()), (first.uri(), first.method()));
            let lines = |request: &Request<Full<Bytes>>| {
                let pairs = request.headers().iter();
                pairs.map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>()
            };
            assert_eq!(lines(&again), lines(&first));
            assert_eq!(again.into_body().collect().await.unwrap().to_bytes(), body);
        }
    }
}
