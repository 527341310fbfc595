//! A Prometheus server of one's own, and its tool that checks rules.
//!
//! It scrapes one address each second and keeps what it found in a temporary folder.
//! Never: a server that is shared with another test process.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::port;
use crate::process::{Process, Ready, Start};
use crate::programs::run;

const PACKAGE: &str = "prometheus";
const READY: &str = "Server is ready to receive web requests";

/// A running server.
#[derive(Debug)]
pub struct Prometheus {
    // Ends before its folder goes.
    _process: Process,
    port: u16,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts a server that scrapes `/metrics` of `target` as the job `peyk` and goes by a file of
    /// rules. It panics, with a sentence, when the server does not start.
    #[must_use]
    pub fn start(target: &str, rules: &Path) -> Self {
        Self::try_start(target, rules).unwrap_or_else(|why| panic!("Prometheus: {why}"))
    }

    fn try_start(target: &str, rules: &Path) -> Result<Self, String> {
        let mut why = String::new();
        for _ in 0..port::TRIES {
            let folder = tempfile::Builder::new().prefix("testparts-prometheus-").tempdir();
            let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
            let port = port::free()?;
            let config = format!(
                "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{:?}]\n\
                 scrape_configs:\n  - job_name: peyk\n    static_configs: [{{targets: [{target:?}]}}]\n",
                rules.display().to_string(),
            );
            let path = folder.path().join("prometheus.yml");
            std::fs::write(&path, config).map_err(|error| error.to_string())?;
            let mut command = Command::new("prometheus");
            command.arg(format!("--config.file={}", path.display()));
            command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
            command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
            let start = Start {
                command,
                package: PACKAGE,
                ready: Ready::Line(READY),
                folder: folder.path(),
            };
            match Process::start(start) {
                Ok(process) => return Ok(Self { _process: process, port, _folder: folder }),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// The port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What `promtool test rules` says of a file of tests. It panics when one fails.
    #[must_use]
    pub fn test_rules(tests: &Path) -> String {
        let tested = run(Command::new("promtool").args(["test", "rules"]).arg(tests), PACKAGE);
        tested.unwrap_or_else(|why| panic!("{why}"))
    }

    /// What `promtool check rules` says of a file. It panics when the file is refused.
    #[must_use]
    pub fn check_rules(rules: &Path) -> String {
        let checked = run(Command::new("promtool").args(["check", "rules"]).arg(rules), PACKAGE);
        checked.unwrap_or_else(|why| panic!("{why}"))
    }
}
