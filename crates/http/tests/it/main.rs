//! The crate as its users see it. Names and comments bear the ids of the cases they are for.

#![expect(clippy::unwrap_used, reason = "a test fails where it panics")]

mod adapter;
mod auth;
mod kit;
mod layers;
mod options;
mod parity;
mod requests;
mod resilient;
mod support;
mod tls;
mod traps;
mod wire;
