//! What Peyk says about itself: log lines and metrics.
//!
//! Never: a secret, a payload, or a URL beyond its origin.

mod help;
pub(crate) mod logs;
pub(crate) mod metrics;
