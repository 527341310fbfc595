//! The traffic of harnesses that kill: posts whose server may die at any moment, and what is known
//! of each.
//!
//! A post is acknowledged when its 2xx came in whole. One whose connection broke is unsure: it may
//! be stored or not. Unsure ones with an even number are posted again, byte for byte, under the
//! same idempotency key and event id, since that is what clients do; the others are left, since
//! clients also give up.
//! Never: take a post for acknowledged that was not, or stop at a broken connection.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::conn::Conn;
use crate::fault::{Fault, Result, While as _};
use crate::load::{Load, Writer};
use crate::machine::now_us;
use crate::payload::Said;

/// Pause after a refusal.
const REFUSED_PAUSE: Duration = Duration::from_millis(20);

/// Longest time for posting again what is left at the end.
const SETTLE_MAX: Duration = Duration::from_secs(60);

/// What is known of all posts so far.
#[derive(Debug)]
pub(crate) struct Book {
    run: u64,
    next: AtomicU32,
    end: u32,
    pages: Mutex<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    /// Public id by message number; empty when a repeated post was told that its event id is taken.
    acked: BTreeMap<u32, String>,
    /// To be posted again.
    again: VecDeque<Said>,
    /// Left unsure.
    left: u64,
    /// Posts made again.
    repeated: u64,
}

/// How one post ended.
enum Ended {
    Acked(String),
    Refused,
    Broken,
}

impl Book {
    /// An empty one for message numbers below `end`.
    pub(crate) fn new(run: u64, end: u32) -> Self {
        Self { run, next: AtomicU32::new(0), end, pages: Mutex::default() }
    }

    /// Message numbers used so far.
    pub(crate) fn posted(&self) -> u32 {
        self.next.load(Relaxed).min(self.end)
    }

    /// How many are acknowledged.
    pub(crate) fn acked(&self) -> usize {
        self.pages().acked.len()
    }

    /// Posts made again, and posts left unsure.
    pub(crate) fn unsure(&self) -> (u64, u64) {
        let pages = self.pages();
        (pages.repeated, pages.left)
    }

    /// Acknowledged ones for which `holds` is true, with their ids.
    pub(crate) fn acked_where(&self, holds: impl Fn(u32) -> bool) -> Vec<(u32, String)> {
        let pages = self.pages();
        let found = pages.acked.iter().filter(|(seq, _)| holds(**seq));
        found.map(|(seq, id)| (*seq, id.clone())).collect()
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What to post next, and whether it was posted before.
    fn draw(&self, new_ones: bool) -> Option<(Said, bool)> {
        if let Some(said) = self.pages().again.pop_front() {
            return Some((said, true));
        }
        let seq = if new_ones { self.next.fetch_add(1, Relaxed) } else { self.end };
        (seq < self.end).then(|| (Said { seq, at_us: now_us() }, false))
    }

    fn note(&self, said: Said, again: bool, ended: Ended) {
        let mut pages = self.pages();
        pages.repeated += u64::from(again);
        match ended {
            Ended::Acked(id) => drop(pages.acked.insert(said.seq, id)),
            Ended::Refused => pages.again.push_back(said),
            Ended::Broken if said.seq.is_multiple_of(2) => pages.again.push_back(said),
            Ended::Broken => pages.left += 1,
        }
    }
}

/// Connections that post until they are stopped or broken.
pub(crate) struct Traffic {
    workers: JoinSet<Result<()>>,
    stopped: Arc<AtomicBool>,
}

impl Traffic {
    /// Starts posting about `rate` messages a second over as many connections as the load has posts
    /// in flight.
    pub(crate) fn start(load: &Load, book: &Arc<Book>, rate: u32) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let mut workers = JoinSet::new();
        let count = u32::try_from(load.in_flight).unwrap_or(1).max(1);
        let step = Duration::from_secs(1) * count / rate.max(1);
        for worker in 0..count {
            let (load, book, stopped) = (load.clone(), Arc::clone(book), Arc::clone(&stopped));
            let begin = Instant::now() + step * worker / count;
            workers.spawn(async move {
                let mut due = begin;
                let Ok(mut conn) = Conn::open(load.addr).await else { return Ok(()) };
                let mut writer = Writer::new(&load, book.run)?;
                while !stopped.load(Relaxed) {
                    sleep_until(due).await;
                    due = (due + step).max(Instant::now());
                    if !post(&mut conn, &mut writer, &book, true).await? {
                        break;
                    }
                }
                Ok(())
            });
        }
        Self { workers, stopped }
    }

