//! `bench replays`: what live traffic and memory feel of a million dead letters going back.
//!
//! The state is made by peyk itself: that many messages over a few applications are posted to
//! endpoints that answer 500, with one attempt for each and the breaker off, so that each is a dead
//! letter. Then live traffic to a healthy endpoint is measured, first alone and then while the
//! letters of all applications go back at a set rate, whose endpoints are well by then; all in one
//! process, whose memory is read before and meanwhile.
//! Never: write into the database; or call it a figure when the letters ran out before the traffic.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::child::Peyk;
use crate::fault::{Fault, Result};
use crate::machine::{self, Memory};
use crate::pending::wait_seen;
use crate::scene::{Phase, Scene};
use crate::stats::{Verdict, median};

/// Bars: both times beside those without a replay, and the memory.
const WITHIN: f64 = 2.0;
const MEMORY_WITHIN: f64 = 1.1;

/// Between two looks at the memory.
const WATCH_EVERY: Duration = Duration::from_millis(250);
/// Messages posted between two looks at how far the receiver is.
const PIECE: u32 = 20_000;
/// Unsent messages that may wait while the state is made.
const BEHIND_MAX: u32 = 50_000;

const SETTINGS: [(&str, &str); 2] =
    [("PEYK_RETRY__ATTEMPTS_MAX", "1"), ("PEYK_BREAKER__ENABLED", "false")];

/// Options of `bench replays`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    peyk: Peyk,
    /// Dead letters.
    #[arg(long, default_value_t = 1_000_000)]
    letters: u32,
    /// Applications they are in, with one endpoint each, and as many background tasks.
    #[arg(long, default_value_t = 10)]
    apps: u32,
    /// Letters that go back each second, over all applications.
    #[arg(long, default_value_t = 1_000)]
    replay_rate: u32,
    /// Messages a second of the live traffic.
    #[arg(long, default_value_t = 1_000)]
    rate: u32,
    /// Seconds of it in each measurement.
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// Measurements without and with a replay, in turn.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Make the state in this directory.
    #[arg(long)]
    state: Option<PathBuf>,
    /// Exit with 1 when a bar is missed.
    #[arg(long)]
    check: bool,
}

/// Live traffic without and with a replay, and what was resident.
struct Pair {
    alone: Phase,
    beside: Phase,
    before_mb: f64,
    during_mb: f64,
}

/// Makes the letters, measures, compares; `false` when a bar to be checked was missed.
pub(crate) async fn run(options: Options) -> Result<bool> {
    let scratch = options.peyk.data_dir()?;
    let dir = options.state.clone().unwrap_or_else(|| scratch.path().join("replays"));
    std::fs::create_dir_all(&dir)?;
    let live = options.rate * (3 + 2 * options.seconds * options.rounds.max(1));
    let messages = options.letters + live;
    let mut scene = Scene::start(&options.peyk, &dir, &SETTINGS, messages).await?;
    let dead = fill(&options, &mut scene).await?;
    mend(&scene, &dead).await?;
    let healthy = scene.apps("/ok", 1).await?;
    scene.phase(&healthy, options.rate * 3, options.rate).await?;
    let mut pairs = Vec::new();
    for round in 1..=options.rounds.max(1) {
        let pair = measure(&options, &mut scene, (&dead, &healthy)).await?;
        pair.alone.print(&format!("{round} alone "));
        pair.beside.print(&format!("{round} beside"));
        println!(
            "{round}  resident {:.1} MB before, {:.1} MB at most while letters went back",
            pair.before_mb, pair.during_mb
        );
        pairs.push(pair);
    }
    scene.child.stop().await?;
    Ok(compare(&pairs) || !options.check)
}

/// Posts everything to endpoints that answer 500, and waits until each was sent.
async fn fill(options: &Options, scene: &mut Scene) -> Result<Arc<[String]>> {
    let began = Instant::now();
    let apps = scene.apps("/status/500", options.apps.max(1)).await?;
    let mut posted = 0;
    while posted < options.letters {
        let piece = PIECE.min(options.letters - posted);
        scene.flood(&apps, piece).await?;
        posted += piece;
        wait_seen(scene, posted, BEHIND_MAX).await?;
    }
    wait_seen(scene, posted, 0).await?;
    println!(
        "made {posted} dead letters in {} applications in {:.1} s",
        apps.len(),
        began.elapsed().as_secs_f64()
    );
    Ok(apps)
}

