//! Schedules of many nodes under chance: processes that die, stand still and start again, a
//! database that some of them do not reach, notifications that are lost, clocks that run unevenly.
//!
//! What is decided is decided by `domain::nodes`; the database is a table of nodes, one of owners
//! and a queue of numbers for each partition, as exact as transactions make it. `PEYK_SIM_SEED=<n>
//! cargo test -p peyk-domain --test nodes -- --nocapture` plays one seed again,
//! `PEYK_SIM_SEEDS=10000` with `--release` that many.
//! Never: time but the simulated, or chance but the seed's.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first thing that is wrong with it")]

mod world;

use world::{Report, play};

/// Seeds of one run.
const SEEDS: u64 = 60;

fn number(name: &str) -> Option<u64> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the seed to play again is named by whoever runs the test"
    )]
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// What CB-01 and DU-05 ask of all nodes together: one owner, one send at a time, in order, nothing
/// lost.
#[test]
fn an_endpoint_has_one_sender_whatever_happens() {
    if let Some(seed) = number("PEYK_SIM_SEED") {
        let report = play(seed).unwrap_or_else(|found| panic!("seed {seed}: {found}"));
        println!("{report:#?}");
        return;
    }
    let mut total = Report::default();
    for seed in 0..number("PEYK_SIM_SEEDS").unwrap_or(SEEDS) {
        let again = "cargo test -p peyk-domain --test nodes -- --nocapture";
        let report = play(seed);
        total.add(&report.unwrap_or_else(|found| panic!("PEYK_SIM_SEED={seed} {again}\n{found}")));
    }
    println!("{total:#?}");
    // A run that meets nothing shows nothing.
    assert!(total.takeovers > 0 && total.handovers > 0 && total.broken_off > 0);
    assert!(total.fenced > 0 && total.ended > 0 && total.recorded > 0);
}
