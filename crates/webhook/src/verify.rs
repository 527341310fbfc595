//! The receiver's check: is this request from a holder of the secret, unchanged and fresh?
//!
//! In come the request's headers, its body exactly as received and the present time; out comes the
//! verified id, by which the receiver should drop repeats, or the reason for the refusal. One
//! signature of a known version that fits one key is enough; unknown versions are skipped, so that
//! senders can add one.
//!
//! Never: reads a clock, parses the body, or accepts an id or timestamp that would make the signed
//! text ambiguous.
//!
//! Source: Standard Webhooks, "Verifying webhook authenticity" and "Signature scheme".

use std::time::Duration;

use crate::claim::Claim;
use crate::custom::Found;
use crate::error::VerifyError;
use crate::headers::Trio;
use crate::key::VerifyKey;
use crate::scheme::Scheme;

#[cfg(test)]
mod tests;

/// How far, in seconds, the timestamp may lie from the present, in either direction.
pub const TOLERANCE_SECS_DEFAULT: u64 = 300;
/// A scheme, its keys and its bounds. Keep one per sender and share it: it has no state.
#[derive(Clone, Debug)]
pub struct WebhookVerifier {
    pub(crate) kind: Kind,
    pub(crate) keys: Vec<VerifyKey>,
    pub(crate) tolerance: Tolerance,
    pub(crate) body_bytes_max: usize,
}

/// The kinds of request a verifier can read.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Standard,
    Custom(Scheme),
}

/// How far the timestamp may lie from the present.
///
/// ```
/// use std::time::Duration;
/// use webhook::Tolerance;
///
/// let strict = Tolerance::past(Duration::from_secs(300)).future(Duration::from_secs(60));
/// assert_ne!(strict, Tolerance::default());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    pub(crate) past_secs: u64,
    pub(crate) future_secs: u64,
}

impl Tolerance {
    /// This far into the past, in whole seconds, and the default into the future.
    pub const fn past(span: Duration) -> Self {
        Self { past_secs: span.as_secs(), future_secs: TOLERANCE_SECS_DEFAULT }
    }

    /// This far into the future, in whole seconds.
    #[must_use]
    pub const fn future(self, span: Duration) -> Self {
        Self { future_secs: span.as_secs(), ..self }
    }
}

impl Default for Tolerance {
    fn default() -> Self {
        Self::past(Duration::from_secs(TOLERANCE_SECS_DEFAULT))
    }
}

/// What a verified request says about itself. All of it was signed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// The message id, the same on every attempt: the key to drop repeats by. `None` if the scheme
    /// signs none.
    pub id: Option<String>,
    /// When the sender made this attempt, in unix seconds. `None` if the scheme signs no time.
    pub timestamp: Option<i64>,
    /// Index, in the verifier's list, of the first key that fitted: during a rotation it tells
    /// which of the secrets the sender is still using.
    pub key_index: usize,
}

impl WebhookVerifier {
    /// Most bytes of a body that this verifier accepts.
    pub fn body_bytes_max(&self) -> usize {
        self.body_bytes_max
    }

    /// Checks one request.
    ///
    /// `headers` is any list of (name, value) pairs, for example `&http::HeaderMap`; names match
    /// without regard to case, and other headers are passed over. `body` is what was received,
    /// byte for byte, before any parsing. `now_secs` is the present in unix seconds.
    ///
    /// # Errors
    ///
    /// [`VerifyError`]; the first reason found, in the order: size, headers, id, timestamp, number
    /// of signatures, age, signatures.
    pub fn verify<N: AsRef<str>, V: AsRef<[u8]>>(
        &self,
        headers: impl IntoIterator<Item = (N, V)>,
        body: &[u8],
        now_secs: i64,
    ) -> Result<Verified, VerifyError> {
        if body.len() > self.body_bytes_max {
            return Err(VerifyError::BodyTooLarge { bytes_max: self.body_bytes_max });
        }
        match &self.kind {
            Kind::Standard => {
                let trio = Trio::find(headers)?;
                self.judge(&Claim::standard(&trio, body)?, now_secs)
            }
            Kind::Custom(scheme) => {
                let found = Found::find(scheme, headers)?;
                self.judge(&Claim::custom(scheme, &found, body)?, now_secs)
            }
        }
    }

    fn judge(&self, claim: &Claim<'_>, now_secs: i64) -> Result<Verified, VerifyError> {
        if let Some(timestamp) = claim.timestamp {
            self.check_age(timestamp, now_secs)?;
        }
        let fits = |key: &VerifyKey| {
            let of_version =
                claim.signatures.iter().filter(|(version, _)| *version == key.version());
            key.matches_any(&claim.content, of_version.map(|(_, signature)| signature.as_slice()))
        };
        let key_index = self.keys.iter().position(fits).ok_or(VerifyError::NoMatch)?;
        let id = claim.id.map(str::to_owned);
        Ok(Verified { id, timestamp: claim.timestamp, key_index })
    }

    fn check_age(&self, timestamp: i64, now_secs: i64) -> Result<(), VerifyError> {
        let apart = timestamp.abs_diff(now_secs);
        if timestamp < now_secs && apart > self.tolerance.past_secs {
            return Err(VerifyError::TooOld);
        }
        if timestamp > now_secs && apart > self.tolerance.future_secs {
            return Err(VerifyError::TooNew);
        }
        Ok(())
    }
}
