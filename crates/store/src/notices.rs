//! Notices: what waits to be told to the organisation it happened in.
//!
//! Whoever changes something writes the notice of it in the same transaction, if the organisation
//! is told of such things ([`domain::notice`]). A notice leaves in the transaction that accepts its
//! message, so that it is told once.
//! Never: match endpoints or word a message; the caller did that.

use domain::notice::Notice;

use crate::Reply;
use crate::inbox::{Accepted, NewMessage};

/// A notice that was not told yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its place in the order of commits; never given twice.
    pub place: u64,
    /// What it says.
    pub notice: Notice,
}

/// What waits to be told.
pub trait Notices: Send + Sync {
    /// The oldest ones, in order, at most `limit`.
    fn waiting(&self, limit: usize) -> Reply<'_, Vec<Kept>>;
    /// Accepts the message of a notice and takes the notice out, in one transaction; `None` when
    /// it is not there any more. It stays while the application is gone, or has changed since
    /// `app_version`.
    fn post(&self, place: u64, message: NewMessage) -> Reply<'static, Option<Accepted>>;
    /// Takes out a notice that nobody is to be told of any more.
    fn discard(&self, place: u64) -> Reply<'static, ()>;
}
