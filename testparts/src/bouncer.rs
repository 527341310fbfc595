//! A PgBouncer of one's own before a PostgreSQL server, in transaction mode: a session of the
//! server belongs to a client for one transaction.
//!
//! Never: a pooler that is shared with another test process.

use std::fs;
use std::process::Command;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::port;
use crate::postgres::Postgres;
use crate::process::{Process, Ready, Start};
use crate::template::SUPERUSER;
use crate::user::User;

const PACKAGE: &str = "pgbouncer";

/// A running pooler. Methods panic, with a sentence, when it does not do as told.
#[derive(Debug)]
pub struct PgBouncer {
    // Ends before its folder goes.
    process: Option<Process>,
    port: u16,
    _folder: TempDir,
}

impl PgBouncer {
    /// Starts a pooler that has at most so many sessions of the server for each database.
    #[must_use]
    pub fn start(before: &Postgres, sessions: usize) -> Self {
        Self::try_start(before, sessions).unwrap_or_else(|why| panic!("PgBouncer: {why}"))
    }

    fn try_start(before: &Postgres, sessions: usize) -> Result<Self, String> {
        let user = User::not_root()?;
        let folder = tempfile::Builder::new().prefix("testparts-pgbouncer-").tempdir();
        let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
        user.own(folder.path())?;
        let (users, config) = (folder.path().join("users"), folder.path().join("pgbouncer.ini"));
        let told = |fault: std::io::Error| fault.to_string();
        fs::write(&users, format!("\"{SUPERUSER}\" \"\"\n")).map_err(told)?;
        let mut why = String::new();
        for _ in 0..port::TRIES {
            let port = port::free()?;
            let text = format!(
                "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
                 listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {}\n\
                 pool_mode = transaction\ndefault_pool_size = {sessions}\nmax_client_conn = 500\n",
                before.port(),
                users.display(),
            );
            fs::write(&config, text).map_err(told)?;
            let mut command = Command::new("pgbouncer");
            user.run(command.arg(&config)).current_dir(folder.path());
            let ready = Ready::Port(port);
            match Process::start(Start { command, package: PACKAGE, ready, folder: folder.path() })
            {
                Ok(process) => return Ok(Self { process: Some(process), port, _folder: folder }),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// `postgres://postgres@127.0.0.1:…/DATABASE`, through it.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{SUPERUSER}@127.0.0.1:{}/{database}", self.port)
    }

    /// The last lines that it wrote.
    #[must_use]
    pub fn said(&self) -> String {
        self.process.as_ref().map(Process::said).unwrap_or_default()
    }

    /// Ends it; its connections break and new ones are refused.
    pub fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            process.end(Signal::TERM);
        }
    }
}
