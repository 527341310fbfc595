//! `bench latency`: acknowledgement and end-to-end times at a fixed rate.
//!
//! Open loop: a post is released when its time has come, whatever became of the ones before; times
//! run from the release. End to end is from there to the arrival of the whole request at the
//! receiver, on one clock.
//! Never: count the warm-up.

use clap::Args;

use crate::child::Peyk;
use crate::fault::Result;
use crate::scene::{Phase, Scene};
use crate::stats::Verdict;

/// Bars at 1,000 messages a second.
const ACK_P99_MS: f64 = 10.0;
const ACK_P99_POSTGRES_MS: f64 = 20.0;
const END_P50_MS: f64 = 5.0;

/// Options of `bench latency`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    peyk: Peyk,
    /// Messages a second.
    #[arg(long, default_value_t = 1_000)]
    rate: u32,
    /// Seconds measured.
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// Seconds before, not measured.
    #[arg(long, default_value_t = 3)]
    warmup: u32,
    /// Applications with one endpoint each.
    #[arg(long, default_value_t = 1)]
    apps: u32,
    /// Exit with 1 when a bar is missed.
    #[arg(long)]
    check: bool,
}

/// Measures once; `false` when a bar to be checked was missed.
pub(crate) async fn run(options: Options) -> Result<bool> {
    let data_dir = options.peyk.data_dir()?;
    let (warmup, count) = (options.rate * options.warmup, options.rate * options.seconds);
    let mut scene = Scene::start(&options.peyk, data_dir.path(), &[], warmup + count).await?;
    let apps = scene.apps("/ok", options.apps.max(1)).await?;
    scene.phase(&apps, warmup, options.rate).await?;
    let phase = scene.phase(&apps, count, options.rate).await?;
    phase.print(&format!("{} messages/s", options.rate));
    println!("peak {:.1} MB", scene.child.memory()?.peak_mb());
    let ack_p99_ms =
        if options.peyk.database().is_some() { ACK_P99_POSTGRES_MS } else { ACK_P99_MS };
    let met = bars(&phase, ack_p99_ms);
    scene.child.kill().await?;
    Ok(met || !options.check)
}

/// Prints whether a phase cleared the bars.
fn bars(phase: &Phase, ack_p99_ms: f64) -> bool {
    let ack = Verdict::below("acknowledgement p99, ms", phase.acks.percentile_ms(99.0), ack_p99_ms);
    let end = Verdict::below("end to end p50, ms", phase.ends.percentile_ms(50.0), END_P50_MS);
    println!("{ack}\n{end}");
    ack.met() && end.met()
}
