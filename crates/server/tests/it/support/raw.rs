//! A receiver of bytes: reads complete requests and plays steps on the bare connection, for answers
//! that no HTTP library would give.
//!
//! Never: answer by itself.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{Gate, PATIENCE};

/// One thing done on a connection after a request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Writes this.
    Send(Bytes),
    /// Writes this again and again, a little at a time, until the sender goes away.
    Drip(Bytes),
    /// Waits for this.
    Wait(Gate),
    /// Never answers.
    Hang,
    /// Closes the connection; without this the next request of the connection is read.
    Close,
}

impl Step {
    pub(crate) fn send(bytes: impl Into<Bytes>) -> Self {
        Self::Send(bytes.into())
    }

    pub(crate) fn drip(bytes: &'static str) -> Self {
        Self::Drip(Bytes::from(bytes))
    }
}

type Script = Arc<dyn Fn(usize) -> Vec<Step> + Send + Sync>;

#[derive(Default)]
struct Seen {
    connections: usize,
    requests: Vec<Bytes>,
}

/// A receiver of bytes.
pub(crate) struct Raw {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    count: watch::Sender<usize>,
}

impl Raw {
    /// One that plays these steps after the request with this number, from 0.
    pub(crate) async fn start(script: impl Fn(usize) -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self::on("127.0.0.1:0", script).await.unwrap()
    }

    /// The same on another address, if this machine has it.
    pub(crate) async fn on(
        address: &str,
        script: impl Fn(usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (seen, count) = (Arc::<Mutex<Seen>>::default(), watch::channel(0).0);
        let raw = Self { address, seen: Arc::clone(&seen), count: count.clone() };
        let script: Script = Arc::new(script);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                seen.lock().unwrap().connections += 1;
                let (seen, count) = (Arc::clone(&seen), count.clone());
                tokio::spawn(serve(stream, Arc::clone(&script), seen, count));
            }
        });
        Ok(raw)
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    /// Every complete request, head and body.
    pub(crate) fn requests(&self) -> Vec<Bytes> {
        self.seen.lock().unwrap().requests.clone()
    }

    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Bytes> {
        let mut seen = self.count.subscribe();
        let waited = tokio::time::timeout(PATIENCE, seen.wait_for(|seen| *seen >= count)).await;
        assert!(waited.is_ok(), "{} requests instead of {count}", self.requests().len());
        self.requests()
    }
}

async fn serve(
    mut stream: TcpStream,
    script: Script,
    seen: Arc<Mutex<Seen>>,
    count: watch::Sender<usize>,
) -> Option<()> {
    let mut rest = Vec::new();
    loop {
        let request = read_request(&mut stream, &mut rest).await?;
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.requests.push(request);
            seen.requests.len() - 1
        };
        count.send_modify(|count| *count = (number + 1).max(*count));
        let mut steps: VecDeque<_> = script(number).into();
        while let Some(step) = steps.pop_front() {
            play(&mut stream, step).await?;
        }
    }
}

async fn play(stream: &mut TcpStream, step: Step) -> Option<()> {
    match step {
        Step::Send(bytes) => stream.write_all(&bytes).await.ok(),
        Step::Drip(bytes) => {
            let mut ticks = tokio::time::interval(Duration::from_millis(100));
            loop {
                ticks.tick().await;
                stream.write_all(&bytes).await.ok()?;
            }
        }
        Step::Wait(gate) => {
            gate.pass().await;
            Some(())
        }
        // Until the sender has gone away.
        Step::Hang => stream.read_u8().await.ok().and(None),
        Step::Close => {
            let _gone = stream.shutdown().await;
            None
        }
    }
}

async fn read_request(stream: &mut TcpStream, rest: &mut Vec<u8>) -> Option<Bytes> {
    loop {
        if let Some(end) = rest.windows(4).position(|window| window == b"\r\n\r\n") {
            let whole = end + 4 + content_length(&rest[..end]);
            if rest.len() >= whole {
                let after = rest.split_off(whole);
                return Some(std::mem::replace(rest, after).into());
            }
        }
        if stream.read_buf(rest).await.ok()? == 0 {
            return None;
        }
    }
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let line = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    line.map_or(0, |value| value.trim().parse().unwrap())
}
