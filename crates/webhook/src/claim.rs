//! What a request claims: id and time, the text that was signed, and the signatures over it.
//!
//! Every scheme reads its headers into this one shape, which is then judged in one way.
//!
//! Never: a judgement of age or of a signature; a key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;

use crate::content::SignedContent;
use crate::error::{SIGNATURES_MAX, VerifyError};
use crate::headers::Trio;

/// The version of a signature made with a shared secret.
pub(crate) const HMAC: &str = "v1";
/// The version of a signature made with a key pair.
pub(crate) const ED25519: &str = "v1a";

/// Bytes of base64 a known signature can have at most: 64 bytes, padded.
const SIGNATURE_BASE64_BYTES_MAX: usize = 88;

/// A request, read by the rules of its scheme.
pub(crate) struct Claim<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) timestamp: Option<i64>,
    /// The slices whose concatenation was signed.
    pub(crate) content: Vec<&'a [u8]>,
    /// (version, decoded signature)
    pub(crate) signatures: Vec<(&'static str, Vec<u8>)>,
}

impl<'a> Claim<'a> {
    /// By Standard Webhooks.
    pub(crate) fn standard<V: AsRef<[u8]>>(
        trio: &'a Trio<V>,
        body: &'a [u8],
    ) -> Result<Self, VerifyError> {
        let id = id_text(trio.id.as_ref())?;
        let (timestamp_text, timestamp) = timestamp(trio.timestamp.as_ref())?;
        let content = SignedContent { id, timestamp: timestamp_text, body };
        Ok(Self {
            id: Some(id),
            timestamp: Some(timestamp),
            content: content.parts().into(),
            signatures: signatures(&trio.signatures)?,
        })
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
pub(crate) fn timestamp(bytes: &[u8]) -> Result<(&str, i64), VerifyError> {
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
fn signatures<V: AsRef<[u8]>>(lines: &[V]) -> Result<Vec<(&'static str, Vec<u8>)>, VerifyError> {
    let mut found = Vec::new();
    let tokens = lines.iter().flat_map(|line| line.as_ref().split(|byte| *byte == b' '));
    for (count, token) in tokens.filter(|token| !token.is_empty()).enumerate() {
        if count == SIGNATURES_MAX {
            return Err(VerifyError::TooManySignatures);
        }
        found.extend(signature(token));
    }
    Ok(found)
}

fn signature(token: &[u8]) -> Option<(&'static str, Vec<u8>)> {
    let (version, encoded) = if let Some(encoded) = token.strip_prefix(b"v1,") {
        (HMAC, encoded)
    } else {
        (ED25519, token.strip_prefix(b"v1a,")?)
    };
    base64(encoded).map(|signature| (version, signature))
}

/// The bytes of a signature in base64, padded or not; nothing if it is longer than any.
pub(crate) fn base64(encoded: &[u8]) -> Option<Vec<u8>> {
    let fits = encoded.len() <= SIGNATURE_BASE64_BYTES_MAX;
    fits.then(|| STANDARD_PAD_INDIFFERENT.decode(encoded).ok()).flatten()
}
