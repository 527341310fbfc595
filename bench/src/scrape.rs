//! `bench scrape`: what a scrape of `/metrics` costs with very many endpoints, each of which has a
//! delivery that waits.
//!
//! The state is made by peyk itself: one message to each endpoint of a receiver that answers 500,
//! with one retry due hours later. Then `/metrics` is asked again and again, seconds apart, so that
//! nothing is fresh.
//! Never: count the first scrapes out; whoever scrapes meets them too.

use std::time::Duration;

use clap::Args;
use tokio::time::sleep;

use crate::child::Peyk;
use crate::fault::Result;
use crate::pending::{FILL, wait_seen};
use crate::scene::Scene;
use crate::stats::{Verdict, median};

/// The bar.
const SCRAPE_MS: f64 = 50.0;
/// Between two scrapes: what was read a second ago is not read again.
const APART: Duration = Duration::from_millis(1_100);

/// Options of `bench scrape`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    peyk: Peyk,
    /// Endpoints, each in an application of its own.
    #[arg(long, default_value_t = 100_000)]
    endpoints: u32,
    /// Scrapes.
    #[arg(long, default_value_t = 30)]
    scrapes: u32,
    /// Exit with 1 when the bar is missed.
    #[arg(long)]
    check: bool,
}

/// Makes the state and measures; `false` when a bar to be checked was missed.
pub(crate) async fn run(options: Options) -> Result<bool> {
    let data_dir = options.peyk.data_dir()?;
    let endpoints = options.endpoints.max(1);
    let mut scene = Scene::start(&options.peyk, data_dir.path(), &FILL, endpoints).await?;
    let apps = scene.apps("/status/500", endpoints).await?;
    scene.flood(&apps, endpoints).await?;
    wait_seen(&scene, endpoints, 0).await?;
    let mut session = scene.api.session().await?;
    let (mut times, mut series) = (Vec::new(), Vec::new());
    for _ in 0..options.scrapes.max(1) {
        sleep(APART).await;
        let (text, took_us) = session.text("/metrics").await?;
        times.push(f64::from(took_us) / 1e3);
        series.push(text.lines().filter(|line| !line.starts_with('#')).count());
    }
    let longest = times.iter().copied().fold(0.0, f64::max);
    let (least, most) = (series.iter().min().copied(), series.iter().max().copied());
    println!(
        "{endpoints} endpoints with work: {} to {} series; scrape median {:.1} ms, at most {longest:.1} ms",
        least.unwrap_or(0),
        most.unwrap_or(0),
        median(&times),
    );
    scene.child.stop().await?;
    let verdict = Verdict::below("longest scrape, ms", longest, SCRAPE_MS);
    println!("{verdict}");
    Ok(verdict.met() || !options.check)
}
