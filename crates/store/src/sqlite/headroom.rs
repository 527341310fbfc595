//! Room ahead of the end of the write-ahead log.
//!
//! A sync of a file that has just grown writes the file system's own log, too, and takes about
//! twice as long (150 us beside 290 on ext4). So the file is lengthened with zeros ahead of what is
//! written, in large steps; SQLite takes zeros for the end of the log. Only the writer's thread
//! comes here, and only between two batches, since nobody else may lengthen the file then.
//! Never: touch what is already there, or fail a batch because there is no room.

use std::fs::{File, OpenOptions};
use std::io::{Result, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// A page with what stands before it in the log.
const FRAME_BYTES: u64 = 4_096 + 24;
/// Less ahead than this, and there is a step.
const AHEAD_MIN: u64 = 512 << 10;
/// The file grows by so much: few steps, none of which the next sync is long busy with.
const STEP: u64 = 2 << 20;
/// No longer than this; SQLite cuts it to so much when it begins anew.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// The log's file, kept longer than what was written.
pub(super) struct Headroom {
    file: File,
    len: u64,
    given_up: bool,
}

impl Headroom {
    /// For the log beside the database `path`; none where it cannot be had.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let file = OpenOptions::new().write(true).open(log).ok()?;
        let len = file.metadata().ok()?.len();
        Some(Self { file, len, given_up: false })
    }

    /// Sees to it that there is room behind so many pages.
    pub(super) fn see_to(&mut self, pages: i32) {
        let end = u64::try_from(pages).unwrap_or(0) * FRAME_BYTES;
        // A log that is not much used needs none.
        if end < AHEAD_MIN || end + AHEAD_MIN <= self.len || self.given_up {
            return;
        }
        // It may have grown over its room since.
        self.len = self.file.metadata().map_or(self.len, |file| file.len());
        if self.len >= LOG_BYTES_MAX {
            return;
        }
        let target = (self.len + STEP).min(LOG_BYTES_MAX);
        if self.lengthen(target).is_err() {
            // What little room the disk has left is for messages.
            drop(self.file.set_len(self.len));
            self.given_up = true;
        }
    }

    fn lengthen(&mut self, target: u64) -> Result<()> {
        let zeros = vec![0; usize::try_from(target - self.len).unwrap_or(0)];
        self.file.seek(SeekFrom::Start(self.len))?;
        self.file.write_all(&zeros)?;
        self.len = target;
        Ok(())
    }

    /// The log begins anew: what could not be had may be tried again.
    pub(super) fn begin_anew(&mut self) {
        self.given_up = false;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rusqlite::Connection;
    use tempfile::tempdir;

    use super::*;

    /// Writes `rows` of 2 KiB, one commit each.
    fn write(conn: &Connection, rows: usize) {
        for _ in 0..rows {
            conn.execute("INSERT INTO t VALUES (randomblob(2048))", []).unwrap();
        }
    }

    fn opened(path: &Path) -> Connection {
        let conn = Connection::open(path).unwrap();
        let sql = "PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0; CREATE TABLE IF NOT EXISTS t (a)";
        conn.execute_batch(sql).unwrap();
        conn
    }

    /// Pages in the log, as far as its bytes say what was written.
    fn pages(written: u64) -> i32 {
        i32::try_from(written / FRAME_BYTES).unwrap()
    }

    #[test]
    fn a_log_with_room_behind_it_is_read_to_its_end() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("a.db");
        let conn = opened(&path);
        let mut headroom = Headroom::of(&path).unwrap();
        let log = folder.path().join("a.db-wal");
        let len = || fs::metadata(&log).unwrap().len();
        write(&conn, 10);
        headroom.see_to(pages(len()));
        assert!(len() < AHEAD_MIN, "a log that is hardly used has no room");
        write(&conn, 200);
        let written = len();
        headroom.see_to(pages(written));
        assert_eq!(len(), written + STEP);
        write(&conn, 100);
        assert_eq!(len(), written + STEP, "what is written next fits");
        headroom.see_to(pages(written) + 100);
        assert_eq!(len(), written + STEP, "there is room enough");

        // As if the machine had stopped here.
        let copy = folder.path().join("b.db");
        fs::copy(&path, &copy).unwrap();
        fs::copy(&log, folder.path().join("b.db-wal")).unwrap();
        let again = opened(&copy);
        let count = |conn: &Connection| -> i64 {
            conn.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
        };
        assert_eq!(count(&again), 310);
        write(&again, 5);
        let sound: String =
            again.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!((count(&again), sound.as_str()), (315, "ok"));
    }

    #[test]
    fn there_is_an_end_to_it() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("a.db");
        let _conn = opened(&path);
        let mut headroom = Headroom::of(&path).unwrap();
        let log = folder.path().join("a.db-wal");
        File::options().write(true).open(&log).unwrap().set_len(LOG_BYTES_MAX - 100).unwrap();
        headroom.see_to(pages(LOG_BYTES_MAX - 200));
        assert_eq!(fs::metadata(&log).unwrap().len(), LOG_BYTES_MAX);
        headroom.see_to(pages(LOG_BYTES_MAX));
        assert_eq!(fs::metadata(&log).unwrap().len(), LOG_BYTES_MAX);
    }

    #[test]
    fn no_room_is_no_fault_and_is_tried_again_with_the_next_log() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("a.db");
        let conn = opened(&path);
        write(&conn, 300);
        let log = folder.path().join("a.db-wal");
        let len = fs::metadata(&log).unwrap().len();
        // A file that cannot be written, as on a full disk.
        let mut headroom = Headroom { file: File::open(&log).unwrap(), len, given_up: false };
        headroom.see_to(pages(len));
        assert!(headroom.given_up);
        headroom.file = File::options().write(true).open(&log).unwrap();
        headroom.see_to(pages(len));
        assert_eq!(fs::metadata(&log).unwrap().len(), len);
        headroom.begin_anew();
        headroom.see_to(pages(len));
        assert_eq!(fs::metadata(&log).unwrap().len(), len + STEP);
    }
}
