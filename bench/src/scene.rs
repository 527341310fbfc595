//! What the latency figures share: a running peyk, a receiver, message numbers, and one paced phase
//! of load.
//!
//! In: settings and a data directory. Out: acknowledgement and end-to-end times of a phase.
//! Never: reuse a message number; each phase takes the next ones.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::api::Api;
use crate::board::Board;
use crate::child::{Child, Peyk};
use crate::fault::Result;
use crate::load::{self, Load};
use crate::machine::CpuUsed;
use crate::pair::wait_delivered;
use crate::receiver;
use crate::stats::Times;

/// Bytes of a payload in the latency figures.
const PAYLOAD_BYTES: usize = 256;

/// Posts in flight at most.
const IN_FLIGHT: usize = 64;

/// Longest wait for the last deliveries of a phase.
const GIVE_UP: Duration = Duration::from_secs(120);

/// A running peyk and a receiver.
pub(crate) struct Scene {
    /// The server.
    pub(crate) child: Child,
    /// Its API.
    pub(crate) api: Api,
    /// What the receiver saw.
    pub(crate) board: Arc<Board>,
    receiver: SocketAddr,
    next_seq: u32,
}

/// The times of one paced phase.
pub(crate) struct Phase {
    /// From release to the end of the 202.
    pub(crate) acks: Times,
    /// From release to arrival at the receiver.
    pub(crate) ends: Times,
    /// How late the generator itself was.
    pub(crate) lateness: Times,
    /// Answers 429 and 503.
    pub(crate) refused: u64,
    /// Who used the CPU.
    pub(crate) cpu: CpuUsed,
    /// Seconds of the phase.
    pub(crate) took_s: f64,
}

impl Scene {
    /// Starts peyk on `data_dir` with settings of this measurement, and a receiver for `messages`
    /// message numbers.
    pub(crate) async fn start(
        peyk: &Peyk,
        data_dir: &Path,
        settings: &[(&str, &str)],
        messages: u32,
    ) -> Result<Self> {
        let board = Arc::new(Board::new(messages));
        let receiver = receiver::start(([127, 0, 0, 1], 0).into(), Arc::clone(&board)).await?;
        let child = peyk.serve(data_dir, settings).await?;
        let api = Api::new(child.addr, peyk.token(data_dir).await?);
        Ok(Self { child, api, board, receiver, next_seq: 0 })
    }

    /// Creates `count` applications whose endpoint is at `path` of the receiver.
    pub(crate) async fn apps(&self, path: &str, count: u32) -> Result<Arc<[String]>> {
        let urls = (0..count).map(|app| self.url(&format!("{path}/{app}"))).collect();
        self.api.create_apps(urls).await
    }

    /// The address of the receiver, with a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.receiver)
    }

    /// The next `count` message numbers.
    pub(crate) const fn take(&mut self, count: u32) -> Range<u32> {
        let start = self.next_seq;
        self.next_seq += count;
        start..self.next_seq
    }

    /// A load on `apps`.
    pub(crate) fn load(&self, apps: &Arc<[String]>) -> Load {
        Load {
            addr: self.child.addr,
            token: Some(self.api.token().to_owned()),
            apps: Arc::clone(apps),
            kind: load::sent,
            idempotency: true,
            event_ids: false,
            payload_bytes: PAYLOAD_BYTES,
            in_flight: IN_FLIGHT,
        }
    }

    /// Posts `count` messages at `rate` a second and waits until all are delivered.
    pub(crate) async fn phase(
        &mut self,
        apps: &Arc<[String]>,
        count: u32,
        rate: u32,
    ) -> Result<Phase> {
        let seqs = self.take(count);
        let mark = self.child.cpu()?;
        let report = load::paced(&self.load(apps), seqs.clone(), rate).await?;
        wait_delivered(&self.board, seqs.clone(), GIVE_UP).await?;
        Ok(Phase {
            acks: report.acks,
            ends: self.board.latencies(seqs),
            lateness: report.lateness,
            refused: report.refused,
            cpu: mark.until(self.child.cpu()?),
            took_s: report.took.as_secs_f64(),
        })
    }

    /// Posts `count` messages as fast as they are taken, and waits for nothing.
    pub(crate) async fn flood(&mut self, apps: &Arc<[String]>, count: u32) -> Result<Range<u32>> {
        let load = self.load(apps);
        self.flood_as(&load, count).await
    }

    /// The same with a load of its own.
    pub(crate) async fn flood_as(&mut self, load: &Load, count: u32) -> Result<Range<u32>> {
        let seqs = self.take(count);
        load::closed(load, seqs.clone()).await?;
        Ok(seqs)
    }
}

impl Phase {
    /// Prints it under a name.
    pub(crate) fn print(&self, name: &str) {
        println!("{name}  acknowledged  {}", self.acks);
        println!("{name}  end to end    {}", self.ends);
        println!(
            "{name}  generator late p99 {:.2} ms; refused {}; CPU: server {:.2} cores, \
             load and receiver {:.2}, others {:.2}",
            self.lateness.percentile_ms(99.0),
            self.refused,
            self.cpu.server_s / self.took_s,
            self.cpu.bench_s / self.took_s,
            self.cpu.others_cores,
        );
    }
}
