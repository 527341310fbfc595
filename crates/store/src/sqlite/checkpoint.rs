//! Keeps the write-ahead log short.
//!
//! A helper copies the log into the file while the writer goes on. When the log is long all the
//! same, the writer itself copies the rest between two batches and begins the log anew.
//! Never: hold up a batch for a log that is short, or fail a batch because a checkpoint failed.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::headroom::Headroom;
use super::migrate::open_checkpointer;
use super::readers::{join, no_thread};
use super::shared::Shared;
use crate::StoreError;

/// Pages of 4 KiB at which the writer begins the log anew: 64 MiB.
const LOG_PAGES_MAX: i32 = 16_384;
/// After a checkpoint that could not finish, the writer tries again so many pages later: 16 MiB.
const RETRY_PAGES: i32 = 4_096;
/// The helper looks this often.
const LOOK: Duration = Duration::from_millis(200);
/// It copies when so many rows were written since the last time, or after so many looks if there
/// were any.
const ROWS_MIN: usize = 2_000;
const LOOKS_MAX: u32 = 5;

thread_local! {
    /// Pages in the log after the last commit on this thread.
    static PAGES: Cell<i32> = const { Cell::new(0) };
}

/// The writer's view of the log.
pub(super) struct Log {
    act_at: i32,
    headroom: Option<Headroom>,
}

impl Log {
    /// Begins to count the pages that commits of `conn` leave in the log; called on the writer's
    /// thread.
    pub(super) fn new(conn: &Connection) -> Self {
        conn.wal_hook(Some(note));
        let headroom = conn.path().map(Path::new).and_then(Headroom::of);
        Self { act_at: LOG_PAGES_MAX, headroom }
    }

    /// Begins the log anew if it has grown too long, and sees to it that there is room for more.
    pub(super) fn look(&mut self, conn: &Connection) {
        let pages = PAGES.get();
        if pages < self.act_at {
            if let Some(headroom) = &mut self.headroom {
                headroom.see_to(pages);
            }
            if pages < LOG_PAGES_MAX {
                self.act_at = LOG_PAGES_MAX;
            }
            return;
        }
        let done = conn
            .query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get::<_, i64>(0))
            .is_ok_and(|busy| busy == 0);
        if done {
            PAGES.set(0);
            if let Some(headroom) = &mut self.headroom {
                headroom.begin_anew();
            }
            self.act_at = LOG_PAGES_MAX;
        } else {
            self.act_at = pages.saturating_add(RETRY_PAGES);
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of a hook")]
fn note(_: &Wal, pages: i32) -> rusqlite::Result<()> {
    PAGES.set(pages);
    Ok(())
}

/// The helper's thread.
pub(super) struct Helper {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Helper {
    pub(super) fn start(path: &Path, shared: Arc<Shared>) -> Result<Self, StoreError> {
        let conn = open_checkpointer(path)?;
        let (stop, stopped) = channel();
        let thread = Builder::new()
            .name("peyk-checkpoint".into())
            .spawn(move || help(&conn, &shared, &stopped))
            .map_err(|_| no_thread())?;
        Ok(Self { stop, thread })
    }

    pub(super) fn close(self) {
        drop(self.stop);
        join(self.thread);
    }
}

fn help(conn: &Connection, shared: &Shared, stopped: &Receiver<()>) {
    let (mut seen, mut looks) = (shared.written.load(Ordering::Relaxed), 0);
    while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        let written = shared.written.load(Ordering::Relaxed);
        let rows = written.wrapping_sub(seen);
        looks += 1;
        if rows >= ROWS_MIN || (rows > 0 && looks >= LOOKS_MAX) {
            (seen, looks) = (written, 0);
            // One that fails is made up for by the next, and in the end by the writer.
            let done = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            if let Err(fault) = done {
                tracing::debug!(code = ?fault.sqlite_error_code(), "a checkpoint failed");
            }
        }
    }
}
