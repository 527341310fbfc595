//! One of three nodes is really killed under load.
//!
//! Each round starts a fresh fleet, posts to all of its nodes, kills one, and lets the others go
//! on. Posts whose connection broke are posted again to another node, or left, as clients do.
//! Claims: nothing acknowledged is lost, one message per event, under one id; no endpoint waits
//! longer than 10 s for its next delivery; messages delivered twice are at most the sends that the
//! dead node had in flight and the results that it had not recorded.
//! Never: be lenient on an acknowledged message.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::fleet::Fleet;
use super::options::Options;
use crate::api::Api;
use crate::board::Board;
use crate::fault::Result;
use crate::load::Load;
use crate::machine::{now_us, run_id};
use crate::purge::metric;
use crate::receiver;
use crate::stats::Verdict;
use crate::traffic::{self, Book, Traffic};

/// Load before the end of a node, and after it.
const BEFORE: Duration = Duration::from_secs(5);
const AFTER: Duration = Duration::from_secs(15);
/// Longest wait of an endpoint for its next delivery.
const GAP_MAX_S: f64 = 10.0;
/// An endpoint that waited so long was the dead node's.
const HELD_S: f64 = 1.0;
/// Between two looks at what a node has not recorded.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What nothing happens for so long in is done.
const QUIET: Duration = Duration::from_secs(20);

/// What a round came to.
struct Round {
    board: Arc<Board>,
    book: Arc<Book>,
    apps: u32,
    killed_us: u64,
    /// Sends of the dead node in flight, results it had not recorded.
    in_flight: u64,
    unrecorded: u64,
    /// Repeats before the node died, which nothing excuses.
    repeats_before: u64,
}

/// All rounds; `false` when a claim does not hold.
pub(super) async fn run(options: &Options) -> Result<bool> {
    let mut met = true;
    for number in 0..options.rounds.max(1) {
        let round = round(options, number).await?;
        for verdict in round.verdicts(number + 1) {
            println!("{verdict}");
            met &= verdict.met();
        }
    }
    Ok(met)
}

async fn round(options: &Options, number: u32) -> Result<Round> {
    let seconds = u32::try_from((BEFORE + AFTER).as_secs() + 10).unwrap_or(u32::MAX);
    let messages = options.rate * seconds;
    let board = Arc::new(Board::with_ids(messages));
    let receiver = receiver::start(([127, 0, 0, 1], 0).into(), Arc::clone(&board)).await?;
    let mut fleet = Fleet::start(&options.peyk, options.nodes.max(2)).await?;
    let urls = (0..options.apps.max(1)).map(|app| format!("http://{receiver}/ok/{app}"));
    let apps = fleet.api.create_apps(urls.collect()).await?;
    let book = Arc::new(Book::new(run_id(), messages));
    let share = (options.in_flight / fleet.nodes.len()).max(1);
    let loads: Vec<Load> = fleet
        .nodes
        .iter()
        .map(|node| Load { event_ids: true, ..fleet.load(node, &apps, share) })
        .collect();
    let rate = options.rate / options.nodes.max(1);
    let running: Vec<_> = loads.iter().map(|load| Traffic::start(load, &book, rate)).collect();
    let victim = number as usize % loads.len();
    let unrecorded = Arc::new(AtomicU64::new(0));
    let api = Api::new(loads[victim].addr, fleet.api.token().to_owned());
    let looking = tokio::spawn(look(api, Arc::clone(&unrecorded)));
    sleep(BEFORE).await;
    let repeats_before = board.counts().repeats;
    fleet.nodes[victim].child.kill().await?;
    let killed_us = now_us();
    looking.abort();
    let in_flight = fleet.nodes[victim].left_in_flight()?;
    sleep(AFTER).await;
    for traffic in running {
        traffic.stop().await?;
    }
    let well = loads.iter().enumerate().find(|(place, _)| *place != victim);
    if let Some((_, load)) = well {
        traffic::settle(load, &book).await?;
    }
    drain(&board, &book).await;
    fleet.kill().await?;
    let (apps, unrecorded) = (options.apps.max(1), unrecorded.load(Relaxed));
    Ok(Round { board, book, apps, killed_us, in_flight, unrecorded, repeats_before })
}

