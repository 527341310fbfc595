//! `bench`: the measuring tools of peyk: load generator, receiver, relay floor, and one subcommand
//! for each figure.
//!
//! Servers under test run as processes of their own; load and receiver run here, on one thread, on
//! the same cores.
//! Never: be needed to run peyk, or measure anything but a release build.

#![expect(clippy::print_stdout, reason = "figures on the terminal are what this program is for")]

mod api;
mod board;
mod child;
mod conn;
mod crash;
mod fault;
mod heap;
mod history;
mod hung;
mod latency;
mod lists;
mod load;
mod machine;
mod nodes;
mod pair;
mod payload;
mod pending;
mod policies;
mod psql;
mod purge;
mod receiver;
mod relay;
mod replays;
mod rows;
mod scene;
mod scrape;
mod stats;
mod telemetry;
mod traffic;
mod wire;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::fault::Result;

/// Measuring tools of peyk.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The relay floor: accept the same post and forward it from memory, nothing else.
    Relay(relay::Options),
    /// Count requests, and answer as their path says.
    Receiver(receiver::Options),
    /// Throughput beside the relay floor.
    Pair(pair::Options),
    /// Times at a fixed rate.
    Latency(latency::Options),
    /// Healthy traffic beside receivers that never answer.
    Hung(hung::Options),
    /// Start, memory and live traffic with a million pending retries.
    Pending(pending::Options),
    /// Throughput with ten million deliveries behind and a million waiting.
    History(history::Options),
    /// Acknowledgements while retention takes a million messages away.
    Purge(purge::Options),
    /// Three nodes on one database beside one, and what it takes to lose one of three.
    Nodes(nodes::Options),
    /// Throughput while metrics are scraped and sent, beside none of it.
    Telemetry(telemetry::Options),
    /// Live traffic and memory while a million dead letters go back.
    Replays(replays::Options),
    /// Pages of lists with a million messages and attempts stored.
    Lists(lists::Options),
    /// Scrapes of the metrics with a hundred thousand endpoints that have work.
    Scrape(scrape::Options),
    /// Cost of a guarded call, beside other crates when built with the feature `peers`.
    Policies(policies::Options),
    /// Really kill the real binary under load, many times, and look for what was lost.
    Crash(crash::Options),
}

fn main() -> ExitCode {
    match measure(Cli::parse().what) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            eprintln!("bench: {fault}");
            ExitCode::FAILURE
        }
    }
}

/// Runs it; `false` when a bar was missed.
fn measure(what: What) -> Result<bool> {
    // The floor may use all cores, as peyk does, and so may tasks that contend; load and receiver
    // cost least on one thread.
    let mut builder = match what {
        What::Relay(_) | What::Policies(_) => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    builder.enable_all().build()?.block_on(async {
        match what {
            What::Relay(options) => relay::run(options).await.map(|()| true),
            What::Receiver(options) => receiver::run(options).await.map(|()| true),
            What::Pair(options) => pair::run(options).await,
            What::Latency(options) => latency::run(options).await,
            What::Hung(options) => hung::run(options).await,
            What::Pending(options) => pending::run(options).await,
            What::History(options) => history::run(options).await,
            What::Purge(options) => purge::run(options).await,
            What::Nodes(options) => nodes::run(options).await,
            What::Telemetry(options) => telemetry::run(options).await,
            What::Replays(options) => replays::run(options).await,
            What::Lists(options) => lists::run(options).await,
            What::Scrape(options) => scrape::run(options).await,
            What::Policies(options) => policies::run(options).await,
            What::Crash(options) => crash::run(options).await,
        }
    })
}
