//! The worker and its queues: one suite for both, real Redis servers, real processes that die.
//! Never: a server of another test's.

#![expect(clippy::unwrap_used, reason = "a test that meets an error is to fail")]

mod conformance;
mod crash;
mod outage;
mod shutdown;
mod support;
mod throughput;
mod worker;
