//! HTTP as the API speaks it: errors, tokens, bodies, queries, pages, connections.
//!
//! Never: know a resource; `api` does.

pub(crate) mod auth;
mod bare;
pub(crate) mod capabilities;
mod connections;
pub(crate) mod extract;
pub(crate) mod fields;
pub(crate) mod idempotency;
pub(crate) mod iterators;
pub(crate) mod limits;
pub(crate) mod origin;
pub(crate) mod paging;
pub(crate) mod problem;
pub(crate) mod query;
pub(crate) mod revoked;
pub(crate) mod serve;
pub(crate) mod token_rate;
pub(crate) mod tokens;
mod unread;
mod watched;
