//! The load: posts over keep-alive connections, as many in flight as there are connections.
//!
//! `closed`: each connection posts again as soon as its answer is in. `paced`: posts are released
//! at a fixed rate and wait for a free connection; their time runs from the release, so that a slow
//! server cannot slow its own clock.
//! Never: leave a refused post out: 429 and 503 are counted and sent again, any other answer ends
//! the measurement.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::conn::Conn;
use crate::fault::{Fault, Result};
use crate::machine::{now_us, run_id};
use crate::payload::{self, Said};
use crate::stats::Times;

/// Pause before a refused post is sent again.
const REFUSED_PAUSE: Duration = Duration::from_millis(20);

/// Where posts go and what they carry.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// The server.
    pub(crate) addr: SocketAddr,
    /// Bearer token, if the server wants one.
    pub(crate) token: Option<String>,
    /// Applications posted to in turn.
    pub(crate) apps: Arc<[String]>,
    /// Writes the event type of a message, and what else it is found by, as members of an object.
    pub(crate) kind: fn(u32, &mut String),
    /// An idempotency key of its own on every post.
    pub(crate) idempotency: bool,
    /// An event id of its own in every post.
    pub(crate) event_ids: bool,
    /// Bytes of a payload.
    pub(crate) payload_bytes: usize,
    /// Posts in flight.
    pub(crate) in_flight: usize,
}

/// What became of the posts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// From release to the end of the 202.
    pub(crate) acks: Times,
    /// How late posts were released, `paced` only.
    pub(crate) lateness: Times,
    /// Answers 429 and 503.
    pub(crate) refused: u64,
    /// When the first was sent.
    pub(crate) began_us: u64,
    /// From then to the last answer.
    pub(crate) took: Duration,
}

/// Builds requests: constant pieces with two numbers between them.
pub(crate) struct Writer {
    load: Load,
    run: u64,
    before_key: String,
    kind: String,
    payload: Vec<u8>,
    request: Vec<u8>,
}

/// The kind of most measurements: one event type, nothing else.
pub(crate) fn sent(_: u32, members: &mut String) {
    members.push_str("\"eventType\":\"bench.sent\",");
}

impl Writer {
    /// For one connection; `run` tells the idempotency keys of this run from others.
    pub(crate) fn new(load: &Load, run: u64) -> Result<Self> {
        if load.apps.is_empty() {
            return Err(Fault::new("there is no application to post to"));
        }
        let mut before_key = format!("host: {}\r\ncontent-type: application/json\r\n", load.addr);
        if let Some(token) = &load.token {
            before_key.push_str(&format!("authorization: Bearer {token}\r\n"));
        }
        let payload = payload::blank(load.payload_bytes)?;
        Ok(Self {
            load: load.clone(),
            run,
            before_key,
            kind: String::new(),
            payload,
            request: Vec::new(),
        })
    }

    /// The request that posts message `seq`.
    pub(crate) fn request(&mut self, said: Said) -> &[u8] {
        payload::write(&mut self.payload, said);
        let app = &self.load.apps[said.seq as usize % self.load.apps.len()];
        let mut number = [0; 10];
        payload::digits(&mut number, u64::from(said.seq));
        let event_id = match self.load.event_ids {
            true => format!("\"eventId\":\"evt-{:016x}-{:010}\",", self.run, said.seq),
            false => String::new(),
        };
        self.kind.clear();
        (self.load.kind)(said.seq, &mut self.kind);
        let after = "\"payload\":";
        let len = 1 + self.kind.len() + event_id.len() + after.len() + self.payload.len() + 1;

        let out = &mut self.request;
        out.clear();
        for piece in
            ["POST /api/v1/app/", app, "/msg?with_content=false HTTP/1.1\r\n", &self.before_key]
        {
            out.extend_from_slice(piece.as_bytes());
        }
        if self.load.idempotency {
            out.extend_from_slice(b"idempotency-key: bench-");
            out.extend_from_slice(&number);
            out.extend_from_slice(format!("-{:016x}\r\n", self.run).as_bytes());
        }
        out.extend_from_slice(format!("content-length: {len}\r\n\r\n").as_bytes());
        for piece in ["{", &self.kind, &event_id, after] {
            out.extend_from_slice(piece.as_bytes());
        }
        out.extend_from_slice(&self.payload);
        out.push(b'}');
        &self.request
    }
}

/// Posts all of `seqs`, each connection as fast as it is answered.
pub(crate) async fn closed(load: &Load, seqs: Range<u32>) -> Result<Report> {
    let next = Arc::new(AtomicU32::new(seqs.start));
    let shared = Shared::new();
    let mut workers = JoinSet::new();
    for _ in 0..load.in_flight {
        let (load, next, shared) = (load.clone(), Arc::clone(&next), Arc::clone(&shared));
        workers.spawn(async move {
            let mut poster = Poster::open(&load, shared).await?;
            loop {
                let seq = next.fetch_add(1, Relaxed);
                if seq >= seqs.end {
                    return Ok(poster.acks);
                }
                poster.post(Said { seq, at_us: now_us() }).await?;
            }
        });
    }
    shared.report(workers).await
}

