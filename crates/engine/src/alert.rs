//! Alerts: rules are evaluated by `watch`, from what `look` reads; `tell` and `letters` send what
//! follows.
//!
//! Never: make a delivery wait.

pub(crate) mod chores;
pub mod letters;
pub mod look;
pub(crate) mod lost;
pub mod parts;
pub mod tell;
pub mod watch;
pub mod ways;

pub use parts::{Alerting, Request, Worded, Wording};
