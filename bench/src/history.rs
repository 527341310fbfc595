//! `bench history`: throughput and cost of messages with ten million deliveries stored and a
//! million that wait, beside a new installation, in turn.
//!
//! Peyk makes applications and endpoints; the rows of the past are written beside it. In PostgreSQL
//! both installations are schemas of one database that take turns under the name `peyk`. Live
//! messages go to the very endpoints that have the history.
//! Never: measure the first minute after the rows were written, or with what waits falling due.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::time::Instant;

use crate::api::Api;
use crate::board::Board;
use crate::child::Peyk;
use crate::fault::Result;
use crate::load::{self, Load};
use crate::pair::{Course, Run, measure, print};
use crate::psql;
use crate::receiver;
use crate::rows::{self, Past};
use crate::stats::{Verdict, median};

/// Bars: throughput and CPU a message beside those of a new installation.
const THROUGHPUT: f64 = 0.8;
const COST: f64 = 1.2;

/// How long ago the first and the last of what was delivered were accepted.
const AGO: (Duration, Duration) = (Duration::from_hours(24 * 30), Duration::from_hours(24));
/// Longest wait for a run.
const GIVE_UP: Duration = Duration::from_secs(180);
/// Bytes of a payload.
const PAYLOAD_BYTES: usize = 256;

/// Options of `bench history`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    peyk: Peyk,
    /// Deliveries that ended well.
    #[arg(long, default_value_t = 10_000_000)]
    rows: u32,
    /// Deliveries that wait for their next send.
    #[arg(long, default_value_t = 1_000_000)]
    pending: u32,
    /// Endpoints, each in an application of its own.
    #[arg(long, default_value_t = 1_000)]
    endpoints: u32,
    /// Messages of a run.
    #[arg(long, default_value_t = 30_000)]
    messages: u32,
    /// Messages before the clock starts.
    #[arg(long, default_value_t = 5_000)]
    warmup: u32,
    /// Runs on both, in turn.
    #[arg(long, default_value_t = 3)]
    pairs: u32,
    /// Posts in flight.
    #[arg(long, default_value_t = 64)]
    in_flight: usize,
    /// Use, or make and keep, both installations in this directory, and in the database if there
    /// is one.
    #[arg(long)]
    state: Option<PathBuf>,
    /// Exit with 1 when a bar is missed.
    #[arg(long)]
    check: bool,
}

/// One of both installations.
struct Installation {
    name: &'static str,
    data_dir: PathBuf,
}

/// Both of them, and whoever receives.
struct Field {
    options: Options,
    board: Arc<Board>,
    receiver: String,
    next_seq: u32,
}

/// Makes both, measures, compares; `false` when a bar to be checked was missed.
pub(crate) async fn run(options: Options) -> Result<bool> {
    let kept = options.state.as_ref().is_some_and(|state| state.exists());
    let scratch = if kept { None } else { Some(options.peyk.data_dir()?) };
    let dir = match (&options.state, &scratch) {
        (Some(state), _) => state.clone(),
        (None, Some(scratch)) => scratch.path().to_owned(),
        (None, None) => std::env::temp_dir(),
    };
    let (full, empty) = (Installation::at(&dir, "full"), Installation::at(&dir, "empty"));
    let runs = 2 * options.pairs.max(1) * (options.warmup + options.messages);
    let board = Arc::new(Board::new(runs));
    let addr = receiver::start(([127, 0, 0, 1], 0).into(), Arc::clone(&board)).await?;
    let receiver = format!("http://{addr}/ok");
    let mut field = Field { options, board, receiver, next_seq: 0 };
    if !kept {
        for installation in [&full, &empty] {
            field.make(installation).await?;
        }
        field.fill(&full).await?;
    }
    let mut pairs = Vec::new();
    for pair in 1..=field.options.pairs.max(1) {
        let full_first = pair.is_multiple_of(2);
        let first = field.measure(if full_first { &full } else { &empty }).await?;
        let second = field.measure(if full_first { &empty } else { &full }).await?;
        let (plain, behind) = if full_first { (second, first) } else { (first, second) };
        print(pair, empty.name, &plain);
        print(pair, full.name, &behind);
        pairs.push((plain, behind));
    }
    Ok(compare(&pairs) || !field.options.check)
}

impl Installation {
    fn at(dir: &Path, name: &'static str) -> Self {
        Self { name, data_dir: dir.join(name) }
    }

    /// Where its schema is kept while the other one is served.
    fn schema(&self) -> String {
        format!("peyk_bench_{}", self.name)
    }
}

