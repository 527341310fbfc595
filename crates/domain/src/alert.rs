//! Alerts: which conditions of the whole installation on-call people are told of, when, and what.
//!
//! In: rules, what was read of the installation, and how incidents stood. Out: how they stand now,
//! and what is told on which route.
//! Never: read a store, send, or write in the format of a channel.

pub mod evaluate;
pub mod incident;
pub mod notice;
pub mod reading;
pub mod route;
pub mod rule;
pub mod title;
