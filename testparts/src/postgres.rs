//! A PostgreSQL server of one's own, and databases in it.
//!
//! A commit does not wait for the disk (`fsync=off`): the server survives being killed, not a
//! power cut. The superuser is `postgres`, without a password.
//! Never: a password, a wait for the disk, a server that is shared with another test process.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::port;
use crate::process::{Process, Ready, Start};
use crate::programs::{of_postgres, run};
use crate::template::{PACKAGE, SUPERUSER, copy_to};
use crate::user::User;

/// A standby goes on: read-only connections.
const READY: &str = "database system is ready to accept";
const SETTINGS: [(&str, &str); 6] = [
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("shared_buffers", "32MB"),
    ("max_wal_size", "64MB"),
    ("logging_collector", "off"),
    ("lc_messages", "C"),
];

const CERTIFICATE_FILE: &str = "server.crt";
const KEY_FILE: &str = "server.key";

/// Names and values.
type Pairs = Vec<(String, String)>;

/// A running server. Methods panic, with a sentence, when the server does not do as told.
#[derive(Debug)]
pub struct Postgres {
    // Ends before its folder goes.
    process: Option<Process>,
    port: u16,
    settings: Pairs,
    environment: Pairs,
    user: User,
    databases: AtomicU32,
    folder: TempDir,
}

