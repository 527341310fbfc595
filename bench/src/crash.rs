//! `bench crash`: the real binary, really killed, at random moments under load.
//!
//! Each round starts peyk on the same data directory, loads it, and ends it at a drawn moment:
//! `kill -9`, or SIGTERM and `kill -9` up to 300 ms later. The receiver is slow or answers 500 at
//! times, and in half of the rounds it refuses everything before the end. Claims: nothing
//! acknowledged is lost; deliveries of a message that was answered 2xx before are at most the sends
//! in flight and 1,024 unrecorded results, for each end; sending goes on less than 1 s after a
//! restart; one message per event, under one id; figures of every endpoint equal to a count of its
//! rows.
//! Never: be lenient on an acknowledged message; dead and still pending ones are named and counted.

mod recount;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::api::{Api, Session};
use crate::board::Board;
use crate::child::{Child, Peyk};
use crate::fault::Result;
use crate::load::{self, Load};
use crate::machine::{now_us, run_id};
use crate::receiver::{self, mix};
use crate::stats::{Verdict, median};
use crate::traffic::{self, Book, Traffic};

/// Results that may be unrecorded when the process dies.
const UNRECORDED_MAX: u64 = 1_024;

/// Longest pause from a restart to the first send, when something is due.
const RESUME_MAX_MS: f64 = 1_000.0;

/// How long the first send is waited for, to tell how late it was.
const RESUME_WAIT: Duration = Duration::from_secs(15);

/// Missing messages that are looked up one by one.
const LOOKED_UP_MAX: usize = 1_000;

/// Reads of the same figures, when they move while they are read.
const RECOUNTS_MAX: u32 = 50;

/// Retries and breakers fast enough that everything pending is due within a fraction of a second.
const SETTINGS: [(&str, &str); 5] = [
    ("PEYK_RETRY__BASE", "50ms"),
    ("PEYK_RETRY__CAP", "300ms"),
    ("PEYK_RETRY__ATTEMPTS_MAX", "100"),
    ("PEYK_BREAKER__OPEN_FOR", "100ms"),
    ("PEYK_BREAKER__OPEN_FOR_MAX", "300ms"),
];

/// Options of `bench crash`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    peyk: Peyk,
    /// Ends and restarts.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Decides the moments and ways.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Messages a second.
    #[arg(long, default_value_t = 3_000)]
    rate: u32,
    /// Posts in flight.
    #[arg(long, default_value_t = 32)]
    in_flight: usize,
    /// Applications with one endpoint each.
    #[arg(long, default_value_t = 8)]
    apps: u32,
    /// Latest moment of an end, ms after the load began.
    #[arg(long, default_value_t = 3_000)]
    moment_max_ms: u64,
}

/// How a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    moment_ms: u64,
    /// SIGTERM first, and this long for an orderly end.
    term_ms: Option<u64>,
    /// The receiver refuses everything this long before the end, so that much is stored and not
    /// delivered.
    outage_ms: u64,
}

/// What is carried from round to round.
struct Harness {
    options: Options,
    board: Arc<Board>,
    receiver: SocketAddr,
    book: Arc<Book>,
    token: String,
    apps: Arc<[String]>,
    /// Repeats that are allowed so far.
    allowed: u64,
    resumed_ms: Vec<f64>,
    violations: Vec<String>,
}

/// Runs all rounds and the final reckoning; `false` when a claim does not hold.
pub(crate) async fn run(options: Options) -> Result<bool> {
    let data_dir = options.peyk.data_dir()?;
    let per_round = u64::from(options.rate) * options.moment_max_ms / 1000 + 1_000;
    let messages = u32::try_from(per_round * u64::from(options.rounds)).unwrap_or(u32::MAX);
    let board = Arc::new(Board::with_ids(messages));
    let receiver = receiver::start(([127, 0, 0, 1], 0).into(), Arc::clone(&board)).await?;
    let book = Arc::new(Book::new(run_id(), messages));
    let mut harness = Harness {
        options,
        board,
        receiver,
        book,
        token: String::new(),
        apps: Arc::default(),
        allowed: 0,
        resumed_ms: Vec::new(),
        violations: Vec::new(),
    };
    for round in 1..=harness.options.rounds {
        harness.round(data_dir.path(), round).await?;
    }
    harness.reckon(data_dir.path()).await
}

