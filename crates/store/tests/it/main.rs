//! Tests of the backends through their traits: the suites on each, and one against the other.
//!
//! Never: reach into a backend.
#![expect(clippy::unwrap_used, reason = "tests")]

mod backends;
mod conformance;
mod model;
mod nodes;
mod postgres;