/// The receiver is well again: from now on it is asked where it answers 200.
async fn mend(scene: &Scene, apps: &[String]) -> Result<()> {
    let mut session = scene.api.session().await?;
    for (number, app) in apps.iter().enumerate() {
        let path = format!("/api/v1/app/{app}/endpoint");
        let list = session.get(&path).await?;
        let id = list["data"][0]["id"].as_str().ok_or_else(|| Fault::new("no endpoint"))?;
        let well = json!({"url": scene.url(&format!("/ok/again-{number}"))});
        session.patch(&format!("{path}/{id}"), &well).await?;
    }
    Ok(())
}

/// Live traffic alone, then the same while letters go back.
async fn measure(
    options: &Options,
    scene: &mut Scene,
    (dead, healthy): (&[String], &Arc<[String]>),
) -> Result<Pair> {
    let count = options.rate * options.seconds;
    let alone = scene.phase(healthy, count, options.rate).await?;
    let before_mb = scene.child.memory()?.rss_mb();
    let mut session = scene.api.session().await?;
    let rate = (options.replay_rate / u32::try_from(dead.len()).unwrap_or(1)).max(1);
    let mut tasks = Vec::new();
    for app in dead {
        let path = format!("/api/v1/app/{app}/dead-letter/replay");
        tasks.push(session.post(&path, &json!({"ratePerS": rate})).await?);
    }
    let most = Arc::new(AtomicU64::new(0));
    let watching = tokio::spawn(watch(scene.child.pid(), Arc::clone(&most)));
    let beside = scene.phase(healthy, count, options.rate).await?;
    watching.abort();
    let during_mb = Memory { rss_kib: most.load(Relaxed), peak_kib: 0 }.rss_mb();
    let mut done = 0;
    for task in &tasks {
        done += stopped(&mut session, task).await?;
    }
    println!("{done} letters went back meanwhile");
    Ok(Pair { alone, beside, before_mb, during_mb })
}

/// Keeps the most that is resident at a time.
async fn watch(pid: u32, most: Arc<AtomicU64>) {
    while let Ok(memory) = machine::memory(pid) {
        most.fetch_max(memory.rss_kib, Relaxed);
        sleep(WATCH_EVERY).await;
    }
}

/// Stops a task that must still be at work; how many letters it put back.
async fn stopped(session: &mut crate::api::Session, task: &Value) -> Result<u64> {
    let id = task["id"].as_str().ok_or_else(|| Fault::new("a task without an id"))?;
    let path = format!("/api/v1/background-task/{id}");
    let now = session.get(&path).await?;
    if now["status"] != "running" {
        return Err(Fault::new("the letters ran out: more of them, or a lower --replay-rate"));
    }
    let ended = session.post(&format!("{path}/cancel"), &json!({})).await?;
    Ok(ended["data"]["done"].as_u64().unwrap_or(0))
}

/// Median quotients of the times, worst quotient of the memory.
fn compare(pairs: &[Pair]) -> bool {
    let quotient = |of: fn(&Phase) -> f64| {
        let each = pairs.iter().map(|pair| of(&pair.beside) / of(&pair.alone).max(0.001));
        median(&each.collect::<Vec<_>>())
    };
    let ack = quotient(|phase| phase.acks.percentile_ms(99.0));
    let end = quotient(|phase| phase.ends.percentile_ms(99.0));
    let memory = pairs.iter().map(|pair| pair.during_mb / pair.before_mb.max(1.0));
    let verdicts = [
        Verdict::at_most("acknowledgement p99 / that without a replay", ack, WITHIN),
        Verdict::at_most("end to end p99 / that without a replay", end, WITHIN),
        Verdict::at_most("resident / that before", memory.fold(0.0, f64::max), MEMORY_WITHIN),
    ];
    for verdict in &verdicts {
        println!("{verdict}");
    }
    verdicts.iter().all(Verdict::met)
}
