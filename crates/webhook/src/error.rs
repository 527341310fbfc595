//! Why a request is refused, why a verifier cannot be built, and the bound behind one of the
//! reasons.
//!
//! Finding the headers and checking them are two steps with one list of reasons. The texts are fit
//! for the receiver's log; they name rules and headers.
//!
//! Never: a value from the request, or from a key, in a text.

use std::borrow::Cow;

/// Most signatures looked at in one request, over all its signature lines; more is a refusal,
/// since each may cost an ed25519 check.
pub const SIGNATURES_MAX: usize = 32;

/// The name of a header or of a field in one.
pub type Name = Cow<'static, str>;

/// Why a request was refused. Every one of them is an answer of 400, 401 or 413, never of 5xx.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The body is longer than the verifier reads.
    #[error("the body has more than {bytes_max} bytes")]
    BodyTooLarge {
        /// Most bytes it may have.
        bytes_max: usize,
    },
    /// A header of the scheme is not there, or lacks a field it must have.
    #[error("the header {0} is missing")]
    MissingHeader(Name),
    /// Two lines of the header, or its `webhook-*` and `svix-*` forms, say different things.
    #[error("the header {0} is there more than once, with different values")]
    ConflictingHeader(Name),
    /// The id is empty, not UTF-8, or holds what would make the signed text ambiguous.
    #[error("the message id must be text without a full stop, and not empty")]
    MalformedId,
    /// The timestamp is not a plain decimal number.
    #[error("the timestamp must be unix seconds in decimal digits")]
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

/// Why a verifier cannot be built: an option of it breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {}", self.option(), self.rule())]
#[non_exhaustive]
pub enum ConfigError {
    /// Nothing could ever be genuine.
    NoKeys,
    /// Nothing could ever be read.
    NoBody,
    /// Only Standard Webhooks say how to sign with a key pair.
    PublicKey,
    /// What is not signed proves nothing.
    BodyNotSigned,
    /// An unsigned timestamp lets a replay look fresh.
    TimestampNotSigned,
    /// An unsigned id lets a replay look new.
    IdNotSigned,
    /// One signature could stand for two different requests.
    Ambiguous,
    /// A name that no header or field can have.
    EmptyName,
}

impl ConfigError {
    /// The option, named as its method or field.
    pub const fn option(self) -> &'static str {
        match self {
            Self::NoKeys => "secret",
            Self::NoBody => "max_body",
            Self::PublicKey => "public_key",
            Self::BodyNotSigned | Self::Ambiguous => "content",
            Self::TimestampNotSigned => "timestamp",
            Self::IdNotSigned => "id_header",
            Self::EmptyName => "scheme",
        }
    }

    /// The rule, worded to follow the option.
    pub const fn rule(self) -> &'static str {
        match self {
            Self::NoKeys => "or a public key must be given",
            Self::NoBody => "must be at least 1 byte",
            Self::PublicKey => "must not be given where the scheme is signed with a shared secret",
            Self::BodyNotSigned => "must hold the body exactly once",
            Self::TimestampNotSigned | Self::IdNotSigned => {
                "must be both sent and signed, or neither"
            }
            Self::Ambiguous => {
                "must have next to an id or a timestamp a text that touches it with a character \
                 other than A-Z, a-z, 0-9, _ and -"
            }
            Self::EmptyName => "must not name a header or a field with an empty text",
        }
    }
}
