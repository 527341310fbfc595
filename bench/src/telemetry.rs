//! `bench telemetry`: throughput of peyk while its metrics are scraped each second and sent each
//! second to a DogStatsD agent and an OpenTelemetry collector, beside peyk of which nobody wants
//! them, in turn.
//!
//! Agent and collector are of this process: one takes datagrams and drops them, the other answers
//! 200. Counting itself cannot be turned off and is on both sides.
//! Never: count a run in which nothing was scraped or sent.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use clap::Args;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::interval;

use crate::api::Api;
use crate::board::Board;
use crate::child::Peyk;
use crate::fault::{Fault, Result};
use crate::load::{self, Load};
use crate::pair::{Course, Run, measure, print};
use crate::receiver;
use crate::stats::{Verdict, median};

/// Smallest ratio of both throughputs.
const WITHIN: f64 = 0.95;
/// How often metrics are scraped and sent.
const EVERY: Duration = Duration::from_secs(1);
/// Longest wait for a run.
const GIVE_UP: Duration = Duration::from_secs(120);
/// Bytes of a payload.
const PAYLOAD_BYTES: usize = 256;

/// Options of `bench telemetry`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    peyk: Peyk,
    /// Messages of a run.
    #[arg(long, default_value_t = 60_000)]
    messages: u32,
    /// Messages before the clock starts.
    #[arg(long, default_value_t = 5_000)]
    warmup: u32,
    /// Pairs of runs.
    #[arg(long, default_value_t = 5)]
    pairs: u32,
    /// Posts in flight.
    #[arg(long, default_value_t = 64)]
    in_flight: usize,
    /// Exit with 1 when the bar is missed.
    #[arg(long)]
    check: bool,
}

/// Who wants metrics, and how often they got some.
struct Wants {
    statsd: SocketAddr,
    otlp: SocketAddr,
    got: Arc<Got>,
    collector: Arc<Board>,
    tasks: JoinSet<()>,
}

#[derive(Default)]
struct Got {
    datagrams: AtomicU64,
    scrapes: AtomicU64,
}

/// Measures pairs; `false` when a bar to be checked was missed.
pub(crate) async fn run(options: Options) -> Result<bool> {
    let mut ratios = Vec::new();
    for pair in 1..=options.pairs.max(1) {
        // Each is first in turn, so that a machine that warms up or fills favours neither.
        let first_told = pair.is_multiple_of(2);
        let first = one(&options, first_told).await?;
        let second = one(&options, !first_told).await?;
        let (quiet, told) = if first_told { (second, first) } else { (first, second) };
        print(pair, "quiet", &quiet);
        print(pair, "told", &told);
        let ratio = told.deliveries_per_s / quiet.deliveries_per_s;
        println!("pair {pair}  told / quiet  {ratio:.3}");
        ratios.push(ratio);
    }
    let what = "median throughput while metrics are scraped and sent / while not";
    let verdict = Verdict::at_least(what, median(&ratios), WITHIN);
    println!("{verdict}");
    Ok(verdict.met() || !options.check)
}

async fn one(options: &Options, told: bool) -> Result<Run> {
    let board = Arc::new(Board::new(options.warmup + options.messages));
    let receiver = receiver::start(([127, 0, 0, 1], 0).into(), Arc::clone(&board)).await?;
    let data_dir = options.peyk.data_dir()?;
    let mut wants = if told { Some(Wants::start().await?) } else { None };
    let settings = wants.as_ref().map_or_else(Vec::new, Wants::settings);
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let child = options.peyk.serve(data_dir.path(), &settings).await?;
    let api = Api::new(child.addr, options.peyk.token(data_dir.path()).await?);
    if let Some(wants) = &mut wants {
        wants.scrape(&api);
    }
    let apps = api.create_apps(vec![format!("http://{receiver}/ok/0")]).await?;
    let load = Load {
        addr: child.addr,
        token: Some(api.token().to_owned()),
        apps,
        kind: load::sent,
        idempotency: true,
        event_ids: false,
        payload_bytes: PAYLOAD_BYTES,
        in_flight: options.in_flight,
    };
    let course = Course {
        warmup: 0..options.warmup,
        seqs: options.warmup..options.warmup + options.messages,
        give_up: GIVE_UP,
    };
    let run = measure(&course, &load, &board, child).await?;
    wants.as_ref().map_or(Ok(()), Wants::check)?;
    Ok(run)
}

impl Wants {
    async fn start() -> Result<Self> {
        let collector = Arc::new(Board::new(0));
        let otlp = receiver::start(([127, 0, 0, 1], 0).into(), Arc::clone(&collector)).await?;
        let socket = UdpSocket::bind(("127.0.0.1", 0)).await?;
        let (statsd, got) = (socket.local_addr()?, Arc::new(Got::default()));
        let mut tasks = JoinSet::new();
        let counted = Arc::clone(&got);
        tasks.spawn(async move {
            let mut datagram = vec![0; 65_536];
            while socket.recv(&mut datagram).await.is_ok() {
                counted.datagrams.fetch_add(1, Relaxed);
            }
        });
        Ok(Self { statsd, otlp, got, collector, tasks })
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("PEYK_TELEMETRY__EVERY", format!("{}s", EVERY.as_secs())),
            ("PEYK_TELEMETRY__DOGSTATSD__ADDRESS", self.statsd.to_string()),
            ("PEYK_TELEMETRY__OTLP__URL", format!("http://{}", self.otlp)),
        ]
    }

    fn scrape(&mut self, api: &Api) {
        let (api, got) = (api.clone(), Arc::clone(&self.got));
        self.tasks.spawn(async move {
            let Ok(mut session) = api.session().await else { return };
            let mut each = interval(EVERY);
            loop {
                each.tick().await;
                // The server ends with the run.
                let Ok(_text) = session.text("/metrics").await else { return };
                got.scrapes.fetch_add(1, Relaxed);
            }
        });
    }

    fn check(&self) -> Result<()> {
        let got = [
            ("scraped", self.got.scrapes.load(Relaxed)),
            ("sent to the agent", self.got.datagrams.load(Relaxed)),
            ("sent to the collector", self.collector.counts().requests),
        ];
        println!("{}", got.map(|(what, times)| format!("{what} {times} times")).join(", "));
        match got.iter().find(|(_, times)| *times == 0) {
            None => Ok(()),
            Some((what, _)) => Err(Fault::new(format!("nothing was {what} during a run"))),
        }
    }
}
