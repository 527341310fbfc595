//! The receiver: counts requests and answers as its path says.
//!
//! `/ok` 200 at once; `/hang` never; `/status/500` that status; `/later/3600` 503 with that
//! `Retry-After`; `/slow/50` 200 after so many ms; `/flaky` mostly 200, at times 500 or late, and
//! 500 for all in an outage. What follows in the path is free.
//! Written by hand on tokio, so that it costs little of the two cores it shares with what is
//! measured.
//! Never: judge what it gets; the board keeps facts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::board::Board;
use crate::fault::{Fault, Result, While as _};
use crate::payload::{self, Said};
use crate::wire;

/// Largest request that is read.
const REQUEST_BYTES_MAX: usize = 4 << 20;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// Options of `bench receiver`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Where to listen; port 0 picks one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Message numbers kept apart, from 0.
    #[arg(long, default_value_t = 1_000_000)]
    messages: u32,
}

/// How a path is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Ok,
    Hang,
    Status(u16),
    Later(u32),
    Slow(u64),
    Flaky,
}

/// Runs the receiver alone until interrupted, with a line of counts each second in which something
/// came.
pub(crate) async fn run(options: Options) -> Result<()> {
    let board = Arc::new(Board::new(options.messages));
    let addr = start(options.listen, Arc::clone(&board)).await?;
    println!("listening on http://{addr}");
    let mut last = board.counts();
    loop {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return Ok(()),
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
        let now = board.counts();
        if now != last {
            println!(
                "{}/s  requests {}  distinct {}  repeats {}  strangers {}  under way {}  {}",
                now.requests - last.requests,
                now.requests,
                now.done,
                now.repeats,
                now.strangers,
                now.in_flight,
                board.latencies(0..options.messages),
            );
        }
        last = now;
    }
}

/// Starts a receiver on the current runtime; it ends with it.
pub(crate) async fn start(listen: SocketAddr, board: Arc<Board>) -> Result<SocketAddr> {
    let listener = TcpListener::bind(listen).await.while_(&format!("listening on {listen}"))?;
    let addr = listener.local_addr()?;
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _peer)) => drop(tokio::spawn(connection(stream, Arc::clone(&board)))),
                Err(error) => {
                    eprintln!("receiver: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    });
    Ok(addr)
}

/// Serves one connection; a peer that ends it is no error, one that sends nonsense is told to
/// whoever watches.
async fn connection(stream: TcpStream, board: Arc<Board>) {
    let _gone = stream.set_nodelay(true);
    if let Err(fault) = requests(stream, &board).await {
        eprintln!("receiver: {fault}");
    }
}

async fn requests(mut stream: TcpStream, board: &Board) -> Result<()> {
    let mut buffer = vec![0; 4096];
    let mut filled = 0;
    loop {
        let whole = match wire::request_head(&buffer[..filled])? {
            Some(head) if head.len + head.body_len <= filled => {
                let end = head.len + head.body_len;
                let said = payload::read(&buffer[head.len..end]);
                let before = board.arrived(said, head.webhook_id);
                Some((end, said, mode(head.path), before))
            }
            _ => None,
        };
        if let Some((end, said, mode, before)) = whole {
            let whim = if board.outage() { (500, 0) } else { whim(said, before) };
            let status = answer(&mut stream, mode, whim).await;
            board.answered(said, status.is_some_and(|status| status / 100 == 2));
            if status.is_none() {
                return Ok(());
            }
            buffer.copy_within(end..filled, 0);
            filled -= end;
            continue;
        }
        if filled == buffer.len() {
            if filled >= REQUEST_BYTES_MAX {
                return Err(Fault::new("a request is larger than 4 MiB"));
            }
            buffer.resize(filled * 2, 0);
        }
        match stream.read(&mut buffer[filled..]).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(read) => filled += read,
        }
    }
}

