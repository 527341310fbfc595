//! Why a verifier refuses a request, and the bound behind one of the reasons.
//!
//! Finding the headers and checking them are two steps with one list of reasons. The texts are fit
//! for the receiver's log; they name rules and headers.
//!
//! Never: a value from the request, or from a key, in a text.

/// Most signatures looked at in one request, over all its signature lines; more is a refusal,
/// since each may cost an ed25519 check.
pub const SIGNATURES_MAX: usize = 32;

/// Why a request was refused. Every one of them is an answer of 400 or 401, never of 5xx.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The verifier was made without a key, so nothing can be genuine.
    #[error("the verifier has no keys")]
    NoKeys,
    /// Neither the `webhook-*` nor the `svix-*` headers are complete.
    #[error("the header {0} is missing")]
    MissingHeader(&'static str),
    /// Two lines of the header, or its `webhook-*` and `svix-*` forms, say different things.
    #[error("the header {0} is there more than once, with different values")]
    ConflictingHeader(&'static str),
    /// The id is empty, holds a full stop or is not UTF-8.
    #[error("the header webhook-id must be text without a full stop, and not empty")]
    MalformedId,
    /// The timestamp is not a plain decimal number.
    #[error("the header webhook-timestamp must be unix seconds in decimal digits")]
    MalformedTimestamp,
    /// Older than the tolerance: a replay, or a clock that is wrong.
    #[error("the timestamp is too old, by the receiver's clock")]
    TooOld,
    /// Further in the future than the tolerance.
    #[error("the timestamp is too far in the future, by the receiver's clock")]
    TooNew,
    /// More signatures than [`SIGNATURES_MAX`].
    #[error("more than {SIGNATURES_MAX} signatures")]
    TooManySignatures,
    /// No signature fits any key: another secret, or the body was changed on its way.
    #[error("no signature matches")]
    NoMatch,
}
