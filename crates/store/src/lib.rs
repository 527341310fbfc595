//! Where Peyk keeps things: small traits named for the arrow that uses them, and their backends.
//!
//! It stores verdicts, it does not reach them. Each backend's SQL lives only in its own folder; the
//! suites in `conformance` say what every backend must do.
//! Never: HTTP, policy, signing.

pub mod alerts;
pub mod cipher;
pub mod commits;
#[cfg(feature = "postgres")]
pub mod common_clock;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "postgres")]
pub mod copy;
pub mod counts;
pub mod dead_letters;
pub mod directory;
pub mod error;
pub mod history;
pub mod inbox;
pub mod ledger;
pub mod memory;
pub mod nodes;
pub mod notices;
pub mod page;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod prune;
pub mod queue;
pub mod recall;
pub mod recoveries;
pub mod revocations;
pub mod sqlite;
mod stored;
pub mod stores;
pub mod tasks;

use std::pin::Pin;

pub use error::StoreError;
pub use stores::Stores;

/// What every call of a store trait returns.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;