impl Harness {
    async fn round(&mut self, data_dir: &Path, round: u32) -> Result<()> {
        let (mut child, resumed) = self.start(data_dir).await?;
        let before = self.board.counts();
        let end = end(self.options.seed, round, self.options.moment_max_ms);
        let traffic = Traffic::start(&self.load(&child), &self.book, self.options.rate);
        sleep(Duration::from_millis(end.moment_ms - end.outage_ms)).await;
        self.board.set_outage(end.outage_ms > 0);
        sleep(Duration::from_millis(end.outage_ms)).await;
        let in_flight = self.board.counts().in_flight;
        let orderly = finish(&mut child, end).await?;
        traffic.stop().await?;
        self.board.set_outage(false);
        self.allowed += in_flight + UNRECORDED_MAX;
        let now = self.board.counts();
        println!(
            "round {round:>3}  {}{:>5} ms  {:>6} acknowledged, {:>5} undelivered  \
             {:>6} requests  {:>4} in flight  \
             repeated {:>4}  start {:.0} ms  {}",
            match (end.term_ms, orderly) {
                (None, _) => "kill -9      at ".to_owned(),
                (Some(ms), false) => format!("TERM, {ms:>3} ms  at "),
                (Some(_), true) => "TERM, orderly at ".to_owned(),
            },
            end.moment_ms,
            self.book.acked(),
            self.undelivered().len(),
            now.requests - before.requests,
            in_flight,
            now.repeats - before.repeats,
            child.start_took.as_secs_f64() * 1e3,
            resumed.map_or_else(
                || "nothing was due".to_owned(),
                |ms| format!("sent after {ms:.0} ms")
            ),
        );
        if now.repeats > self.allowed {
            let text =
                format!("round {round}: {} repeats, {} allowed so far", now.repeats, self.allowed);
            self.violations.push(text);
        }
        Ok(())
    }

    /// Starts peyk; answers how long after that line it sent again, when there was something to
    /// send.
    async fn start(&mut self, data_dir: &Path) -> Result<(Child, Option<f64>)> {
        // The old process is gone and what it had sent has been counted: any further request is a
        // new one.
        let waiting = self.undelivered().len();
        let before = self.board.counts().requests;
        let child = self.options.peyk.serve(data_dir, &SETTINGS).await?;
        if self.apps.is_empty() {
            self.token = self.options.peyk.token(data_dir).await?;
            let api = Api::new(child.addr, self.token.clone());
            let urls = (0..self.options.apps.max(1))
                .map(|app| format!("http://{}/flaky/{app}", self.receiver));
            self.apps = api.create_apps(urls.collect()).await?;
        }
        if waiting == 0 {
            return Ok((child, None));
        }
        let began = Instant::now();
        while self.board.counts().requests == before && began.elapsed() < RESUME_WAIT {
            sleep(Duration::from_millis(1)).await;
        }
        let ms = (now_us() - child.listening_us) as f64 / 1e3;
        if ms > RESUME_MAX_MS {
            let text = format!(
                "{waiting} messages waited, and nothing was sent for {ms:.0} ms after a restart"
            );
            self.violations.push(text);
        }
        self.resumed_ms.push(ms);
        Ok((child, Some(ms)))
    }

    /// Lets everything drain, then looks for each acknowledged message.
    async fn reckon(&mut self, data_dir: &Path) -> Result<bool> {
        let (child, _) = self.start(data_dir).await?;
        traffic::settle(&self.load(&child), &self.book).await?;
        self.drain().await;
        let missing = self.undelivered();
        let (mut dead, mut pending, mut lost) = (0, 0, 0);
        let mut session = Api::new(child.addr, self.token.clone()).session().await?;
        for (seq, id) in missing.iter().take(LOOKED_UP_MAX) {
            let app = &self.apps[*seq as usize % self.apps.len()];
            let path = format!("/api/v1/app/{app}/msg/{id}/endpoint");
            match session.get(&path).await.map(|answer| answer["data"][0]["status"].as_i64()) {
                Ok(Some(1 | 3)) => pending += 1,
                Ok(Some(2)) => dead += 1,
                other => {
                    lost += 1;
                    self.violations.push(format!(
                        "message {seq} ({id}) was acknowledged and is lost: {other:?}"
                    ));
                }
            }
        }
        if missing.len() > LOOKED_UP_MAX {
            self.violations.push(format!("{} acknowledged messages did not arrive", missing.len()));
        }
        self.check_ids();
        self.recount(&mut session).await?;
        let stopped = child.stop().await?;
        self.summary([dead, pending, lost], stopped);
        Ok(self.violations.is_empty())
    }

    fn summary(&self, [dead, pending, lost]: [u32; 3], stopped: Duration) {
        let counts = self.board.counts();
        let (posted_again, left) = self.book.unsure();
        println!(
            "{} posted, {} acknowledged, {posted_again} posted again, {left} left unsure; \
             {} requests, {} messages delivered",
            self.book.posted(),
            self.book.acked(),
            counts.requests,
            counts.done,
        );
        println!(
            "of the acknowledged: {dead} dead, {pending} still pending, {lost} lost; \
             stopped in {stopped:.1?}"
        );
        println!(
            "repeated {} of {} allowed; sending again after a restart: \
             median {:.0} ms, at most {:.0} ms",
            counts.repeats,
            self.allowed,
            median(&self.resumed_ms),
            self.resumed_ms.iter().copied().fold(0.0, f64::max),
        );
        for violation in &self.violations {
            println!("{}", Verdict::that(violation, false));
        }
        if self.violations.is_empty() {
            println!("{}", Verdict::that("nothing acknowledged was lost", true));
        }
    }

