//! What one reading for alerts costs, with and without history: `cargo test --release -p
//! peyk-store alert_reading -- --ignored --nocapture`.
//!
//! Never: a verdict; it prints figures for people.

use domain::limits::ALERT_FAILING_MAX;
use rusqlite::Connection;

use super::super::stopwatch::started;
use super::*;
use crate::alerts::Alerts as _;
use crate::counts::{Counts as _, Of, Steps};
use crate::queue::Queue as _;

/// Readings that are made one after another.
const READINGS: u32 = 200;

/// Puts messages, their attempts and dead letters of the last days into the file.
fn fill(world: &World, rows: u64) {
    let conn = Connection::open(world.path()).unwrap();
    let endpoint = world.endpoint.key.0;
    let app = world.endpoint.app.0;
    let numbers = format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})"
    );
    conn.execute_batch(&format!(
        "BEGIN;
         {numbers} INSERT INTO message (key, random, app, accepted_at, event_type, payload)
             SELECT i << 16, zeroblob(12), {app}, i, 'a', zeroblob(64) FROM n WHERE {rows} > 0;
         {numbers} INSERT INTO attempt (key, random, message, endpoint, n, started_at, took, manual,
             resent, status) SELECT (i << 16) + 1, zeroblob(12), i << 16, {endpoint}, 1, i, 9, 0, 0,
             200 FROM n WHERE {rows} > 0;
         {numbers} INSERT INTO closed (place, message, endpoint, app, org, state, reason, at, sends)
             SELECT (i << 16) + 2, i << 16, {endpoint}, {app}, zeroblob(20), 1, 1, i, 1
             FROM n WHERE {rows} > 0 AND i % 10 = 0;
         COMMIT;"
    ))
    .unwrap();
}

#[tokio::test]
#[ignore = "prints figures for people"]
async fn alert_reading_over_history() {
    for rows in [0, 1_000_000] {
        let world = World::open().await;
        fill(&world, rows);
        let (store, now) = (&world.store, world.clock().now());
        let begun = started();
        for _ in 0..READINGS {
            store.configured(now).await.unwrap();
            store.failing(now, None, ALERT_FAILING_MAX).await.unwrap();
            store.depth().await.unwrap();
            store.endpoints(None, 250).await.unwrap();
            let _figures = store.read(Of::All, Steps::recent(now, 10)).await;
            store.tellings(0, 100).await.unwrap();
        }
        let each = begun.elapsed() / READINGS;
        println!("{rows} messages of history: a reading takes {each:?}");
    }
}