impl Field {
    /// Makes an installation with its applications and endpoints.
    async fn make(&self, installation: &Installation) -> Result<()> {
        std::fs::create_dir_all(&installation.data_dir)?;
        self.options.peyk.clear()?;
        let child = self.options.peyk.serve(&installation.data_dir, &[]).await?;
        let api = Api::new(child.addr, self.options.peyk.token(&installation.data_dir).await?);
        let urls = vec![self.receiver.clone(); self.options.endpoints.max(1) as usize];
        api.create_apps(urls).await?;
        child.stop().await?;
        self.put_away(installation)
    }

    /// Writes the rows of the past.
    async fn fill(&self, installation: &Installation) -> Result<()> {
        let began = Instant::now();
        let past = Past { delivered: self.options.rows, ago: AGO, pending: self.options.pending };
        self.take_out(installation)?;
        let (peyk, data_dir) = (self.options.peyk.clone(), installation.data_dir.clone());
        tokio::task::spawn_blocking(move || rows::write(&peyk, &data_dir, &past)).await??;
        self.put_away(installation)?;
        println!(
            "wrote {} delivered and {} waiting over {} endpoints in {:.1} s",
            past.delivered,
            past.pending,
            self.options.endpoints,
            began.elapsed().as_secs_f64(),
        );
        Ok(())
    }

    /// One run on an installation.
    async fn measure(&mut self, installation: &Installation) -> Result<Run> {
        self.take_out(installation)?;
        let child = self.options.peyk.serve(&installation.data_dir, &[]).await?;
        println!(
            "{:<5}  listening after {:.2} s, resident {:.1} MB",
            installation.name,
            child.start_took.as_secs_f64(),
            child.memory()?.rss_mb(),
        );
        let api = Api::new(child.addr, self.options.peyk.token(&installation.data_dir).await?);
        let apps = self.apps(&api).await?;
        let load = Load {
            addr: child.addr,
            token: Some(api.token().to_owned()),
            apps,
            kind: load::sent,
            idempotency: true,
            event_ids: false,
            payload_bytes: PAYLOAD_BYTES,
            in_flight: self.options.in_flight,
        };
        let begin = self.next_seq;
        let warm = begin + self.options.warmup;
        self.next_seq = warm + self.options.messages;
        let course = Course { warmup: begin..warm, seqs: warm..self.next_seq, give_up: GIVE_UP };
        let run = measure(&course, &load, &self.board, child).await?;
        self.put_away(installation)?;
        Ok(run)
    }

    /// All applications, whose endpoints send to the receiver of this process.
    async fn apps(&self, api: &Api) -> Result<Arc<[String]>> {
        let mut session = api.session().await?;
        let (mut apps, mut iterator) = (Vec::new(), String::new());
        loop {
            let page = session.get(&format!("/api/v1/app?limit=250{iterator}")).await?;
            let rows = page["data"].as_array().map_or(&[][..], Vec::as_slice);
            apps.extend(rows.iter().filter_map(|app| app["id"].as_str()).map(str::to_owned));
            if page["done"] == true {
                break;
            }
            iterator = format!("&iterator={}", page["iterator"].as_str().unwrap_or_default());
        }
        for app in &apps {
            let path = format!("/api/v1/app/{app}/endpoint");
            let endpoint = session.get(&path).await?["data"][0].take();
            if endpoint["url"] != *self.receiver {
                let id = endpoint["id"].as_str().unwrap_or_default();
                session.patch(&format!("{path}/{id}"), &json!({"url": self.receiver})).await?;
            }
        }
        Ok(apps.into())
    }

    /// The installation is the one that peyk finds in the database.
    fn take_out(&self, installation: &Installation) -> Result<()> {
        self.rename(&installation.schema(), "peyk")
    }

    /// It is not, any more.
    fn put_away(&self, installation: &Installation) -> Result<()> {
        self.rename("peyk", &installation.schema())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let Some(url) = self.options.peyk.database() else { return Ok(()) };
        let sql = format!("DROP SCHEMA IF EXISTS {to} CASCADE; ALTER SCHEMA {from} RENAME TO {to}");
        psql::run(url, &sql, &[]).map(drop)
    }
}

/// Median quotients of throughput and cost.
fn compare(pairs: &[(Run, Run)]) -> bool {
    let quotient = |of: fn(&Run) -> f64| {
        let each = pairs.iter().map(|(plain, behind)| of(behind) / of(plain));
        median(&each.collect::<Vec<_>>())
    };
    let throughput = quotient(|run| run.deliveries_per_s);
    let cost = quotient(Run::cost_us);
    let verdicts = [
        Verdict::at_least("throughput / that of a new installation", throughput, THROUGHPUT),
        Verdict::at_most("CPU a message, server and database / that of a new one", cost, COST),
    ];
    for verdict in &verdicts {
        println!("{verdict}");
    }
    verdicts.iter().all(Verdict::met)
}
