//! A setting that cannot be used.
//!
//! Never: show the value of a secret; it names the setting and the rule.

/// What is wrong, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConfigError(pub(crate) String);
