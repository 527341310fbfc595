//! A server under test in a process of its own: peyk on a data directory, or the relay floor.
//!
//! In: a program and its environment. Out: its address once it says `listening on http://…`, its
//! memory and CPU time, and the ways to end it.
//! Never: outlive the bench; a child that is dropped is killed.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use clap::Args;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::{Instant, timeout};

use crate::fault::{Fault, Result, While as _};
use crate::machine::{self, CpuMark, Memory};
use crate::psql;

/// Longest wait for the line with the address.
const START_MAX: Duration = Duration::from_secs(60);

/// Longest wait for an orderly end.
const STOP_MAX: Duration = Duration::from_secs(40);

/// Which peyk, where, and with what settings.
#[derive(Clone, Debug, Args)]
pub(crate) struct Peyk {
    /// The peyk binary, a release build; by default the one beside this program.
    #[arg(long)]
    peyk: Option<PathBuf>,
    /// Data directories are made in here; by default in the system's directory for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Keep everything in this PostgreSQL database instead of SQLite; its schema `peyk` is dropped
    /// before each run, with `psql`.
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// More settings for peyk, for example `PEYK_WINDOW__MAX=32`; repeatable.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
}

impl Peyk {
    /// A fresh data directory, removed when dropped, and a database without anything of peyk's.
    pub(crate) fn data_dir(&self) -> Result<TempDir> {
        self.clear()?;
        self.scratch_dir()
    }