/// Posts all of `seqs` at `rate` a second.
pub(crate) async fn paced(load: &Load, seqs: Range<u32>, rate: u32) -> Result<Report> {
    let shared = Shared::new();
    let released = Arc::new(Released { queue: Mutex::default(), ready: Semaphore::new(0) });
    let mut workers = JoinSet::new();
    for _ in 0..load.in_flight {
        let (load, released, shared) = (load.clone(), Arc::clone(&released), Arc::clone(&shared));
        workers.spawn(async move {
            let mut poster = Poster::open(&load, shared).await?;
            while let Some(said) = released.next().await {
                poster.post(said).await?;
            }
            Ok(poster.acks)
        });
    }
    let lateness = release(&released, seqs, rate, &shared).await;
    released.ready.add_permits(load.in_flight);
    let mut report = shared.report(workers).await?;
    report.lateness = Times::new(lateness);
    Ok(report)
}

/// Releases posts when their time has come; answers how late each was.
async fn release(released: &Released, seqs: Range<u32>, rate: u32, shared: &Shared) -> Vec<u32> {
    let mut lateness = Vec::with_capacity(seqs.len());
    let mut tick = interval(Duration::from_millis(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let begin = now_us();
    for seq in seqs.clone() {
        let due = begin + u64::from(seq - seqs.start) * 1_000_000 / u64::from(rate.max(1));
        while now_us() < due {
            tick.tick().await;
        }
        if shared.failed.load(Relaxed) {
            break;
        }
        let at_us = now_us();
        lateness.push(u32::try_from(at_us - due).unwrap_or(u32::MAX));
        released
            .queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(Said { seq, at_us });
        released.ready.add_permits(1);
    }
    lateness
}

/// Posts that wait for a connection.
struct Released {
    queue: Mutex<VecDeque<Said>>,
    ready: Semaphore,
}

impl Released {
    /// The next one; `None` after the last.
    async fn next(&self) -> Option<Said> {
        self.ready.acquire().await.ok()?.forget();
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// What the connections of one load share.
struct Shared {
    run: u64,
    refused: AtomicU64,
    failed: AtomicBool,
    began: Instant,
    began_us: u64,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            run: run_id(),
            refused: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            began: Instant::now(),
            began_us: now_us(),
        })
    }

    /// Waits for all connections; the first fault is the fault of the load.
    async fn report(&self, mut workers: JoinSet<Result<Vec<u32>>>) -> Result<Report> {
        let mut acks = Vec::new();
        while let Some(ended) = workers.join_next().await {
            acks.append(&mut ended??);
        }
        Ok(Report {
            acks: Times::new(acks),
            lateness: Times::default(),
            refused: self.refused.load(Relaxed),
            began_us: self.began_us,
            took: self.began.elapsed(),
        })
    }
}

/// One connection with its request writer.
struct Poster {
    conn: Conn,
    writer: Writer,
    shared: Arc<Shared>,
    acks: Vec<u32>,
}

impl Poster {
    async fn open(load: &Load, shared: Arc<Shared>) -> Result<Self> {
        let conn = Conn::open(load.addr).await?;
        let writer = Writer::new(load, shared.run)?;
        Ok(Self { conn, writer, shared, acks: Vec::new() })
    }

    async fn post(&mut self, said: Said) -> Result<()> {
        let posted = self.post_until_taken(said).await;
        if posted.is_err() {
            self.shared.failed.store(true, Relaxed);
        }
        posted
    }

    async fn post_until_taken(&mut self, said: Said) -> Result<()> {
        loop {
            let answer = self.conn.call(self.writer.request(said)).await?;
            match answer.status {
                _ if answer.is_ok() => break,
                429 | 503 => {
                    self.shared.refused.fetch_add(1, Relaxed);
                    sleep(REFUSED_PAUSE).await;
                }
                _ => return Err(Fault::new(format!("a post was answered with {}", answer.text()))),
            }
        }
        let took = now_us().saturating_sub(said.at_us);
        self.acks.push(u32::try_from(took).unwrap_or(u32::MAX));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire;

    fn load(addr: SocketAddr) -> Load {
        Load {
            addr,
            token: Some("t".to_owned()),
            apps: ["a".to_owned(), "b".to_owned()].into(),
            kind: sent,
            idempotency: true,
            event_ids: true,
            payload_bytes: 100,
            in_flight: 4,
        }
    }

    #[test]
    fn a_request_is_one_that_a_server_reads() {
        let load = load(([127, 0, 0, 1], 1).into());
        let mut writer = Writer::new(&load, 1).unwrap();
        let said = Said { seq: 3, at_us: 5 };
        let request = writer.request(said).to_vec();
        let head = wire::request_head(&request).unwrap().unwrap();
        assert_eq!(head.path, b"/api/v1/app/b/msg?with_content=false");
        assert_eq!(head.len + head.body_len, request.len());
        let body: serde_json::Value = serde_json::from_slice(&request[head.len..]).unwrap();
        assert_eq!(body["payload"]["seq"], "0000000003");
        assert_eq!(body["eventId"], "evt-0000000000000001-0000000003");
        let text = String::from_utf8_lossy(&request);
        assert!(text.contains("\r\nidempotency-key: bench-0000000003-0000000000000001\r\n"));
        assert!(text.contains("\r\nauthorization: Bearer t\r\n"));
    }

    #[tokio::test]
    async fn both_loads_post_everything() {
        let board = Arc::new(crate::board::Board::new(10));
        let addr =
            crate::receiver::start(([127, 0, 0, 1], 0).into(), Arc::clone(&board)).await.unwrap();
        let report = closed(&load(addr), 0..50).await.unwrap();
        assert_eq!(report.acks.len(), 50);
        let report = paced(&load(addr), 0..50, 1_000).await.unwrap();
        assert_eq!((report.acks.len(), report.lateness.len()), (50, 50));
        assert!(report.took >= Duration::from_millis(49));
        assert_eq!(board.counts().requests, 100);
    }
}
