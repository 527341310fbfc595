//! How an answer's body becomes what the caller asked for.
//!
//! Never: turn something unreadable into nothing: what does not parse is an error.

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::response::Response;
use super::validate::Validator;
use crate::errors::BoxError;

/// What a request expects of its answer.
pub(super) struct Expected<T> {
    pub(super) decode: fn(&Bytes) -> Result<T, BoxError>,
    /// Demands on the body as received, from before its form was named.
    pub(super) raw: Vec<Validator<Bytes>>,
    pub(super) decoded: Vec<Validator<T>>,
}

impl Expected<Bytes> {
    pub(super) fn bytes() -> Self {
        Self { decode: |bytes| Ok(bytes.clone()), raw: Vec::new(), decoded: Vec::new() }
    }

    pub(super) fn json<T: DeserializeOwned>(self) -> Expected<T> {
        self.decoded_by(json)
    }

    pub(super) fn text(self) -> Expected<String> {
        self.decoded_by(|bytes| Ok(String::from_utf8(bytes.to_vec())?))
    }

    fn decoded_by<T>(self, decode: fn(&Bytes) -> Result<T, BoxError>) -> Expected<T> {
        let raw = self.raw.into_iter().chain(self.decoded).collect();
        Expected { decode, raw, decoded: Vec::new() }
    }
}

/// No body at all is `null`: it suits `()` and `Option`, and is an error for everything else.
fn json<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, BoxError> {
    Ok(serde_json::from_slice(if bytes.is_empty() { b"null" } else { bytes })?)
}

/// Asks validators one after the other; the first that refuses ends it.
pub(super) async fn validate<T>(
    validators: &[Validator<T>],
    response: &Response<T>,
) -> Result<(), BoxError> {
    for validator in validators {
        validator(response).await?;
    }
    Ok(())
}