/// Keeps the most that a node had not recorded at a time.
async fn look(api: Api, most: Arc<AtomicU64>) {
    let Ok(mut session) = api.session().await else { return };
    while let Ok((text, _)) = session.text("/metrics").await {
        let now = metric(&text, "peyk_results_unrecorded").unwrap_or(0.0);
        most.fetch_max(now as u64, Relaxed);
        sleep(LOOK_EVERY).await;
    }
}

/// Waits until everything acknowledged is delivered, or nothing has come for a while.
async fn drain(board: &Board, book: &Book) {
    let (mut last, mut progress) = (board.counts().requests, Instant::now());
    while !book.acked_where(|seq| !board.is_done(seq)).is_empty() && progress.elapsed() < QUIET {
        sleep(Duration::from_millis(100)).await;
        let requests = board.counts().requests;
        if requests != last {
            (last, progress) = (requests, Instant::now());
        }
    }
}

impl Round {
    fn verdicts(&self, number: u32) -> [Verdict; 4] {
        let gaps = self.gaps_s();
        let longest = gaps.iter().copied().fold(0.0, f64::max);
        let held = gaps.iter().filter(|gap| **gap > HELD_S).count();
        let lost = self.book.acked_where(|seq| !self.board.is_done(seq)).len();
        let counts = self.board.counts();
        let (again, left) = self.book.unsure();
        println!(
            "round {number}  {} posted, {} acknowledged, {again} posted again, {left} left unsure; \
             {held} of {} endpoints waited, at most {longest:.2} s; {} messages delivered, {} \
             repeated; the dead node had {} in flight, {} unrecorded at most",
            self.book.posted(),
            self.book.acked(),
            gaps.len(),
            counts.done,
            counts.repeats,
            self.in_flight,
            self.unrecorded,
        );
        let clashes = self.board.id_clashes() + self.other_ids();
        let allowed = (self.in_flight + self.unrecorded) as f64;
        [
            Verdict::that(&format!("of the acknowledged {lost} were not delivered"), lost == 0),
            Verdict::that(&format!("{clashes} events under a second id"), clashes == 0),
            Verdict::at_most("longest wait of an endpoint, s", longest, GAP_MAX_S),
            Verdict::at_most(
                "repeats beside sends in flight and results unrecorded",
                (counts.repeats + self.repeats_before) as f64,
                allowed,
            ),
        ]
    }

    /// Messages that came under another id than was acknowledged.
    fn other_ids(&self) -> u64 {
        let done = self.book.acked_where(|seq| self.board.is_done(seq));
        let other = done.iter().filter(|(seq, id)| {
            !id.is_empty() && self.board.id_of(*seq).is_some_and(|seen| *seen != **id)
        });
        other.count() as u64
    }

    /// The longest time between two deliveries of each endpoint, around and after the end.
    fn gaps_s(&self) -> Vec<f64> {
        let mut times: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for seq in 0..self.book.posted() {
            if let Some(at) = self.board.done_at_us(seq) {
                times.entry(seq % self.apps).or_default().push(at);
            }
        }
        times.into_values().map(|times| gap_s(times, self.killed_us)).collect()
    }
}

/// The longest time between two of these that ends after `from_us`.
fn gap_s(mut times_us: Vec<u64>, from_us: u64) -> f64 {
    times_us.sort_unstable();
    let gaps = times_us.windows(2).filter(|pair| pair[1] > from_us).map(|pair| pair[1] - pair[0]);
    gaps.max().unwrap_or(0) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_counts_that_ends_after_the_kill() {
        let times = vec![9_000_000, 0, 1_000_000, 4_000_000, 8_500_000];
        assert!((gap_s(times.clone(), 3_500_000) - 4.5).abs() < 1e-9);
        assert!((gap_s(times.clone(), 8_600_000) - 0.5).abs() < 1e-9);
        assert!(gap_s(times, 9_000_000).abs() < 1e-9);
    }
}
