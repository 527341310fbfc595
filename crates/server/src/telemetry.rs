//! What Peyk says about itself: log lines, metrics, scraped or sent, and spans.
//!
//! Never: a secret, a payload, or a URL beyond its origin.

mod collector;
mod dogstatsd;
mod help;
pub(crate) mod logs;
pub(crate) mod metrics;
mod otlp;
mod protobuf;
pub(crate) mod push;
mod samples;
mod span;
pub(crate) mod spans;
