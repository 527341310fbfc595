//! A delivery's way to the target and the answer's way back, both byte for byte.
//!
//! What concerns one connection only stays on it: framing and the headers that
//! RFC 9110, section 7.6.1, names.
//! Never: follow a redirect, or try twice; the server does.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use url::Url;

use crate::failure::root;
use crate::web::{self, Web};

/// The longest that the server may be set to wait.
const TIMEOUT: Duration = Duration::from_secs(30);
/// More of an answer than the server reads.
const ANSWER_BYTES_MAX: usize = 128 << 10;

/// Headers of one connection.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::HOST,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The way to one target.
pub(super) struct Forward {
    web: Web,
    target: Url,
}

/// What the target said, or what is said in its place.
pub(super) struct Answered {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Why there is no answer of the target.
    pub(super) error: Option<String>,
}

impl Answered {
    /// Said in the place of the target that was not asked.
    pub(super) fn refused(why: String) -> Self {
        Self::without(StatusCode::UNAUTHORIZED, why)
    }

    fn without(status: StatusCode, why: String) -> Self {
        let body = Bytes::from(format!("peyk listen: {why}"));
        Self { status, headers: HeaderMap::new(), body, error: Some(why) }
    }
}

impl Forward {
    /// To this target.
    pub(super) fn new(target: Url) -> Self {
        Self { web: web::client(target.scheme() == "https"), target }
    }

    /// The target.
    pub(super) const fn target(&self) -> &Url {
        &self.target
    }

    /// Sends and waits.
    pub(super) async fn send(&self, headers: &HeaderMap, body: Bytes) -> Answered {
        let mut request = Request::post(self.target.as_str());
        if let Some(own) = request.headers_mut() {
            *own = passed_on(headers);
        }
        let request = match request.body(Full::new(body)) {
            Ok(request) => request,
            Err(fault) => return Answered::without(StatusCode::BAD_GATEWAY, fault.to_string()),
        };
        let whole = async {
            let response = self.web.request(request).await.map_err(|fault| root(&fault))?;
            let (parts, body) = response.into_parts();
            Ok::<_, String>((parts, beginning(body).await?))
        };
        match tokio::time::timeout(TIMEOUT, whole).await {
            Err(_) => {
                let why = format!("no answer from {} in time", self.target);
                Answered::without(StatusCode::GATEWAY_TIMEOUT, why)
            }
            Ok(Err(why)) => {
                let why = format!("no answer from {}: {why}", self.target);
                Answered::without(StatusCode::BAD_GATEWAY, why)
            }
            Ok(Ok((parts, body))) => {
                let headers = passed_on(&parts.headers);
                Answered { status: parts.status, headers, body, error: None }
            }
        }
    }
}

/// The beginning of a body; more than that nobody reads.
async fn beginning(mut body: Incoming) -> Result<Bytes, String> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|fault| root(&fault))?;
        if let Some(data) = frame.data_ref() {
            bytes.extend_from_slice(data);
        }
        if bytes.len() >= ANSWER_BYTES_MAX {
            bytes.truncate(ANSWER_BYTES_MAX);
            break;
        }
    }
    Ok(bytes.freeze())
}

/// The headers that are not of one connection: those above, and those that `connection` names.
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let named: Vec<String> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let stays = |name: &HeaderName| {
        HOP_BY_HOP.contains(name)
            || name.as_str() == "keep-alive"
            || named.iter().any(|other| other == name.as_str())
    };
    let passed = headers.iter().filter(|(name, _)| !stays(name));
    passed.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn headers_of_one_connection_stay_on_it() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "a"),
            ("connection", "keep-alive, X-Hop"),
            ("x-hop", "1"),
            ("keep-alive", "5"),
            ("content-length", "3"),
            ("transfer-encoding", "chunked"),
            ("webhook-id", "msg_1"),
            ("x-two", "1"),
            ("x-two", "2"),
        ] {
            let name = HeaderName::from_static(name);
            headers.append(name, HeaderValue::from_static(value));
        }
        let passed = passed_on(&headers);
        let mut names: Vec<_> = passed.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["webhook-id", "x-two", "x-two"]);
    }
}
