//! Opening the file: is it ours, is it readable, is its schema one we know; then bring it up to
//! date.
//!
//! In: a path. Out: a connection whose schema is the newest. Migrations are embedded and only go
//! forward.
//! Never: write to a file before it is known to be ours, or empty.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use rusqlite_migration::{M, Migrations};

use crate::StoreError;
use crate::stored::fault::corrupt;

/// "Peyk" in four bytes; also stands in the first migration.
const APPLICATION_ID: i64 = 0x5065_796B;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const STEPS: &[M<'static>] = &[
    M::up(include_str!("../../migrations/sqlite/0001_start.sql")),
    M::up(include_str!("../../migrations/sqlite/0002_retention.sql")),
    M::up(include_str!("../../migrations/sqlite/0003_labels.sql")),
    M::up(include_str!("../../migrations/sqlite/0004_tasks.sql")),
    M::up(include_str!("../../migrations/sqlite/0005_revocations.sql")),
    M::up(include_str!("../../migrations/sqlite/0006_notices.sql")),
    M::up(include_str!("../../migrations/sqlite/0007_suspect_sends.sql")),
    M::up(include_str!("../../migrations/sqlite/0008_answers.sql")),
    M::up(include_str!("../../migrations/sqlite/0009_suspension.sql")),
    M::up(include_str!("../../migrations/sqlite/0010_recovery.sql")),
    M::up(include_str!("../../migrations/sqlite/0011_counts.sql")),
    M::up(include_str!("../../migrations/sqlite/0012_alerts.sql")),
    M::up(include_str!("../../migrations/sqlite/0013_edits.sql")),
];
/// The header of a file and that of its first page.
const HEAD_BYTES: usize = 108;
/// How long the writer waits for a lock that someone else holds: a backup tool, a shell.
const LOCK_WAIT: Duration = Duration::from_millis(250);

/// Opens the file for writing, creating or upgrading it.
pub(super) fn open_writer(path: &Path, cache_kib: u32) -> Result<Connection, StoreError> {
    if !is_empty(path)? {
        check(path)?;
    }
    let mut conn = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))?;
    conn.busy_timeout(LOCK_WAIT)?;
    let mode: String = conn.query_row("PRAGMA journal_mode = wal", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::Unavailable(
            "this file system cannot hold the database: it has no shared memory".into(),
        ));
    }
    conn.execute_batch(
        "PRAGMA synchronous = full; PRAGMA foreign_keys = off; PRAGMA wal_autocheckpoint = 0;
         PRAGMA temp_store = memory; PRAGMA trusted_schema = off; PRAGMA journal_size_limit = 67108864;",
    )?;
    set_cache(&conn, cache_kib)?;
    conn.set_prepared_statement_cache_capacity(256);
    Migrations::from_slice(STEPS).to_latest(&mut conn).map_err(|fault| match fault {
        rusqlite_migration::Error::RusqliteError { err, .. } => err.into(),
        _ => corrupt("the schema of the database could not be brought up to date"),
    })?;
    Ok(conn)
}

/// Opens one more connection that only reads.
pub(super) fn open_reader(path: &Path, cache_kib: u32) -> Result<Connection, StoreError> {
    let conn = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_ONLY))?;
    conn.busy_timeout(LOCK_WAIT)?;
    conn.execute_batch("PRAGMA temp_store = memory; PRAGMA trusted_schema = off;")?;
    set_cache(&conn, cache_kib)?;
    conn.set_prepared_statement_cache_capacity(128);
    Ok(conn)
}

/// Opens a file of the newest schema that nobody else uses, to read all of it. A log that a killed
/// process left beside it is read, too.
#[cfg(feature = "postgres")]
pub(super) fn open_source(path: &Path) -> Result<Connection, StoreError> {
    let told = |why: &str| StoreError::Unavailable(format!("{}: {why}", path.display()));
    if !path.is_file() {
        return Err(told("there is no such file"));
    }
    if is_empty(path)? {
        return Err(told("the file is empty"));
    }
    check(path)?;
    let conn = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))?;
    conn.busy_timeout(LOCK_WAIT)?;
    conn.execute_batch("PRAGMA temp_store = memory; PRAGMA trusted_schema = off;")?;
    let version: u32 = conn.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if usize::try_from(version).is_ok_and(|version| version < STEPS.len()) {
        return Err(told("was written by an older version of Peyk: run `peyk migrate` first"));
    }
    Ok(conn)
}

/// Opens one more connection that only copies the log into the file.
pub(super) fn open_checkpointer(path: &Path) -> Result<Connection, StoreError> {
    let conn = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))?;
    conn.execute_batch("PRAGMA synchronous = full; PRAGMA wal_autocheckpoint = 0;")?;
    Ok(conn)
}

