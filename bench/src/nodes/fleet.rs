//! Nodes on one database, each in a process and a data directory of its own.
//!
//! Never: hand out nodes that have no fair share yet.

use std::sync::Arc;
use std::time::Duration;

use domain::ids::EndpointKey;
use domain::nodes::Partition;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::api::Api;
use crate::child::{Child, Peyk};
use crate::fault::{Fault, Result};
use crate::load::{self, Load};
use crate::psql;

/// Longest wait for fair shares.
const EVEN_MAX: Duration = Duration::from_secs(60);
/// Bytes of a payload.
const PAYLOAD_BYTES: usize = 256;

/// How many nodes there are, and what the poorest and the richest of them own.
const SHARES: &str =
    "SELECT count(*), min(owned), max(owned) FROM (SELECT count(partition.id) AS owned
     FROM peyk.node LEFT JOIN peyk.partition ON owner = node.id GROUP BY node.id) AS each";

/// In which place the owner of each partition joined, from 0; they start one after another.
const SLOTS: &str =
    "SELECT node.slot FROM peyk.partition JOIN peyk.node ON owner = node.id ORDER BY partition.id";
const ENDPOINTS: &str = "SELECT key, url FROM peyk.endpoint";

/// The nodes, and the API of the first.
pub(super) struct Fleet {
    pub(super) nodes: Vec<Node>,
    pub(super) api: Api,
}

/// One of them.
pub(super) struct Node {
    pub(super) child: Child,
    pub(super) data_dir: TempDir,
}

impl Fleet {
    /// So many on a fresh schema, each with its share.
    pub(super) async fn start(peyk: &Peyk, count: u32) -> Result<Self> {
        let peyk = peyk.with("PEYK_JWT_SECRET", &"s".repeat(48));
        peyk.clear()?;
        let mut nodes = Vec::new();
        for _ in 0..count.max(1) {
            let data_dir = peyk.scratch_dir()?;
            let child = peyk.serve(data_dir.path(), &[]).await?;
            nodes.push(Node { child, data_dir });
        }
        let first = &nodes[0];
        let token = peyk.token(first.data_dir.path()).await?;
        let api = Api::new(first.child.addr, token);
        let fleet = Self { nodes, api };
        fleet.wait_even(&peyk).await?;
        Ok(fleet)
    }

    async fn wait_even(&self, peyk: &Peyk) -> Result<()> {
        let (count, url) = (self.nodes.len(), peyk.database().unwrap_or_default());
        let fair = format!("{count}|{}|{}", 256 / count, 256_usize.div_ceil(count));
        let began = Instant::now();
        loop {
            let shares = psql::run(url, SHARES, &[])?;
            if shares == fair {
                return Ok(());
            }
            if began.elapsed() > EVEN_MAX {
                return Err(Fault::new(format!("shares are {shares} after {EVEN_MAX:?}")));
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// The applications of which each node serves the endpoint.
    pub(super) fn own(&self, peyk: &Peyk, apps: &[String]) -> Result<Vec<Arc<[String]>>> {
        let url = peyk.database().unwrap_or_default();
        let owners = psql::run(url, SLOTS, &[])?;
        let owners: Vec<usize> = owners.lines().filter_map(|slot| slot.parse().ok()).collect();
        let mut own = vec![Vec::new(); self.nodes.len()];
        for endpoint in psql::run(url, ENDPOINTS, &[])?.lines() {
            // Each is named by the end of its URL.
            let read = endpoint.split_once('|').and_then(|(key, url)| {
                let app = url.rsplit('/').next()?.parse::<usize>().ok()?;
                let place = Partition::of(EndpointKey(key.parse().ok()?)).0;
                Some((own.get_mut(*owners.get(usize::from(place))?)?, apps.get(app)?.clone()))
            });
            let (list, app) = read.ok_or_else(|| Fault::new("an endpoint is nobody's"))?;
            list.push(app);
        }
        Ok(own.into_iter().map(Into::into).collect())
    }

    /// A load on one node.
    pub(super) fn load(&self, node: &Node, apps: &Arc<[String]>, in_flight: usize) -> Load {
        Load {
            addr: node.child.addr,
            token: Some(self.api.token().to_owned()),
            apps: Arc::clone(apps),
            kind: load::sent,
            idempotency: true,
            event_ids: false,
            payload_bytes: PAYLOAD_BYTES,
            in_flight,
        }
    }

    /// CPU that all of them have used.
    pub(super) fn cpu_s(&self) -> Result<f64> {
        self.nodes.iter().map(|node| node.child.cpu_s()).sum()
    }

    /// Ends all at once.
    pub(super) async fn kill(mut self) -> Result<()> {
        for node in &mut self.nodes {
            node.child.kill().await?;
        }
        Ok(())
    }
}

impl Node {
    /// What the node had in flight when it died, by the file that it leaves behind: entries of 24
    /// bytes, empty ones zero.
    pub(super) fn left_in_flight(&self) -> Result<u64> {
        let left = std::fs::read(self.data_dir.path().join("inflight"))?;
        let used =
            left.as_chunks::<24>().0.iter().filter(|entry| entry.iter().any(|byte| *byte > 0));
        Ok(used.count() as u64)
    }
}
