//! Revocations: tokens that are not good any more, though their signature is.
//!
//! Never: a token; a hash of it is enough to know it by.

use domain::ids::PublicId;
use domain::limits::APP_TOKEN_MAX;
use resilience::Timestamp;

use crate::Reply;
use crate::recall::Once;

/// One token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// SHA-256 of its text.
    pub hash: [u8; 32],
    /// When it would have ended by itself.
    pub until: Timestamp,
}

/// Tokens of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The application.
    pub app: PublicId,
    /// Only those of this session; else all.
    pub session: Option<String>,
    /// Only those issued before then.
    pub issued_before: Timestamp,
    /// They are not good from then on.
    pub from: Timestamp,
}

impl Expired {
    /// Whether `other` says nothing beyond this.
    pub fn covers(&self, other: &Self) -> bool {
        (self.app, &self.session) == (other.app, &other.session)
            && self.issued_before >= other.issued_before
            && self.from <= other.from
    }

    /// Whether no token that it is about can be good any more: those of sessions live
    /// [`APP_TOKEN_MAX`] at most.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.session.is_some() && self.issued_before < now.minus(APP_TOKEN_MAX * 2)
    }
}

/// Reads and writes of revocations.
pub trait Revocations: Send + Sync {
    /// Keeps a revocation until the token would have ended; those whose time has come go.
    fn revoke(&self, token: Revoked) -> Reply<'static, ()>;
    /// Keeps each of these; those that are covered by one of them or are over go.
    fn expire(&self, tokens: Vec<Expired>) -> Reply<'static, ()> {
        self.expire_once(tokens, None)
    }
    /// The same, and keeps its answer in the same transaction.
    fn expire_once(&self, tokens: Vec<Expired>, once: Once<()>) -> Reply<'static, ()>;
    /// All that are kept, for the start: single tokens by hash, the others by application, session
    /// and time.
    fn revocations(&self) -> Reply<'_, (Vec<Revoked>, Vec<Expired>)>;
}
