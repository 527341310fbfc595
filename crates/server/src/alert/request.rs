//! A request with JSON to the first endpoint of a route.
//!
//! Never: a header or a secret of a channel.

use bytes::Bytes;
use domain::target::Target;
use engine::alert::Request;
use serde_json::Value;

/// A request to the first endpoint of a route.
pub(super) fn plain(url: &Target, body: &Value) -> Request {
    Request {
        place: String::new(),
        target: url.clone(),
        headers: Vec::new(),
        secret: None,
        payload: Bytes::from(body.to_string()),
        is_second: false,
    }
}
