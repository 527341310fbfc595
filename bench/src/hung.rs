//! `bench hung`: what healthy traffic feels of neighbours that accept and never answer.
//!
//! Two variants, each round on a fresh server: 10,000 messages to one hanging endpoint; as many to
//! 1,000 hanging endpoints of applications of their own. Before and after, 500 messages at 100 a
//! second go to a healthy endpoint, and its end-to-end p99 beside the hung ones is divided by its
//! p99 when all was idle. The median over the rounds counts.
//! Never: wait for the hanging ones; they are still hanging when the healthy ones are measured, and
//! that is checked.

use clap::Args;

use crate::child::Peyk;
use crate::fault::{Fault, Result};
use crate::scene::Scene;
use crate::stats::{Verdict, median};

/// Largest allowed quotient.
const RATIO: f64 = 2.0;

/// Options of `bench hung`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    peyk: Peyk,
    /// Messages to the hanging endpoints.
    #[arg(long, default_value_t = 10_000)]
    hanging: u32,
    /// Hanging endpoints of the second variant.
    #[arg(long, default_value_t = 1_000)]
    endpoints: u32,
    /// Messages to the healthy endpoint, before and after.
    #[arg(long, default_value_t = 500)]
    healthy: u32,
    /// Healthy messages a second.
    #[arg(long, default_value_t = 100)]
    rate: u32,
    /// Rounds of each variant.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Exit with 1 when a bar is missed.
    #[arg(long)]
    check: bool,
}

/// Measures both variants; `false` when a bar to be checked was missed.
pub(crate) async fn run(options: Options) -> Result<bool> {
    let mut met = true;
    for endpoints in [1, options.endpoints.max(1)] {
        let mut ratios = Vec::new();
        for round in 1..=options.rounds.max(1) {
            ratios.push(self::round(&options, endpoints, round).await?);
        }
        let what = format!("healthy p99 beside {endpoints} hanging / idle, median");
        let verdict = Verdict::at_most(&what, median(&ratios), RATIO);
        println!("{verdict}");
        met &= verdict.met();
    }
    Ok(met || !options.check)
}

/// One round of one variant; the quotient.
async fn round(options: &Options, endpoints: u32, round: u32) -> Result<f64> {
    let data_dir = options.peyk.data_dir()?;
    let messages = options.hanging + 3 * options.healthy;
    let mut scene = Scene::start(&options.peyk, data_dir.path(), &[], messages).await?;
    let healthy = scene.apps("/ok", 1).await?;
    let hanging = scene.apps("/hang", endpoints).await?;
    scene.phase(&healthy, options.healthy, options.rate).await?;
    let idle = scene.phase(&healthy, options.healthy, options.rate).await?;
    let hung = scene.flood(&hanging, options.hanging).await?;
    let hanging_now = scene.board.counts().in_flight;
    if hanging_now == 0 {
        return Err(Fault::new(
            "no request is hanging at the receiver; there is nothing to measure",
        ));
    }
    let beside = scene.phase(&healthy, options.healthy, options.rate).await?;

    let name = format!("{endpoints} hanging, round {round}");
    idle.print(&format!("{name}, idle  "));
    beside.print(&format!("{name}, beside"));
    println!(
        "{name}  of {} messages {} reached a hanging receiver; hanging requests {} before the \
         healthy ones, {} after; peak {:.1} MB",
        options.hanging,
        scene.board.seen_in(hung),
        hanging_now,
        scene.board.counts().in_flight,
        scene.child.memory()?.peak_mb(),
    );
    scene.child.kill().await?;
    let ratio = beside.ends.percentile_ms(99.0) / idle.ends.percentile_ms(99.0).max(0.001);
    println!("{name}  ratio {ratio:.2}");
    Ok(ratio)
}
