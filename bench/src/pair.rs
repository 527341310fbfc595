//! `bench pair`: throughput of peyk beside the relay floor, in pairs, floor first.
//!
//! Each side runs in a process of its own, on a fresh data directory; load and receiver run in the
//! bench process, on the same cores. A run ends when every message has been answered 2xx at the
//! receiver. With more endpoints to an application it is peyk beside peyk with one endpoint.
//! Never: compare figures of different runs of the bench.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::time::{Instant, sleep};

use crate::api::Api;
use crate::board::Board;
use crate::child::{Child, Peyk};
use crate::fault::{Fault, Result};
use crate::load::{self, Load, Report};
use crate::machine::CpuUsed;
use crate::receiver;
use crate::stats::{Verdict, median};

/// What many endpoints may add to the time of a message.
const MANY_MAX: f64 = 1.1;

/// Options of `bench pair`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    peyk: Peyk,
    /// Messages of a run.
    #[arg(long, default_value_t = 30_000)]
    messages: u32,
    /// Messages before the clock starts.
    #[arg(long, default_value_t = 2_000)]
    warmup: u32,
    /// Pairs of runs.
    #[arg(long, default_value_t = 3)]
    pairs: u32,
    /// Applications with one endpoint each.
    #[arg(long, default_value_t = 1)]
    apps: u32,
    /// Endpoints of each application; one takes the messages, the others each another event type.
    #[arg(long, default_value_t = 1, conflicts_with_all = ["floor_only", "peyk_only", "bar"])]
    endpoints: u32,
    /// Put an idempotency key on every post.
    #[arg(long)]
    idempotency: bool,
    /// Bytes of a payload.
    #[arg(long, default_value_t = 256)]
    payload_bytes: usize,
    /// Posts in flight.
    #[arg(long, default_value_t = 64)]
    in_flight: usize,
    /// Seconds after which a run is given up.
    #[arg(long, default_value_t = 120)]
    give_up_s: u64,
    /// Measure only the floor.
    #[arg(long, conflicts_with = "peyk_only")]
    floor_only: bool,
    /// Measure only peyk.
    #[arg(long)]
    peyk_only: bool,
    /// Smallest ratio that passes; by default 0.5, with more than one application 0.35, on
    /// PostgreSQL 0.3.
    #[arg(long)]
    bar: Option<f64>,
    /// Exit with 1 when the ratio is below the bar.
    #[arg(long)]
    check: bool,
}

/// One run of one side.
pub(crate) struct Run {
    pub(crate) deliveries_per_s: f64,
    posts_per_s: f64,
    ack_p50_ms: f64,
    ack_p99_ms: f64,
    peak_mb: f64,
    cpu: CpuUsed,
    took_s: f64,
    messages: f64,
    refused: u64,
    repeats: u64,
}

/// Which messages a run posts, and how long it may take.
pub(crate) struct Course {
    /// Before the clock starts.
    pub(crate) warmup: Range<u32>,
    /// Measured.
    pub(crate) seqs: Range<u32>,
    /// Longest wait for either.
    pub(crate) give_up: Duration,
}

impl Run {
    /// CPU a message of everybody but load and receiver, in microseconds: the server's and, where
    /// there is one and nobody else works, the database's.
    pub(crate) fn cost_us(&self) -> f64 {
        (self.cpu.server_s + self.cpu.others_cores * self.took_s) * 1e6 / self.messages
    }
}

