//! What Peyk talks about and what it decides: ids, endpoints, messages, attempts, verdicts.
//!
//! Every function is pure: time and chance are arguments.
//! Never: I/O, a runtime, SQL, serialisation, the clock.

pub mod alert;
pub mod application;
pub mod attempt;
pub mod classify;
pub mod dead_letter;
pub mod delivery;
pub mod edit;
pub mod email;
pub mod endpoint;
pub mod error;
pub mod event_type;
pub mod fanout;
pub mod figures;
pub mod headers;
pub mod idempotency;
pub mod ids;
pub mod limits;
pub mod message;
pub mod nodes;
pub mod notice;
pub mod payload;
pub mod policy;
pub mod proxy;
pub mod target;
pub mod text;
pub mod trace;
pub mod until;
pub mod verdict;
