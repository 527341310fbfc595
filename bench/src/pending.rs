//! `bench pending`: what a million pending retries cost.
//!
//! The state is made by peyk itself: that many messages over so many endpoints are posted to a
//! receiver that answers 500, with the breaker off and one retry due hours later, so that each is a
//! row with one send behind it. Then peyk is stopped, started again with its own defaults, and
//! measured beside an empty installation on the same machine.
//! Never: write into the database; what is measured is what peyk made.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tokio::time::{Instant, sleep};

use crate::child::Peyk;
use crate::fault::{Fault, Result};
use crate::machine;
use crate::scene::{Phase, Scene};
use crate::stats::{Verdict, median};

/// Bars.
const START_S: f64 = 3.0;
const RSS_MB: f64 = 300.0;
const WITHIN: f64 = 1.2;

/// Messages posted between two looks at how far the receiver is.
const PIECE: u32 = 20_000;

/// Unsent messages that may wait while the state is made.
const BEHIND_MAX: u32 = 50_000;

/// Settings under which the state is made.
pub(crate) const FILL: [(&str, &str); 4] = [
    ("PEYK_RETRY__STRATEGY", "fixed"),
    ("PEYK_RETRY__BASE", "6h"),
    ("PEYK_RETRY__CAP", "6h"),
    ("PEYK_BREAKER__ENABLED", "false"),
];

/// Options of `bench pending`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    peyk: Peyk,
    /// Pending retries.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u32,
    /// Endpoints, each in an application of its own.
    #[arg(long, default_value_t = 1_000)]
    endpoints: u32,
    /// Messages a second of the live traffic.
    #[arg(long, default_value_t = 1_000)]
    rate: u32,
    /// Seconds of it.
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// Measurements of both, in turn.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Use, or make and keep, the state in this directory.
    #[arg(long)]
    state: Option<PathBuf>,
    /// Exit with 1 when a bar is missed.
    #[arg(long)]
    check: bool,
}

/// What one installation measured.
struct Figures {
    start_s: f64,
    first_delivery_s: f64,
    rss_at_start_mb: f64,
    peak_mb: f64,
    phase: Phase,
}

/// Makes the state, measures, compares; `false` when a bar to be checked was missed.
pub(crate) async fn run(options: Options) -> Result<bool> {
    let scratch = options.peyk.data_dir()?;
    let full = options.state.clone().unwrap_or_else(|| scratch.path().join("full"));
    let empty = scratch.path().join("empty");
    if options.state.as_ref().is_some_and(|state| state.exists()) {
        println!("using the state in {}", full.display());
    } else {
        std::fs::create_dir_all(&full)?;
        fill(&options, &full).await?;
    }
    std::fs::create_dir_all(&empty)?;
    let mut pairs = Vec::new();
    for round in 1..=options.rounds.max(1) {
        let plain = figures(&options, &empty).await?;
        plain.print(&format!("{round} empty  "));
        let loaded = figures(&options, &full).await?;
        loaded.print(&format!("{round} pending"));
        pairs.push((plain, loaded));
    }
    Ok(compare(&pairs) || !options.check)
}

/// Worst start and memory, median quotients of the times.
fn compare(pairs: &[(Figures, Figures)]) -> bool {
    let worst = |of: fn(&Figures) -> f64| pairs.iter().map(|pair| of(&pair.1)).fold(0.0, f64::max);
    let quotient = |of: fn(&Figures) -> f64| {
        let each = pairs.iter().map(|(plain, loaded)| of(loaded) / of(plain).max(0.001));
        median(&each.collect::<Vec<_>>())
    };
    let ack = quotient(|figures| figures.phase.acks.percentile_ms(99.0));
    let end = quotient(|figures| figures.phase.ends.percentile_ms(50.0));
    let verdicts = [
        Verdict::below("start, s", worst(|figures| figures.start_s), START_S),
        Verdict::below("resident at most, MB", worst(|figures| figures.peak_mb), RSS_MB),
        Verdict::at_most("acknowledgement p99 / that of an empty one", ack, WITHIN),
        Verdict::at_most("end to end p50 / that of an empty one", end, WITHIN),
    ];
    for verdict in &verdicts {
        println!("{verdict}");
    }
    verdicts.iter().all(Verdict::met)
}

/// Posts everything to endpoints that answer 500 and stops the server once each was sent.
async fn fill(options: &Options, data_dir: &Path) -> Result<()> {
    let began = Instant::now();
    let mut scene = Scene::start(&options.peyk, data_dir, &FILL, options.rows).await?;
    let apps = scene.apps("/status/500", options.endpoints.max(1)).await?;
    let mut posted = 0;
    while posted < options.rows {
        let piece = PIECE.min(options.rows - posted);
        scene.flood(&apps, piece).await?;
        posted += piece;
        wait_seen(&scene, posted, BEHIND_MAX).await?;
    }
    wait_seen(&scene, posted, 0).await?;
    let stopped = scene.child.stop().await?;
    println!(
        "made {posted} pending retries over {} endpoints in {:.1} s; \
         stopped in {:.1} s; {:.0} MB on disk",
        options.endpoints,
        began.elapsed().as_secs_f64(),
        stopped.as_secs_f64(),
        bytes_in(data_dir)? as f64 / 1e6,
    );
    Ok(())
}

/// Waits until at most `behind_max` of the first `posted` messages have not been sent.
pub(crate) async fn wait_seen(scene: &Scene, posted: u32, behind_max: u32) -> Result<()> {
    let (mut last, mut progress) = (0, Instant::now());
    loop {
        let seen = scene.board.seen_in(0..posted);
        if posted - seen <= behind_max {
            return Ok(());
        }
        if seen > last {
            (last, progress) = (seen, Instant::now());
        }
        if progress.elapsed() > Duration::from_secs(60) {
            let text =
                format!("only {seen} of {posted} messages were sent, none in the last minute");
            return Err(Fault::new(text));
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Starts peyk with its defaults and measures start, memory, and live traffic to one healthy
/// endpoint.
async fn figures(options: &Options, data_dir: &Path) -> Result<Figures> {
    let warmup = options.rate * 3;
    let count = options.rate * options.seconds;
    let mut scene = Scene::start(&options.peyk, data_dir, &[], 1 + warmup + count).await?;
    let start_s = scene.child.start_took.as_secs_f64();
    let rss_at_start_mb = scene.child.memory()?.rss_mb();
    let apps = scene.apps("/ok", 1).await?;
    scene.phase(&apps, 1, options.rate).await?;
    let first_us = machine::now_us() - scene.child.listening_us;
    scene.phase(&apps, warmup, options.rate).await?;
    let phase = scene.phase(&apps, count, options.rate).await?;
    let peak_mb = scene.child.memory()?.peak_mb();
    scene.child.stop().await?;
    Ok(Figures {
        start_s,
        first_delivery_s: first_us as f64 / 1e6,
        rss_at_start_mb,
        peak_mb,
        phase,
    })
}

impl Figures {
    fn print(&self, name: &str) {
        println!(
            "{name}  listening after {:.3} s; \
             first application, message and delivery {:.3} s later; \
             resident {:.1} MB at start, {:.1} MB at most",
            self.start_s, self.first_delivery_s, self.rss_at_start_mb, self.peak_mb,
        );
        self.phase.print(name);
    }
}

fn bytes_in(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let meta = entry?.metadata()?;
        bytes += if meta.is_file() { meta.len() } else { 0 };
    }
    Ok(bytes)
}
