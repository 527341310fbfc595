//! `bench purge`: how long acknowledgements take while retention takes a million messages away.
//!
//! Peyk makes applications and endpoints; messages with their attempts, 40 to 70 days old, are
//! written beside it. Live traffic is measured with the default retention, which leaves them alone,
//! then with one of 30 days, once messages have begun to go; in turn.
//! Never: call it a figure when they were all gone before the traffic.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use tokio::time::{Instant, sleep};

use crate::api::Session;
use crate::child::Peyk;
use crate::fault::{Fault, Result};
use crate::rows::{self, Past};
use crate::scene::{Phase, Scene};
use crate::stats::{Verdict, median};

/// The bar: acknowledgement p99 beside that without.
const WITHIN: f64 = 2.0;
/// How long ago the first and the last of the old messages were accepted.
const AGO: (Duration, Duration) = (Duration::from_hours(24 * 70), Duration::from_hours(24 * 40));
/// A retention under which all of them go.
const SHORT: [(&str, &str); 2] =
    [("PEYK_RETENTION__PAYLOAD", "30d"), ("PEYK_RETENTION__MESSAGES", "30d")];
/// So long after the traffic some must go yet.
const STILL: Duration = Duration::from_millis(500);
/// Longest wait for the first one to go.
const BEGINS_MAX: Duration = Duration::from_secs(90);

/// Options of `bench purge`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    peyk: Peyk,
    /// Old messages, with an attempt each.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u32,
    /// Endpoints they went to, each in an application of its own.
    #[arg(long, default_value_t = 100)]
    endpoints: u32,
    /// Messages a second of the live traffic.
    #[arg(long, default_value_t = 1_000)]
    rate: u32,
    /// Seconds of it in each measurement.
    #[arg(long, default_value_t = 15)]
    seconds: u32,
    /// Measurements without and with a purge, in turn.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Exit with 1 when the bar is missed.
    #[arg(long)]
    check: bool,
}

/// Makes the rows, measures, compares; `false` when a bar to be checked was missed.
pub(crate) async fn run(options: Options) -> Result<bool> {
    let data_dir = options.peyk.data_dir()?;
    fill(&options, data_dir.path()).await?;
    let mut ratios = Vec::new();
    for round in 1..=options.rounds.max(1) {
        let (alone, _) = measure(&options, data_dir.path(), &[]).await?;
        alone.print(&format!("{round} alone "));
        let (beside, gone) = measure(&options, data_dir.path(), &SHORT).await?;
        beside.print(&format!("{round} beside"));
        println!("{round}  {gone} messages went meanwhile");
        ratios.push(beside.acks.percentile_ms(99.0) / alone.acks.percentile_ms(99.0).max(0.001));
    }
    let what = "acknowledgement p99 while messages go / while none does, median";
    let verdict = Verdict::below(what, median(&ratios), WITHIN);
    println!("{verdict}");
    Ok(verdict.met() || !options.check)
}

async fn fill(options: &Options, data_dir: &Path) -> Result<()> {
    let scene = Scene::start(&options.peyk, data_dir, &[], 0).await?;
    scene.apps("/ok", options.endpoints.max(1)).await?;
    scene.child.stop().await?;
    let began = Instant::now();
    let past = Past { delivered: options.rows, ago: AGO, pending: 0 };
    let (peyk, dir) = (options.peyk.clone(), data_dir.to_owned());
    tokio::task::spawn_blocking(move || rows::write(&peyk, &dir, &past)).await??;
    println!("wrote {} old messages in {:.1} s", options.rows, began.elapsed().as_secs_f64());
    Ok(())
}

/// Live traffic to a healthy endpoint, and how many messages went until its end. With settings
/// under which some go, it begins with the first of these.
async fn measure(
    options: &Options,
    data_dir: &Path,
    settings: &[(&str, &str)],
) -> Result<(Phase, f64)> {
    let (warmup, count) = (options.rate * 3, options.rate * options.seconds);
    let mut scene = Scene::start(&options.peyk, data_dir, settings, warmup + count).await?;
    let apps = scene.apps("/ok", 1).await?;
    scene.phase(&apps, warmup, options.rate).await?;
    let mut session = scene.api.session().await?;
    let began = Instant::now();
    while !settings.is_empty() && gone(&mut session).await? == 0.0 {
        if began.elapsed() > BEGINS_MAX {
            return Err(Fault::new(format!("no message went within {BEGINS_MAX:?}")));
        }
        sleep(Duration::from_millis(50)).await;
    }
    let before = gone(&mut session).await?;
    let phase = scene.phase(&apps, count, options.rate).await?;
    let after = gone(&mut session).await?;
    sleep(STILL).await;
    if !settings.is_empty() && gone(&mut session).await? <= after {
        return Err(Fault::new("nothing is left to go: more --rows, or fewer --seconds"));
    }
    scene.child.stop().await?;
    Ok((phase, after - before))
}

/// Messages that this server has taken away.
async fn gone(session: &mut Session) -> Result<f64> {
    let (text, _) = session.text("/metrics").await?;
    Ok(metric(&text, "peyk_pruned_total{kind=\"message\"}").unwrap_or(0.0))
}

/// The value of a series.
pub(crate) fn metric(text: &str, series: &str) -> Option<f64> {
    let mut values = text.lines().filter_map(|line| line.strip_prefix(series));
    values.next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_found_by_its_whole_name() {
        let text = "# TYPE a counter\na{kind=\"x\"} 3\na{kind=\"y\"} 4.5\n";
        assert_eq!(metric(text, "a{kind=\"y\"}"), Some(4.5));
        assert_eq!(metric(text, "a"), None);
        assert_eq!(metric(text, "b"), None);
    }
}