    /// A data directory for one more node on the same database.
    pub(crate) fn scratch_dir(&self) -> Result<TempDir> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("peyk-bench-");
        match &self.dir {
            Some(dir) => {
                builder.tempdir_in(dir).while_(&format!("making a directory in {}", dir.display()))
            }
            None => builder.tempdir().while_("making a temporary directory"),
        }
    }

    /// The PostgreSQL database that everything is kept in, if it is not SQLite.
    pub(crate) fn database(&self) -> Option<&str> {
        self.database_url.as_deref()
    }

    /// The same with one more setting, for all that is started.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut with = self.clone();
        with.settings.push(format!("{name}={value}"));
        with
    }

    /// Takes what an earlier run left in a database away.
    pub(crate) fn clear(&self) -> Result<()> {
        let Some(url) = self.database() else { return Ok(()) };
        psql::run(url, "DROP SCHEMA IF EXISTS peyk CASCADE", &[]).map(drop)
    }

    /// Starts `peyk serve` on a data directory; `more` are settings of this measurement, ours are
    /// overridden by `--set`.
    pub(crate) async fn serve(&self, data_dir: &Path, more: &[(&str, &str)]) -> Result<Child> {
        if machine::file_system(data_dir).as_deref() == Some("tmpfs") {
            eprintln!(
                "note: {} is a tmpfs, where a sync costs nothing; use --dir",
                data_dir.display()
            );
        }
        let mut command = self.command(data_dir)?;
        command.arg("serve").env("PEYK_LISTEN_ADDRESS", "127.0.0.1:0");
        command.env("PEYK_ALLOWED_TARGETS", "127.0.0.0/8").env("PEYK_LOG__LEVEL", "warn");
        command.envs(more.iter().copied()).envs(self.given()?);
        Child::start(command, "peyk serve").await
    }

    /// An operator's token of the installation in a data directory.
    pub(crate) async fn token(&self, data_dir: &Path) -> Result<String> {
        let mut command = self.command(data_dir)?;
        command.arg("token").envs(self.given()?).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.while_("running peyk token")?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Fault::new(format!("peyk token: {}: {error}", output.status)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn command(&self, data_dir: &Path) -> Result<Command> {
        let path = match &self.peyk {
            Some(path) => path.clone(),
            None => std::env::current_exe()?.with_file_name("peyk"),
        };
        if !path.is_file() {
            let text =
                format!("there is no peyk binary at {}; name one with --peyk", path.display());
            return Err(Fault::new(text));
        }
        let mut command = Command::new(path);
        command.env("PEYK_DATA_DIR", data_dir);
        if let Some(url) = &self.database_url {
            command.env("PEYK_DATABASE_URL", url);
        }
        Ok(command)
    }

    fn given(&self) -> Result<Vec<(&str, &str)>> {
        self.settings
            .iter()
            .map(|text| {
                text.split_once('=')
                    .ok_or_else(|| Fault::new(format!("--set takes NAME=VALUE, not {text}")))
            })
            .collect()
    }
}

/// A running server.
pub(crate) struct Child {
    process: tokio::process::Child,
    pid: u32,
    /// Where it listens.
    pub(crate) addr: SocketAddr,
    /// From the start of the process to the line with the address.
    pub(crate) start_took: Duration,
    /// When that line came.
    pub(crate) listening_us: u64,
}

impl Child {
    /// Starts the relay floor, forwarding to `target`.
    pub(crate) async fn relay(target: &str) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["relay", "--target", target]);
        Self::start(command, "the relay").await
    }

    async fn start(mut command: Command, name: &str) -> Result<Self> {
        let began = Instant::now();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().while_(&format!("starting {name}"))?;
        let stdout = process.stdout.take().ok_or_else(|| Fault::new("no pipe to the child"))?;
        let mut lines = BufReader::new(stdout).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await? {
                if let Some(addr) = address_in(&line) {
                    return Ok(addr);
                }
            }
            Err(Fault::new(format!("{name} ended before it listened; its errors are above")))
        };
        let addr = timeout(START_MAX, listening)
            .await
            .while_(&format!("waiting for {name} to listen"))??;
        let listening_us = machine::now_us();
        let start_took = began.elapsed();
        let pid = process.id().ok_or_else(|| Fault::new(format!("{name} ended at once")))?;
        // A pipe that nobody reads would block the child one day.
        tokio::spawn(async move { while matches!(lines.next_line().await, Ok(Some(_))) {} });
        Ok(Self { process, pid, addr, start_took, listening_us })
    }

    /// Its process id.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Memory now.
    pub(crate) fn memory(&self) -> Result<Memory> {
        machine::memory(self.pid)
    }

    /// User and system seconds that it has used.
    pub(crate) fn cpu_s(&self) -> Result<f64> {
        machine::cpu_s(self.pid)
    }

    /// CPU used so far by it, by us, by all.
    pub(crate) fn cpu(&self) -> Result<CpuMark> {
        CpuMark::now(self.pid)
    }

    /// Ends it at once, as a crash would, and waits until it is gone.
    pub(crate) async fn kill(&mut self) -> Result<()> {
        self.process.kill().await.while_("killing the server")
    }

    /// Asks it to end in order.
    pub(crate) async fn terminate(&self) -> Result<()> {
        // The standard library can only kill; every shell can send the rest.
        let status = Command::new("sh")
            .args(["-c", &format!("kill -TERM {}", self.pid)])
            .status()
            .await
            .while_("running kill -TERM")?;
        if status.success() { Ok(()) } else { Err(Fault::new("kill -TERM found no such process")) }
    }

    /// Waits for it to end by itself; `None` when it did not in time.
    pub(crate) async fn ended_within(&mut self, at_most: Duration) -> Result<Option<ExitStatus>> {
        match timeout(at_most, self.process.wait()).await {
            Ok(status) => Ok(Some(status?)),
            Err(_elapsed) => Ok(None),
        }
    }

    /// Asks it to end, waits, and answers how long that took.
    pub(crate) async fn stop(mut self) -> Result<Duration> {
        let began = Instant::now();
        self.terminate().await?;
        match self.ended_within(STOP_MAX).await? {
            Some(_status) => Ok(began.elapsed()),
            None => {
                Err(Fault::new(format!("the server did not end within {STOP_MAX:?} of SIGTERM")))
            }
        }
    }
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("listening on http://")?;
    rest.split_whitespace().next()?.trim_end_matches('/').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_its_line() {
        let addr = address_in("listening on http://127.0.0.1:8071").unwrap();
        assert_eq!(addr.port(), 8071);
        assert_eq!(address_in("INFO listening on http://127.0.0.1:1/ now").unwrap().port(), 1);
        assert_eq!(address_in("listening soon"), None);
    }
}