/// Measures pairs and prints their median; `false` when a bar to be checked was missed.
pub(crate) async fn run(options: Options) -> Result<bool> {
    println!(
        "{} messages, {} bytes, {} in flight, {} application(s), \
         idempotency keys: {}; load and receiver in this process",
        options.messages,
        options.payload_bytes,
        options.in_flight,
        options.apps,
        options.idempotency,
    );
    if options.endpoints > 1 {
        return beside_one(&options).await;
    }
    let mut ratios = Vec::new();
    for pair in 1..=options.pairs.max(1) {
        let floor = if options.peyk_only { None } else { Some(floor(&options).await?) };
        if let Some(run) = &floor {
            print(pair, "floor", run);
        }
        let peyk = if options.floor_only { None } else { Some(peyk(&options, 1).await?) };
        if let Some(run) = &peyk {
            print(pair, "peyk", run);
        }
        if let (Some(floor), Some(peyk)) = (floor, peyk) {
            let ratio = peyk.deliveries_per_s / floor.deliveries_per_s;
            println!("pair {pair}  ratio  {ratio:.3}");
            ratios.push(ratio);
        }
    }
    if ratios.is_empty() {
        return Ok(true);
    }
    let usual = match (options.peyk.database(), options.apps) {
        (Some(_), _) => 0.3,
        (None, 2..) => 0.35,
        (None, _) => 0.5,
    };
    let bar = options.bar.unwrap_or(usual);
    let verdict = Verdict::at_least("median of peyk / floor", median(&ratios), bar);
    println!("{verdict}");
    Ok(verdict.met() || !options.check)
}

/// Measures many endpoints beside one, in turn; `false` when a bar to be checked was missed.
async fn beside_one(options: &Options) -> Result<bool> {
    let mut ratios = Vec::new();
    for pair in 1..=options.pairs.max(1) {
        // Each is first in turn, so that a machine that warms up or fills favours neither.
        let first_many = pair.is_multiple_of(2);
        let first = peyk(options, if first_many { options.endpoints } else { 1 }).await?;
        let second = peyk(options, if first_many { 1 } else { options.endpoints }).await?;
        let (one, many) = if first_many { (second, first) } else { (first, second) };
        print(pair, "one", &one);
        print(pair, "many", &many);
        let ratio = one.deliveries_per_s / many.deliveries_per_s;
        let cpu = many.cpu.server_s / one.cpu.server_s;
        println!(
            "pair {pair}  many / one: time of a message {ratio:.3}, CPU of the server {cpu:.3}"
        );
        ratios.push(ratio);
    }
    let what = format!(
        "median of the time of a message with {} endpoints of which one matches / with one",
        options.endpoints,
    );
    let verdict = Verdict::below(&what, median(&ratios), MANY_MAX);
    println!("{verdict}");
    Ok(verdict.met() || !options.check)
}

/// Prints a run under the number of its pair and its side.
pub(crate) fn print(pair: u32, side: &str, run: &Run) {
    println!(
        "pair {pair}  {side:<5}  {:>7.0} deliveries/s  {:>7.0} posts/s  ack p50 {:.2} \
         p99 {:.2} ms  peak {:.1} MB  \
         CPU a message: server {:.1} us, load and receiver {:.1} us; \
         others {:.2} cores  refused {}  repeated {}",
        run.deliveries_per_s,
        run.posts_per_s,
        run.ack_p50_ms,
        run.ack_p99_ms,
        run.peak_mb,
        run.cpu.server_s * 1e6 / run.messages,
        run.cpu.bench_s * 1e6 / run.messages,
        run.cpu.others_cores,
        run.refused,
        run.repeats,
    );
    let split = run.cpu.threads.iter();
    let split = split.map(|(name, used_s)| format!("{name} {:.1}", used_s * 1e6 / run.messages));
    println!(
        "pair {pair}  {side:<5}  of the server's us: {}",
        split.collect::<Vec<_>>().join(", ")
    );
}

async fn floor(options: &Options) -> Result<Run> {
    let board = Arc::new(Board::new(options.warmup + options.messages));
    let receiver = receiver::start(([127, 0, 0, 1], 0).into(), Arc::clone(&board)).await?;
    let child = Child::relay(&format!("http://{receiver}/ok/{{app}}")).await?;
    let apps = (0..options.apps.max(1)).map(|app| format!("app_{app:027}")).collect();
    let load = options.load(&child, None, apps);
    measure(&options.course(), &load, &board, child).await
}

