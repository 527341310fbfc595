//! The behaviours of the real binary, seen from outside: over its API and at a receiver.
//!
//! One binary, one file per behaviour. Every server has a scratch directory and port 0.
//! Never: a sleep; tests wait on what the receiver got or on what the API says, with a bound.

#![expect(clippy::unwrap_used, reason = "a test fails where it panics")]

mod support;

mod applications;
mod bad_input;
mod breaker;
mod buries_and_replays;
mod delivers_once;
mod demo;
mod endpoints;
mod event_types;
mod idempotency;
mod one_serve_per_directory;
mod pages;
mod refuses_private_address;
mod retries_on_5xx;
mod rotates_secret;
mod survives_restart;
mod tokens;
