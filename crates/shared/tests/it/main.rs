//! The stores on real servers: the traces of the suite, a process that dies, servers that go away.
//! Never: a server of another test's.

#![expect(clippy::unwrap_used, reason = "a test that meets an error is to fail")]

mod death;
mod failover;
mod news;
mod outage;
mod suite;
mod support;
