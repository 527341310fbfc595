//! The layers and their stores as users meet them: a real axum server on a real socket, a real
//! Redis, a real PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test fails where it panics")]

mod conformance;
mod crash;
mod guarding;
mod in_tx;
mod one_run;
mod outage;
mod refusals;
mod replay;
mod support;