    /// Stops and waits; the first answer that no client should ever see is a fault.
    pub(crate) async fn stop(mut self) -> Result<()> {
        self.stopped.store(true, Relaxed);
        while let Some(ended) = self.workers.join_next().await {
            ended??;
        }
        Ok(())
    }
}

/// Posts what is left to be posted again, on one connection.
pub(crate) async fn settle(load: &Load, book: &Book) -> Result<()> {
    let mut conn = Conn::open(load.addr).await?;
    let mut writer = Writer::new(load, book.run)?;
    let began = Instant::now();
    while !book.pages().again.is_empty() {
        if !post(&mut conn, &mut writer, book, false).await? {
            return Err(Fault::new("the server closed a connection though nobody stopped it"));
        }
        if began.elapsed() > SETTLE_MAX {
            return Err(Fault::new(format!("posts are still refused after {SETTLE_MAX:?}")));
        }
    }
    Ok(())
}

/// One post; `false` when there is none left or the connection is gone.
async fn post(conn: &mut Conn, writer: &mut Writer, book: &Book, new_ones: bool) -> Result<bool> {
    let Some((said, again)) = book.draw(new_ones) else { return Ok(false) };
    let ended = match conn.call(writer.request(said)).await {
        Err(_broken) => Ended::Broken,
        Ok(answer) if answer.is_ok() => Ended::Acked(id_in(answer.body)?),
        Ok(answer) if answer.status == 409 && again => Ended::Acked(String::new()),
        Ok(answer) if matches!(answer.status, 429 | 503) => {
            sleep(REFUSED_PAUSE).await;
            Ended::Refused
        }
        Ok(answer) => {
            let text = format!("message {}, posted again: {again}: {}", said.seq, answer.text());
            return Err(Fault::new(text));
        }
    };
    let alive = !matches!(ended, Ended::Broken);
    book.note(said, again, ended);
    Ok(alive)
}

fn id_in(body: &[u8]) -> Result<String> {
    let answer: serde_json::Value = serde_json::from_slice(body).while_("reading a 202")?;
    let id = answer["id"].as_str().ok_or_else(|| Fault::new("a 202 without an id"))?;
    Ok(id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsure_posts_are_repeated_or_left_but_never_taken_for_acknowledged() {
        let book = Book::new(1, 3);
        let drawn: Vec<_> = (0..2).filter_map(|_| book.draw(true)).collect();
        for (said, again) in drawn {
            assert!(!again);
            book.note(said, again, Ended::Broken);
        }
        assert_eq!((book.acked(), book.unsure()), (0, (0, 1)));
        let (said, again) = book.draw(true).unwrap();
        assert_eq!((said.seq, again), (0, true));
        book.note(said, again, Ended::Acked("msg_0".to_owned()));
        assert_eq!(book.draw(false), None);
        assert_eq!(book.draw(true).map(|(said, _)| said.seq), Some(2));
        assert_eq!(book.draw(true), None);
        assert_eq!((book.acked(), book.unsure(), book.posted()), (1, (1, 1), 3));
        assert_eq!(book.acked_where(|seq| seq == 0), [(0, "msg_0".to_owned())]);
    }

    #[test]
    fn ids_are_read() {
        assert_eq!(id_in(br#"{"id":"msg_1","payload":{}}"#).unwrap(), "msg_1");
        assert!(id_in(b"{}").is_err());
    }
}
