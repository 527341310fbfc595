//! The command line for people: asks a running server over HTTP, listens while somebody develops,
//! takes over what another engine has.
//!
//! The `peyk` binary wires [`Command`] into its own and calls [`run`].
//! Never: the engine, the store or the server's settings; whatever it knows, the API said.

mod alert_test;
mod api;
mod body;
mod call;
mod command;
mod commands;
mod explain;
mod failure;
mod import;
mod listen;
mod moment;
mod options;
mod plan;
mod problem;
mod run;
mod safe;
mod show;
mod table;
mod web;

pub use command::{Command, Surroundings, run};
pub use failure::Failure;
pub use web::database_tls;