fn flags(access: OpenFlags) -> OpenFlags {
    access | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

fn set_cache(conn: &Connection, kib: u32) -> Result<(), StoreError> {
    Ok(conn.pragma_update(None, "cache_size", -i64::from(kib))?)
}

/// Whether there is nothing in the file yet; it is created, readable by its owner only, when it is
/// not there.
fn is_empty(path: &Path) -> Result<bool, StoreError> {
    let refuse = |why: &str| StoreError::Unavailable(format!("{}: {why}", path.display()));
    let mut start = [0_u8; HEAD_BYTES];
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(fault) if fault.kind() == ErrorKind::NotFound => {
            create(path).map_err(|fault| refuse(&fault.to_string()))?;
            return Ok(true);
        }
        Err(fault) => return Err(refuse(&fault.to_string())),
    };
    let is_file = file.metadata().is_ok_and(|facts| facts.is_file());
    if !is_file {
        return Err(refuse("is not a file"));
    }
    let length = read_up_to(&mut file, &mut start).map_err(|fault| refuse(&fault.to_string()))?;
    if length == 0 {
        return Ok(true);
    }
    if length == start.len() && start.starts_with(MAGIC) {
        return check_head(path, &start).map(|()| false);
    }
    Err(foreign(path))
}

/// Looks at the header without opening the database, which may put files beside it: a log that is
/// not in the file yet only adds to what stands here.
fn check_head(path: &Path, head: &[u8; HEAD_BYTES]) -> Result<(), StoreError> {
    let number = |at: usize| {
        let bytes = head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        i64::from(bytes.map_or(0, u32::from_be_bytes))
    };
    // The first page holds the schema: a leaf with no cells while nothing was created.
    let is_bare = head[100] == 0x0D && head[103..105] == [0, 0];
    let (version, application) = (number(60), number(68));
    known(path, Facts { application, version, is_bare })
}

/// What a file says of itself.
struct Facts {
    application: i64,
    version: i64,
    /// Whether nothing was created in it.
    is_bare: bool,
}

/// Whether this build may write to the file.
fn known(path: &Path, facts: Facts) -> Result<(), StoreError> {
    if facts.application == 0 && facts.version == 0 && facts.is_bare {
        return Ok(());
    }
    if facts.application != APPLICATION_ID {
        return Err(foreign(path));
    }
    if usize::try_from(facts.version).map_or(true, |version| version > STEPS.len()) {
        return Err(StoreError::Corrupt(format!(
            "{} was written by a newer version of Peyk; it was left as it is",
            path.display()
        )));
    }
    Ok(())
}

fn create(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

fn read_up_to(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..])? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}

/// Looks at a file that is not empty, without writing to it.
fn check(path: &Path) -> Result<(), StoreError> {
    let conn = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_ONLY))?;
    conn.busy_timeout(LOCK_WAIT)?;
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let application = number("PRAGMA application_id").map_err(|fault| damaged(path, fault))?;
    let version = number("PRAGMA user_version").map_err(|fault| damaged(path, fault))?;
    let objects =
        number("SELECT count(*) FROM sqlite_schema").map_err(|fault| damaged(path, fault))?;
    known(path, Facts { application, version, is_bare: objects == 0 })
}

fn foreign(path: &Path) -> StoreError {
    StoreError::Corrupt(format!(
        "{} is not a database of Peyk; it was left as it is",
        path.display()
    ))
}

fn damaged(path: &Path, fault: rusqlite::Error) -> StoreError {
    match StoreError::from(fault) {
        StoreError::Corrupt(why) => {
            StoreError::Corrupt(format!("{}: {why}; it was left as it is", path.display()))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_valid_and_ours() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("peyk.db");
        drop(open_writer(&path, 1_024).unwrap());
        drop(open_writer(&path, 1_024).unwrap());
        let conn = open_reader(&path, 1_024).unwrap();
        let id: i64 = conn.query_row("PRAGMA application_id", [], |row| row.get(0)).unwrap();
        assert_eq!(id, APPLICATION_ID);
        assert!(conn.execute("DELETE FROM setting", []).is_err(), "a reader only reads");
    }

    fn names(dir: &Path) -> Vec<std::ffi::OsString> {
        let files = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_start_that_broke_off_early_is_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("peyk.db");
        std::fs::write(&path, "").unwrap();
        // The mode is in the file, the schema only in the log, and then the process dies.
        drop(
            Connection::open(&path).unwrap().query_row("PRAGMA journal_mode = wal", [], |_| Ok(())),
        );
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 4_096);
        drop(open_writer(&path, 1_024).unwrap());
    }

    #[test]
    fn foreign_files_are_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let text = dir.path().join("notes.txt");
        std::fs::write(&text, "SQLite is nice, but this is prose").unwrap();
        let other = dir.path().join("other.db");
        Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
        let torn = dir.path().join("torn.db");
        std::fs::write(&torn, [&MAGIC[..], &[0xA5; 4_000]].concat()).unwrap();
        let newer = dir.path().join("newer.db");
        drop(open_writer(&newer, 1_024).unwrap());
        Connection::open(&newer).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
        let other_log = dir.path().join("other-log.db");
        Connection::open(&other_log)
            .unwrap()
            .execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a)")
            .unwrap();
        for path in [&text, &other, &other_log, &torn, &newer] {
            let before = (std::fs::read(path).unwrap(), names(dir.path()));
            let fault = open_writer(path, 1_024).map(drop).unwrap_err();
            assert!(matches!(fault, StoreError::Corrupt(_)), "{fault}");
            assert!(fault.to_string().contains("left as it is"), "{fault}");
            assert_eq!((std::fs::read(path).unwrap(), names(dir.path())), before);
        }
        assert!(open_writer(dir.path(), 1_024).is_err(), "a folder");
        assert!(open_writer(&dir.path().join("no/where.db"), 1_024).is_err());
    }
}
