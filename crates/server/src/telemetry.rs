//! What Peyk says about itself: log lines and metrics.
//!
//! Never: a secret, a payload, or a URL beyond its origin.

pub(crate) mod logs;
pub(crate) mod metrics;
