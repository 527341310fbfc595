//! What must be equal for two requests with one key to be the same request.
//!
//! Never: two different requests with one text to hash; each part is preceded by its length.

use http::request::Parts;
use sha2::{Digest as _, Sha256};

/// A part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FingerprintOf {
    /// The method.
    Method,
    /// The path, with its query.
    Path,
    /// The body, byte for byte.
    Body,
}

/// The parts of a request that its fingerprint covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint(Vec<FingerprintOf>);

impl Fingerprint {
    /// SHA-256 over these parts.
    pub fn sha256(parts: impl IntoIterator<Item = FingerprintOf>) -> Self {
        Self(parts.into_iter().collect())
    }

    pub(crate) fn of(&self, parts: &Parts, body: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in &self.0 {
            let bytes = match part {
                FingerprintOf::Method => parts.method.as_str().as_bytes(),
                FingerprintOf::Path => {
                    parts.uri.path_and_query().map_or("/", |path| path.as_str()).as_bytes()
                }
                FingerprintOf::Body => body,
            };
            hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(bytes);
        }
        hash.finalize().into()
    }
}

impl Default for Fingerprint {
    /// Method, path and body.
    fn default() -> Self {
        Self::sha256([FingerprintOf::Method, FingerprintOf::Path, FingerprintOf::Body])
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn of(fingerprint: &Fingerprint, method: &str, uri: &str, body: &str) -> [u8; 32] {
        let (parts, ()) = Request::builder().method(method).uri(uri).body(()).unwrap().into_parts();
        fingerprint.of(&parts, body.as_bytes())
    }

    #[test]
    fn every_part_counts_and_none_runs_into_the_next() {
        let whole = Fingerprint::default();
        let one = of(&whole, "POST", "/a?b", "c");
        assert_eq!(one, of(&whole, "POST", "/a?b", "c"));
        for (method, uri, body) in [
            ("PUT", "/a?b", "c"),
            ("POST", "/a?x", "c"),
            ("POST", "/a?b", "d"),
            ("POST", "/a?bc", ""),
        ] {
            assert_ne!(one, of(&whole, method, uri, body), "{method} {uri} {body}");
        }
        let body_only = Fingerprint::sha256([FingerprintOf::Body]);
        assert_eq!(of(&body_only, "PUT", "/x", "c"), of(&body_only, "POST", "/", "c"));
    }
}
