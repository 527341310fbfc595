//! What a server writes: read to the end, its last lines kept, one line awaited.
//!
//! Servers say when they accept connections, so that nobody has to poll for it. The end of the
//! text is the end of the server and of everything it started.
//! Never: lets a server wait for somebody to read.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Lines kept for the message of a failure.
const LINES_MAX: usize = 30;
/// How often a port is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The log of one running server.
#[derive(Debug)]
pub(crate) struct Log {
    // Behind a lock only so that a server can be shared.
    ready: Mutex<Receiver<()>>,
    tail: Arc<Mutex<VecDeque<String>>>,
}

impl Log {
    /// Reads `stream` on a thread of its own; `ready` is part of the line to await, if any.
    pub(crate) fn follow(stream: impl Read + Send + 'static, ready: Option<&'static str>) -> Self {
        let (seen, receiver) = channel();
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&tail);
        thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                let is_ready = ready.is_some_and(|ready| line.contains(ready));
                let mut kept = lock(&kept);
                if kept.len() == LINES_MAX {
                    kept.pop_front();
                }
                kept.push_back(line);
                drop(kept);
                if is_ready {
                    // Nobody may be waiting any more; the log is read on all the same.
                    let _ = seen.send(());
                }
            }
        });
        Self { ready: Mutex::new(receiver), tail }
    }

    /// Waits for the line. If it does not come in time, or the server ends first, returns why.
    pub(crate) fn await_ready(&self, limit: Duration) -> Result<(), String> {
        let why = match lock(&self.ready).recv_timeout(limit) {
            Ok(()) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => format!("was not ready after {limit:?}"),
            Err(RecvTimeoutError::Disconnected) => "ended at once".to_owned(),
        };
        Err(format!("{why}; its log:\n{}", self.tail()))
    }

    /// Waits until somebody listens on a port of loopback. If nobody does in time, or the server
    /// ends first, returns why.
    pub(crate) fn await_port(&self, port: u16, limit: Duration) -> Result<(), String> {
        let looks = limit.as_millis() / LOOK_EVERY.as_millis();
        for _ in 0..looks {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(());
            }
            // The end of the log is heard at once.
            let heard = lock(&self.ready).recv_timeout(LOOK_EVERY);
            if heard == Err(RecvTimeoutError::Disconnected) {
                return Err(format!("ended at once; its log:\n{}", self.tail()));
            }
        }
        Err(format!("was not ready after {limit:?}; its log:\n{}", self.tail()))
    }

    /// Waits for the end of the text. Returns whether it came in time.
    pub(crate) fn await_end(&self, limit: Duration) -> bool {
        loop {
            match lock(&self.ready).recv_timeout(limit) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
    }

    /// The last lines.
    pub(crate) fn tail(&self) -> String {
        let tail = lock(&self.tail);
        tail.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
