//! The `peyk` binary: takes the arguments, gives back an exit status.
//!
//! Never: logic; `cli` chooses, `app` composes.

mod alert;
mod api;
mod app;
mod cli;
mod config;
mod demo;
mod http;
mod mail;
mod one_line;
mod reports;
mod schema_check;
mod simulate;
mod spelling;
mod state;
mod storage_check;
mod telemetry;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::run(std::env::args_os())
}
