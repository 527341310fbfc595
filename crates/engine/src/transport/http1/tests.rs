//! The transport against real sockets on loopback: peers that follow a script, byte for byte.
//!
//! Never: reach beyond loopback, or sleep to let something happen; peers that drip have a timer.

mod answers;
mod connections;
mod guarding;
mod health;
mod names;
mod proxies;
mod support;
mod tls;