    /// What was counted along the way, through all ends, is what a count of the rows says now.
    async fn recount(&mut self, session: &mut Session) -> Result<()> {
        let (mut counted, mut messages) = (0, 0);
        for app in self.apps.iter() {
            let endpoints = session.get(&format!("/api/v1/app/{app}/endpoint")).await?;
            let endpoint = endpoints["data"][0]["id"].as_str().unwrap_or_default().to_owned();
            let path = format!("/api/v1/app/{app}/endpoint/{endpoint}");
            // What is still retried may move between two reads.
            for round in 1..=RECOUNTS_MAX {
                let before = session.get(&format!("{path}/figures?step=day")).await?;
                let rows = recount::attempts(session, app, &endpoint).await?;
                let after = session.get(&format!("{path}/figures?step=day")).await?;
                let figures =
                    [&before["total"]["classes"]["success"], &before["total"]["attempts"]]
                        .map(Value::as_u64);
                if figures == rows.map(Some) {
                    counted += rows[1];
                    break;
                }
                if before["total"] == after["total"] || round == RECOUNTS_MAX {
                    let text = format!("figures of {app} say {figures:?}, its rows {rows:?}");
                    self.violations.push(text);
                    break;
                }
            }
            let of_app = session.get(&format!("/api/v1/app/{app}/figures?step=day")).await?;
            messages += of_app["total"]["messages"].as_u64().unwrap_or(0);
        }
        let acked = u64::try_from(self.book.acked()).unwrap_or(u64::MAX);
        if messages < acked {
            self.violations.push(format!("figures say {messages} messages, of {acked}"));
        }
        println!("figures: {counted} attempts of as many rows, {messages} messages");
        Ok(())
    }

    /// One message per event, and the one that was acknowledged.
    fn check_ids(&mut self) {
        let clashes = self.board.id_clashes();
        if clashes > 0 {
            self.violations
                .push(format!("{clashes} requests for a known event under a second webhook-id"));
        }
        let other = self.book.acked_where(|seq| self.board.is_done(seq));
        let other = other.iter().filter(|(seq, id)| {
            !id.is_empty() && self.board.id_of(*seq).is_some_and(|seen| *seen != **id)
        });
        let other = other.count();
        if other > 0 {
            self.violations
                .push(format!("{other} messages came under another id than was acknowledged"));
        }
    }

    /// Waits until everything acknowledged is delivered, or nothing has come for 15 s.
    async fn drain(&self) {
        let (mut last, mut progress) = (self.board.counts().requests, Instant::now());
        while !self.undelivered().is_empty() && progress.elapsed() < Duration::from_secs(15) {
            sleep(Duration::from_millis(100)).await;
            let requests = self.board.counts().requests;
            if requests != last {
                (last, progress) = (requests, Instant::now());
            }
        }
    }

    fn undelivered(&self) -> Vec<(u32, String)> {
        self.book.acked_where(|seq| !self.board.is_done(seq))
    }

    fn load(&self, child: &Child) -> Load {
        Load {
            kind: load::sent,
            addr: child.addr,
            token: Some(self.token.clone()),
            apps: Arc::clone(&self.apps),
            idempotency: true,
            event_ids: true,
            payload_bytes: 256,
            in_flight: self.options.in_flight,
        }
    }
}

/// Ends the server as drawn; whether it ended in order.
async fn finish(child: &mut Child, end: End) -> Result<bool> {
    if let Some(ms) = end.term_ms {
        child.terminate().await?;
        if child.ended_within(Duration::from_millis(ms)).await?.is_some() {
            return Ok(true);
        }
    }
    child.kill().await?;
    Ok(false)
}

/// The end of a round: the same for the same seed.
const fn end(seed: u64, round: u32, moment_max_ms: u64) -> End {
    let draw = mix(seed ^ mix(round as u64));
    let (moment, way, wait) = (draw & 0xFFFF, (draw >> 16) & 0xFF, (draw >> 24) & 0xFFFF);
    let moment_ms = 50 + moment % if moment_max_ms > 50 { moment_max_ms - 50 } else { 1 };
    let outage_ms = if (draw >> 40) & 1 == 1 { (draw >> 41) % (moment_ms + 1) } else { 0 };
    End { moment_ms, term_ms: if way % 3 == 0 { Some(wait % 301) } else { None }, outage_ms }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_repeat_with_the_seed_and_vary_with_the_round() {
        assert_eq!(end(7, 3, 3_000), end(7, 3, 3_000));
        let ends: Vec<End> = (0..300).map(|round| end(1, round, 3_000)).collect();
        assert!(ends.iter().all(|end| (50..3_000).contains(&end.moment_ms)));
        assert!(ends.iter().all(|end| end.outage_ms <= end.moment_ms));
        assert!(ends.iter().all(|end| end.term_ms.is_none_or(|ms| ms <= 300)));
        let terms = ends.iter().filter(|end| end.term_ms.is_some()).count();
        assert!((60..140).contains(&terms), "{terms}");
    }
}
