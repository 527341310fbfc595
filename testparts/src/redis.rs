//! A Redis server of one's own.
//!
//! It keeps nothing on disk unless it is started with a setting that says so: a restart then finds
//! it empty, as Redis without persistence is.
//! Never: a server that is shared with another test process.

use std::process::Command;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::port;
use crate::process::{Process, Ready, Start};

const PACKAGE: &str = "redis-server";
const READY: &str = "Ready to accept connections";

/// A running server. Methods panic, with a sentence, when the server does not do as told.
#[derive(Debug)]
pub struct Redis {
    // Ends before its folder goes.
    process: Option<Process>,
    port: u16,
    settings: Vec<(String, String)>,
    folder: TempDir,
}

impl Redis {
    /// Starts a server that keeps nothing on disk.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with further settings, by their names in `redis.conf`, for example
    /// `("appendonly", "yes")`.
    #[must_use]
    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        Self::try_start(settings).unwrap_or_else(|why| panic!("Redis: {why}"))
    }

    fn try_start(settings: &[(&str, &str)]) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("testparts-redis-").tempdir();
        let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let settings = settings.iter().map(own).collect();
        let mut redis = Self { process: None, port: 0, settings, folder };
        let mut why = String::new();
        for _ in 0..port::TRIES {
            redis.port = port::free()?;
            match redis.run() {
                Ok(()) => return Ok(redis),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    fn run(&mut self) -> Result<(), String> {
        let mut command = Command::new("redis-server");
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"]);
        command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(self.folder.path());
        for (name, value) in &self.settings {
            command.arg(format!("--{name}")).arg(value);
        }
        let folder = self.folder.path();
        let start = Start { command, package: PACKAGE, ready: Ready::Line(READY), folder };
        self.process = Some(Process::start(start)?);
        Ok(())
    }

    /// `redis://127.0.0.1:…/`; the same after a restart.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// The port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Shuts the server down in order; connections break and new ones are refused.
    pub fn stop(&mut self) {
        self.end(Signal::TERM);
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

    /// Starts the server again on the same port, after shutting it down if it still runs.
    pub fn restart(&mut self) {
        self.stop();
        self.run().unwrap_or_else(|why| panic!("Redis did not come back: {why}"));
    }

    /// Stops the server in its tracks (SIGSTOP): it is reachable and answers nothing.
    pub fn pause(&self) {
        self.process.iter().for_each(Process::pause);
    }

    /// Lets a paused server go on.
    pub fn resume(&self) {
        self.process.iter().for_each(Process::resume);
    }
}
