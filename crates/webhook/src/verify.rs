//! The receiver's check: is this request from a holder of the secret, unchanged and fresh?
//!
//! In come the request's headers, its body exactly as received and the present time; out comes the
//! verified id, by which the receiver should drop repeats, or the reason for the refusal. One
//! signature of a known version that fits one key is enough; unknown versions are skipped, so that
//! senders can add one.
//!
//! Never: reads a clock, parses the body, or accepts an id or timestamp with a full stop in it,
//! which would make the signed text ambiguous.
//!
//! Source: Standard Webhooks, "Verifying webhook authenticity" and "Signature scheme".

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;

use crate::content::SignedContent;
use crate::error::{SIGNATURES_MAX, VerifyError};
use crate::headers::Trio;
use crate::key::VerifyKey;

#[cfg(test)]
mod tests;

/// How far, in seconds, the timestamp may lie from the present, in either direction.
pub const TOLERANCE_SECS_DEFAULT: u64 = 300;

/// Bytes of base64 a known signature can have at most: 64 bytes, padded.
const SIGNATURE_BASE64_BYTES_MAX: usize = 88;

/// A set of keys and a tolerance. Keep one per sender and share it: it has no state.
#[derive(Clone, Debug)]
pub struct Verifier {
    keys: Vec<VerifyKey>,
    tolerance_secs: u64,
}

/// What a verified request says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The message id, the same on every attempt: the key to drop repeats by.
    pub id: String,
    /// When the sender made this attempt, in unix seconds.
    pub timestamp: i64,
    /// Index, in the verifier's list, of the first key that fitted: during a rotation it tells
    /// which of the secrets the sender is still using.
    pub key_index: usize,
}

impl Verifier {
    /// A verifier for `keys` (in a rotation: the old one and the new one) with a tolerance of
    /// [`TOLERANCE_SECS_DEFAULT`]. Without a key it refuses everything.
    pub fn new(keys: Vec<VerifyKey>) -> Self {
        Self { keys, tolerance_secs: TOLERANCE_SECS_DEFAULT }
    }

    /// The same verifier with another tolerance, in seconds, in both directions. 0 accepts only
    /// the present second.
    #[must_use]
    pub fn with_tolerance_secs(mut self, tolerance_secs: u64) -> Self {
        self.tolerance_secs = tolerance_secs;
        self
    }

    /// Checks one request.
    ///
    /// `headers` is any list of (name, value) pairs, for example `&http::HeaderMap`; names match
    /// without regard to case, and other headers are passed over. `body` is what was received,
    /// byte for byte, before any parsing. `now_secs` is the present in unix seconds.
    ///
    /// # Errors
    ///
    /// [`VerifyError`]; the first reason found, in the order: keys, headers, id, timestamp, age,
    /// signatures.
    pub fn verify<N: AsRef<str>, V: AsRef<[u8]>>(
        &self,
        headers: impl IntoIterator<Item = (N, V)>,
        body: &[u8],
        now_secs: i64,
    ) -> Result<Verified, VerifyError> {
        if self.keys.is_empty() {
            return Err(VerifyError::NoKeys);
        }
        let trio = Trio::find(headers)?;
        let id = id_text(trio.id.as_ref())?;
        let (timestamp_text, timestamp) = timestamp_text(trio.timestamp.as_ref())?;
        self.check_age(timestamp, now_secs)?;
        let content = SignedContent { id, timestamp: timestamp_text, body };
        let candidates = candidates(&trio.signatures)?;
        let fits = |key: &VerifyKey| {
            let of_version = candidates.iter().filter(|(version, _)| *version == key.version());
            key.matches_any(&content, of_version.map(|(_, signature)| signature.as_slice()))
        };
        let key_index = self.keys.iter().position(fits).ok_or(VerifyError::NoMatch)?;
        Ok(Verified { id: id.to_owned(), timestamp, key_index })
    }

    fn check_age(&self, timestamp: i64, now_secs: i64) -> Result<(), VerifyError> {
        if timestamp.abs_diff(now_secs) <= self.tolerance_secs {
            return Ok(());
        }
        Err(if timestamp < now_secs { VerifyError::TooOld } else { VerifyError::TooNew })
    }
}

fn id_text(bytes: &[u8]) -> Result<&str, VerifyError> {
    let id = std::str::from_utf8(bytes).map_err(|_| VerifyError::MalformedId)?;
    if id.is_empty() || id.contains('.') {
        return Err(VerifyError::MalformedId);
    }
    Ok(id)
}

/// The digits as sent, and their value. No sign, no leading zero, no white space: there is one way
/// to write a time, so that two headers that differ never mean the same.
fn timestamp_text(bytes: &[u8]) -> Result<(&str, i64), VerifyError> {
    let plain = match bytes {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let text = std::str::from_utf8(bytes).map_err(|_| VerifyError::MalformedTimestamp)?;
    match text.parse() {
        Ok(timestamp) if plain => Ok((text, timestamp)),
        _ => Err(VerifyError::MalformedTimestamp),
    }
}

/// All signatures of known versions, decoded. What cannot be one (no comma, unknown version, no
/// base64) is skipped: it can only fail to match.
fn candidates<V: AsRef<[u8]>>(lines: &[V]) -> Result<Vec<(&'static str, Vec<u8>)>, VerifyError> {
    let mut found = Vec::new();
    let tokens = lines.iter().flat_map(|line| line.as_ref().split(|byte| *byte == b' '));
    for (count, token) in tokens.filter(|token| !token.is_empty()).enumerate() {
        if count == SIGNATURES_MAX {
            return Err(VerifyError::TooManySignatures);
        }
        found.extend(candidate(token));
    }
    Ok(found)
}

fn candidate(token: &[u8]) -> Option<(&'static str, Vec<u8>)> {
    let (version, encoded) = if let Some(encoded) = token.strip_prefix(b"v1,") {
        ("v1", encoded)
    } else {
        ("v1a", token.strip_prefix(b"v1a,")?)
    };
    if encoded.len() > SIGNATURE_BASE64_BYTES_MAX {
        return None;
    }
    STANDARD_PAD_INDIFFERENT.decode(encoded).ok().map(|signature| (version, signature))
}
