//! `bench nodes`: three nodes on one PostgreSQL database beside one on the same cores, and what it
//! takes to lose one of three.
//!
//! Throughput: one node and three in turn, each on a fresh schema, the same posts in flight in all,
//! spread over the nodes. With `--kill`, rounds in which one of three is killed under load; see
//! `kill`.
//! Never: measure before each node has its share.

mod fleet;
mod kill;
mod options;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::board::Board;
use crate::fault::{Fault, Result};
use crate::load;
use crate::machine;
use crate::pair::wait_delivered;
use crate::receiver;
use crate::stats::{Verdict, median};
use fleet::Fleet;
pub(crate) use options::Options;

/// Three nodes deliver no less than one.
const RATIO: f64 = 1.0;
/// Longest wait for a run.
const GIVE_UP: Duration = Duration::from_secs(180);

/// What a run with some nodes came to.
struct Run {
    deliveries_per_s: f64,
    line: String,
}

/// Measures; `false` when a bar to be checked was missed.
pub(crate) async fn run(options: Options) -> Result<bool> {
    if options.peyk.database().is_none() {
        return Err(Fault::new("several nodes need a PostgreSQL database: --database-url"));
    }
    let met = if options.kill { kill::run(&options).await? } else { beside_one(&options).await? };
    Ok(met || !options.check)
}

async fn beside_one(options: &Options) -> Result<bool> {
    let (mut ratios, name) = (Vec::new(), format!("{} nodes", options.nodes));
    for pair in 1..=options.pairs.max(1) {
        // Each is first in turn, so that a machine that warms up or fills favours neither.
        let first_many = pair.is_multiple_of(2);
        let first = throughput(options, if first_many { options.nodes } else { 1 }).await?;
        let second = throughput(options, if first_many { 1 } else { options.nodes }).await?;
        let (one, many) = if first_many { (second, first) } else { (first, second) };
        let ratio = many.deliveries_per_s / one.deliveries_per_s;
        println!("pair {pair}  one node  {}\npair {pair}  {name}   {}", one.line, many.line);
        println!("pair {pair}  ratio  {ratio:.3}");
        ratios.push(ratio);
    }
    let what = format!("median of {name} / one node");
    let verdict = Verdict::at_least(&what, median(&ratios), RATIO);
    println!("{verdict}");
    Ok(verdict.met())
}

/// One run with so many nodes.
async fn throughput(options: &Options, nodes: u32) -> Result<Run> {
    let board = Arc::new(Board::new(options.warmup + options.messages));
    let receiver = receiver::start(([127, 0, 0, 1], 0).into(), Arc::clone(&board)).await?;
    let fleet = Fleet::start(&options.peyk, nodes).await?;
    let urls = (0..options.apps.max(1)).map(|app| format!("http://{receiver}/ok/{app}"));
    let apps = fleet.api.create_apps(urls.collect()).await?;
    let share = (options.in_flight / fleet.nodes.len()).max(1);
    let apps = match options.aimed {
        true => fleet.own(&options.peyk, &apps)?,
        false => vec![apps; fleet.nodes.len()],
    };
    spread(&fleet, &apps, (0..options.warmup, share)).await?;
    wait_delivered(&board, 0..options.warmup, GIVE_UP).await?;
    let seqs = options.warmup..options.warmup + options.messages;
    let (servers_s, busy_s, bench_s) = (fleet.cpu_s()?, machine::busy_s()?, own_cpu_s()?);
    let began_us = machine::now_us();
    let refused = spread(&fleet, &apps, (seqs.clone(), share)).await?;
    wait_delivered(&board, seqs.clone(), GIVE_UP).await?;
    let took_us = board.last_done_us(seqs).saturating_sub(began_us);
    let messages = f64::from(options.messages);
    let each_us = |used_s: f64| used_s * 1e6 / messages;
    let (servers_s, bench_s) = (fleet.cpu_s()? - servers_s, own_cpu_s()? - bench_s);
    let rest_s = machine::busy_s()? - busy_s - servers_s - bench_s;
    let deliveries_per_s = messages * 1e6 / took_us as f64;
    let line = format!(
        "{deliveries_per_s:>7.0} deliveries/s  CPU a message: servers {:.1} us, load and receiver \
         {:.1} us, database and others {:.1} us; refused {refused}  repeated {}",
        each_us(servers_s),
        each_us(bench_s),
        each_us(rest_s),
        board.counts().repeats,
    );
    fleet.kill().await?;
    Ok(Run { deliveries_per_s, line })
}

fn own_cpu_s() -> Result<f64> {
    machine::cpu_s(std::process::id())
}

/// Posts all, an equal part to each node and its applications, as fast as they are taken; how many
/// were refused.
async fn spread(
    fleet: &Fleet,
    apps: &[Arc<[String]>],
    (seqs, in_flight): (std::ops::Range<u32>, usize),
) -> Result<u64> {
    let mut loads = JoinSet::new();
    let nodes = u32::try_from(fleet.nodes.len()).unwrap_or(1);
    let part = u32::try_from(seqs.len()).unwrap_or(u32::MAX).div_ceil(nodes);
    let mut begin = seqs.start;
    for (node, apps) in fleet.nodes.iter().zip(apps) {
        let end = seqs.end.min(begin + part);
        let load = fleet.load(node, apps, in_flight);
        loads.spawn(async move { load::closed(&load, begin..end).await });
        begin = end;
    }
    let mut refused = 0;
    while let Some(report) = loads.join_next().await {
        refused += report??.refused;
    }
    Ok(refused)
}
