//! What requests carry, for the description of the API: bodies and queries as callers see them.
//!
//! The readers stay what they are: they name every fault of a body at once and keep a payload byte
//! for byte, which no derived reader does. Tests of those that need no server hold that they ask
//! for the fields that are described here and for no others.
//! Never: read anything.

pub(crate) mod alert;
pub(crate) mod application;
pub(crate) mod endpoint;
pub(crate) mod event_type;
pub(crate) mod message;
pub(crate) mod query;
pub(crate) mod task;
pub(crate) mod token;
pub(crate) mod usage;
