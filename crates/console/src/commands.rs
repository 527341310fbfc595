//! The commands, one file for each resource: options in, a plan out.
//!
//! Never: a socket, a clock or a file but those that an option names.

pub(crate) mod alert;
pub(crate) mod app;
pub(crate) mod attempt;
pub(crate) mod dead_letter;
pub(crate) mod endpoint;
pub(crate) mod event_type;
pub(crate) mod message;
pub(crate) mod task;