impl Postgres {
    /// Starts a server.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with further settings, by their names in `postgresql.conf`, for example
    /// `("max_connections", "20")`.
    #[must_use]
    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        Self::try_start(settings, None).unwrap_or_else(|why| panic!("PostgreSQL: {why}"))
    }

    /// Starts a server that speaks TLS to who wants it, with a certificate and its key as PEM.
    #[must_use]
    pub fn start_with_tls(certificate: &str, key: &str) -> Self {
        let settings =
            [("ssl", "on"), ("ssl_cert_file", CERTIFICATE_FILE), ("ssl_key_file", KEY_FILE)];
        let started = Self::try_start(&settings, Some([certificate, key]));
        started.unwrap_or_else(|why| panic!("PostgreSQL: {why}"))
    }

    /// The server that all tests of this process share, each with a
    /// [`fresh_database`](Self::fresh_database). It ends with the process.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// Starts a server that keeps everything below this folder, for example in a small file
    /// system.
    #[must_use]
    pub fn start_in(parent: &Path) -> Self {
        let started = folder_in(parent).and_then(|folder| Self::copied(folder, &[], None));
        started.unwrap_or_else(|why| panic!("PostgreSQL: {why}"))
    }

    /// Starts a standby that follows this server until it is told to [`promote`](Self::promote);
    /// from now on each commit of this server waits for it. `environment` is the standby's.
    #[must_use]
    pub fn start_synchronous_standby(&mut self, environment: &[(&str, &str)]) -> Self {
        let settings = self.settings.clone();
        let environment = environment.iter().map(own).collect();
        let folder = self.base_backup().unwrap_or_else(|why| panic!("base backup: {why}"));
        self.settings.push(("synchronous_standby_names".to_owned(), "*".to_owned()));
        self.restart();
        let standby = Self::started(self.user, folder, (settings, environment));
        standby.unwrap_or_else(|why| panic!("standby: {why}"))
    }

    /// A copy of its files as they are now, which follows it.
    fn base_backup(&self) -> Result<TempDir, String> {
        let folder = folder_in(&std::env::temp_dir())?;
        self.user.own(folder.path())?;
        let mut copy = Command::new(of_postgres("pg_basebackup"));
        copy.args(["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast"]);
        copy.args(["--no-sync", "--dbname", &self.url("postgres"), "--pgdata"]);
        copy.arg(data(folder.path()));
        run(self.user.run(&mut copy).current_dir(folder.path()), PACKAGE)?;
        Ok(folder)
    }

    /// Makes a server of its own of a standby; when it returns, it writes.
    pub fn promote(&self) {
        assert_eq!(self.sql(&self.url("postgres"), "SELECT pg_promote()"), "t", "not promoted");
    }

    fn try_start(settings: &[(&str, &str)], tls: Option<[&str; 2]>) -> Result<Self, String> {
        Self::copied(folder_in(&std::env::temp_dir())?, settings, tls)
    }

    fn copied(
        folder: TempDir,
        settings: &[(&str, &str)],
        tls: Option<[&str; 2]>,
    ) -> Result<Self, String> {
        let user = User::not_root()?;
        user.own(folder.path())?;
        copy_to(&data(folder.path()), user)?;
        for (name, text) in [CERTIFICATE_FILE, KEY_FILE].into_iter().zip(tls.into_iter().flatten())
        {
            keep(&data(folder.path()).join(name), text, user)?;
        }
        Self::started(user, folder, (SETTINGS.iter().chain(settings).map(own).collect(), vec![]))
    }

    fn started(
        user: User,
        folder: TempDir,
        (settings, environment): (Pairs, Pairs),
    ) -> Result<Self, String> {
        let databases = AtomicU32::new(0);
        let (process, port) = (None, 0);
        let mut postgres = Self { process, port, settings, environment, user, databases, folder };
        let mut why = String::new();
        for _ in 0..port::TRIES {
            postgres.port = port::free()?;
            match postgres.run() {
                Ok(()) => return Ok(postgres),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    fn run(&mut self) -> Result<(), String> {
        let folder = self.folder.path();
        let mut command = Command::new(of_postgres("postgres"));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.arg("-D").arg(data(folder)).arg("-k").arg(folder);
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]);
        for (name, value) in &self.settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        self.user.run(&mut command).current_dir(folder);
        let start = Start { command, package: PACKAGE, ready: Ready::Line(READY), folder };
        self.process = Some(Process::start(start)?);
        Ok(())
    }

    /// `postgres://postgres@127.0.0.1:…/DATABASE`; the same after a restart.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{SUPERUSER}@127.0.0.1:{}/{database}", self.port)
    }

    /// The port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Creates an empty database and returns its URL.
    #[must_use]
    pub fn fresh_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql(&self.url("postgres"), &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Runs one statement, or several as one transaction, and returns what comes back: a line per
    /// row, `|` between columns.
    pub fn sql(&self, url: &str, statement: &str) -> String {
        let mut psql = Command::new(of_postgres("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statement]);
        run(&mut psql, PACKAGE).unwrap_or_else(|why| panic!("{statement}: {why}"))
    }

    /// Gives the superuser the settings in this database that a page gives to the role `peyk` in
    /// the database `peyk`, in lines that begin with `ALTER ROLE`.
    pub fn give_settings(&self, url: &str, page: &str) {
        let name = url.rsplit('/').next().unwrap_or_default();
        let to = format!("ALTER ROLE {SUPERUSER} IN DATABASE {name} ");
        let settings = page.lines().filter_map(|line| {
            line.trim()
                .strip_prefix("ALTER ROLE peyk IN DATABASE peyk ")
                .map(|rest| format!("{to}{rest}"))
        });
        let settings: Vec<_> = settings.collect();
        assert!(!settings.is_empty(), "the page gives no settings");
        self.sql(url, &settings.join(" "));
    }

    /// Shuts the server down: connections are ended, new ones refused.
    pub fn stop(&mut self) {
        self.end(Signal::INT);
    }

    /// Ends the server as a crash does.
    pub fn kill(&mut self) {
        self.end(Signal::KILL);
    }

    fn end(&mut self, signal: Signal) {
        if let Some(process) = self.process.take() {
            process.end(signal);
        }
    }

    /// Whether it still runs.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.process.as_ref().is_some_and(Process::runs)
    }

    /// Starts the server again on the same port, after shutting it down if it still runs.
    pub fn restart(&mut self) {
        self.stop();
        self.run().unwrap_or_else(|why| panic!("PostgreSQL did not come back: {why}"));
    }

    /// Stops the server and all its backends in their tracks (SIGSTOP): it is reachable and
    /// answers nothing.
    pub fn pause(&self) {
        self.process.iter().for_each(Process::pause);
    }

    /// Lets a paused server go on.
    pub fn resume(&self) {
        self.process.iter().for_each(Process::resume);
    }
}

/// Writes a file that only the server may read.
fn keep(path: &Path, text: &str, user: User) -> Result<(), String> {
    let mut options = File::options();
    let written = options.write(true).create_new(true).mode(0o600).open(path);
    let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| format!("{} could not be written: {error}", path.display()))?;
    user.own(path)
}

fn own((name, value): &(&str, &str)) -> (String, String) {
    ((*name).to_owned(), (*value).to_owned())
}

fn folder_in(parent: &Path) -> Result<TempDir, String> {
    let folder = tempfile::Builder::new().prefix("testparts-postgres-").tempdir_in(parent);
    folder.map_err(|error| format!("no temporary folder: {error}"))
}

fn data(folder: &Path) -> std::path::PathBuf {
    folder.join("data")
}
