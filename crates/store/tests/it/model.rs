//! Each backend against the reference model: the same random steps must give the same answers and
//! leave the same to see.
//!
//! Never: know what is right; the suites do. Here only that both agree.

mod names;
mod seen;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use resilience::{Chance as _, ManualClock, Seeded};
use store::conformance::world::World;
use store::conformance::{Open, START};

use crate::backends::{self, Postgres, Sqlite};
use names::Side;
use steps::Step;

/// Steps of one sequence; together they take less than a minute of the stores' time, after which a
/// backend may tidy up behind deleted endpoints.
const STEPS: u64 = 60;

/// Runs the sequence of one seed on the model and on another backend.
async fn compare(seed: u64, open: Open) {
    let mut chance = Seeded::new(seed);
    let clock = Arc::new(ManualClock::new(START));
    let mut model = Side::new(World::new(backends::memory(Arc::clone(&clock)), Arc::clone(&clock)));
    let mut other = Side::new(World::new(open(Arc::clone(&clock)), Arc::clone(&clock)));
    for side in [&model, &other] {
        side.tell().await;
    }
    let mut done = Vec::new();
    for number in 0..STEPS {
        let spans = [1, 1_000, 4_000, 900_000];
        let span = spans[usize::try_from(chance.below(4)).unwrap()];
        clock.advance(Duration::from_micros(span));
        let step = Step::draw(&mut chance, number);
        done.push(step.clone());
        let (expected, found) =
            (model.apply(&step, number).await, other.apply(&step, number).await);
        assert_eq!(found, expected, "seed {seed}, step {number}, after {done:#?}");
        if number % 12 == 11 || number + 1 == STEPS {
            let (expected, found) = (model.look().await, other.look().await);
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected, "seed {seed}, seen after step {number}: {done:#?}");
            }
            assert_eq!(found.len(), expected.len(), "seed {seed}, seen after step {number}");
        }
    }
}

async fn compare_all(seeds: std::ops::Range<u64>, open: Open) {
    for seed in seeds {
        compare(seed, open).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_first_forty_agree() {
    compare_all(0..40, Sqlite::open).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_second_forty_agree() {
    compare_all(40..80, Sqlite::open).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_third_forty_agree() {
    compare_all(80..120, Sqlite::open).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_first_ten_agree_on_postgres() {
    compare_all(0..10, Postgres::open).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_second_ten_agree_on_postgres() {
    compare_all(10..20, Postgres::open).await;
}