/// Answers one request; the status, or `None` when the connection ended instead.
async fn answer(stream: &mut TcpStream, mode: Mode, whim: (u16, u64)) -> Option<u16> {
    let status = match mode {
        Mode::Ok => 200,
        Mode::Status(status) => status,
        Mode::Later(_) => 503,
        Mode::Slow(ms) => {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            200
        }
        Mode::Flaky => {
            let (status, ms) = whim;
            if ms > 0 {
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            status
        }
        Mode::Hang => {
            // Whatever comes is ignored; what ends this is the end of the connection.
            let mut ignored = [0; 1024];
            while matches!(stream.read(&mut ignored).await, Ok(read) if read > 0) {}
            return None;
        }
    };
    let written = match mode {
        _ if status == 200 => stream.write_all(OK).await,
        Mode::Later(secs) => {
            let head =
                format!("HTTP/1.1 503 Later\r\nretry-after: {secs}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(head.as_bytes()).await
        }
        _ => {
            let head = format!("HTTP/1.1 {status} As Asked\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(head.as_bytes()).await
        }
    };
    written.ok().map(|()| status)
}

fn mode(path: &[u8]) -> Mode {
    let mut parts = path.split(|byte| *byte == b'/').skip(1);
    let first = parts.next().unwrap_or_default();
    let number = parts
        .next()
        .and_then(|text| std::str::from_utf8(text).ok())
        .and_then(|text| text.parse::<u32>().ok());
    match (first, number) {
        (b"hang", _) => Mode::Hang,
        (b"flaky", _) => Mode::Flaky,
        (b"slow", Some(ms)) => Mode::Slow(u64::from(ms)),
        (b"later", Some(secs)) => Mode::Later(secs),
        (b"status", Some(status @ 200..=999)) => Mode::Status(status as u16),
        _ => Mode::Ok,
    }
}

/// Status and delay for the nth request of a message: the same for the same numbers in every run.
fn whim(said: Option<Said>, nth: u16) -> (u16, u64) {
    let seq = said.map_or(0, |said| said.seq);
    let draw = mix(u64::from(seq) << 16 | u64::from(nth));
    let ms = 5 + (draw >> 32) % 195;
    match draw % 100 {
        0..8 => (500, 0),
        8..12 => (200, ms),
        12..13 => (500, ms),
        _ => (200, 0),
    }
}

/// The finaliser of `SplitMix64`.
pub(crate) const fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_choose_the_answer() {
        assert_eq!(mode(b"/ok/app_1"), Mode::Ok);
        assert_eq!(mode(b"/"), Mode::Ok);
        assert_eq!(mode(b"/hang/3"), Mode::Hang);
        assert_eq!(mode(b"/status/410"), Mode::Status(410));
        assert_eq!(mode(b"/later/60/x"), Mode::Later(60));
        assert_eq!(mode(b"/slow/50"), Mode::Slow(50));
    }

    #[test]
    fn whims_repeat_and_are_mostly_kind() {
        let of = |seq| whim(Some(Said { seq, at_us: 0 }), 0);
        assert_eq!(of(7), of(7));
        let kind = (0..10_000).filter(|seq| of(*seq) == (200, 0)).count();
        assert!((8_500..8_900).contains(&kind), "{kind}");
    }

    #[tokio::test]
    async fn requests_are_counted_and_answered() {
        let board = Arc::new(Board::new(10));
        let addr = start(([127, 0, 0, 1], 0).into(), Arc::clone(&board)).await.unwrap();
        let mut body = payload::blank(64).unwrap();
        payload::write(&mut body, Said { seq: 3, at_us: 0 });
        let mut conn = crate::conn::Conn::open(addr).await.unwrap();
        for (path, status) in [("/status/500", 500), ("/later/9", 503), ("/ok", 200)] {
            let mut request =
                format!("POST {path} HTTP/1.1\r\ncontent-length: 64\r\n\r\n").into_bytes();
            request.extend_from_slice(&body);
            assert_eq!(conn.call(&request).await.unwrap().status, status);
        }
        assert_eq!((board.counts().requests, board.counts().done), (3, 1));
    }
}
