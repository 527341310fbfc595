//! Notifications of alerts in the formats of their channels.
//!
//! Never: decide when something is told, or send.

mod letter;
mod opsgenie;
mod pagerduty;
mod request;
mod slack;
mod teams;
mod told;
mod webhook;
mod wording;

pub(crate) use wording::{secret, wording};