async fn peyk(options: &Options, endpoints: u32) -> Result<Run> {
    let board = Arc::new(Board::new(options.warmup + options.messages));
    let receiver = receiver::start(([127, 0, 0, 1], 0).into(), Arc::clone(&board)).await?;
    let data_dir = options.peyk.data_dir()?;
    let child = options.peyk.serve(data_dir.path(), &[]).await?;
    let api = Api::new(child.addr, options.peyk.token(data_dir.path()).await?);
    let urls = (0..options.apps.max(1)).map(|app| format!("http://{receiver}/ok/{app}")).collect();
    let apps = api.create_apps(urls).await?;
    let others = endpoints.max(1) - 1;
    api.add_strangers(&apps, others, &format!("http://{receiver}/ok/other")).await?;
    let load = options.load(&child, Some(api.token().to_owned()), apps);
    measure(&options.course(), &load, &board, child).await
}

impl Options {
    const fn course(&self) -> Course {
        Course {
            warmup: 0..self.warmup,
            seqs: self.warmup..self.warmup + self.messages,
            give_up: Duration::from_secs(self.give_up_s),
        }
    }

    fn load(&self, child: &Child, token: Option<String>, apps: Arc<[String]>) -> Load {
        Load {
            addr: child.addr,
            token,
            apps,
            kind: load::sent,
            idempotency: self.idempotency,
            event_ids: false,
            payload_bytes: self.payload_bytes,
            in_flight: self.in_flight,
        }
    }
}

/// Runs a course on a server, and ends it at once.
pub(crate) async fn measure(
    course: &Course,
    load: &Load,
    board: &Board,
    mut child: Child,
) -> Result<Run> {
    load_and_wait(load, board, course.warmup.clone(), course.give_up).await?;
    let (mark, repeats) = (child.cpu()?, board.counts().repeats);
    let report = load_and_wait(load, board, course.seqs.clone(), course.give_up).await?;
    let messages = course.seqs.len() as f64;
    let took_us = board.last_done_us(course.seqs.clone()).saturating_sub(report.began_us);
    let run = Run {
        deliveries_per_s: messages * 1e6 / took_us as f64,
        posts_per_s: messages / report.took.as_secs_f64(),
        ack_p50_ms: report.acks.percentile_ms(50.0),
        ack_p99_ms: report.acks.percentile_ms(99.0),
        peak_mb: child.memory()?.peak_mb(),
        cpu: mark.until(child.cpu()?),
        took_s: took_us as f64 / 1e6,
        messages,
        refused: report.refused,
        repeats: board.counts().repeats - repeats,
    };
    child.kill().await?;
    Ok(run)
}

/// Posts all of `seqs` and waits until every one is delivered.
async fn load_and_wait(
    load: &Load,
    board: &Board,
    seqs: Range<u32>,
    give_up: Duration,
) -> Result<Report> {
    let posting = tokio::time::timeout(give_up, load::closed(load, seqs.clone()));
    let report =
        posting.await.map_err(|_| Fault::new(format!("posting took over {give_up:?}")))??;
    wait_delivered(board, seqs, give_up).await?;
    Ok(report)
}

/// Waits until every one of `seqs` has been answered 2xx at the receiver.
pub(crate) async fn wait_delivered(
    board: &Board,
    seqs: Range<u32>,
    give_up: Duration,
) -> Result<()> {
    let began = Instant::now();
    loop {
        let done = board.done_in(seqs.clone());
        if done as usize == seqs.len() {
            return Ok(());
        }
        if began.elapsed() > give_up {
            let text = format!(
                "only {done} of {} messages were delivered within {give_up:?}; \
                 the receiver counts {:?}",
                seqs.len(),
                board.counts(),
            );
            return Err(Fault::new(text));
        }
        sleep(Duration::from_millis(10)).await;
    }
}
