//! A proxy of one's own: tinyproxy for `CONNECT`, microsocks for SOCKS5.
//!
//! It lets everybody who knows the password go anywhere, for it listens on loopback only.
//! Never: a proxy that is shared with another test process.

use std::process::Command;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::port;
use crate::process::{Process, Ready, Start};

const USER: &str = "peyk";
const HTTP_PACKAGE: &str = "tinyproxy-bin";
const HTTP_READY: &str = "Accepting connections";
const SOCKS_PACKAGE: &str = "microsocks";

#[derive(Clone, Copy, Debug)]
enum Kind {
    Http,
    Socks5,
}

/// A running proxy. Methods panic, with a sentence, when it does not do as told.
#[derive(Debug)]
pub struct Proxy {
    // Ends before its folder goes.
    process: Option<Process>,
    kind: Kind,
    port: u16,
    password: String,
    folder: TempDir,
}

impl Proxy {
    /// Starts a proxy for HTTP that asks for this password.
    #[must_use]
    pub fn http(password: &str) -> Self {
        Self::start(Kind::Http, password)
    }

    /// Starts a proxy for SOCKS5 that asks for this password.
    #[must_use]
    pub fn socks5(password: &str) -> Self {
        Self::start(Kind::Socks5, password)
    }

    fn start(kind: Kind, password: &str) -> Self {
        Self::try_start(kind, password).unwrap_or_else(|why| panic!("{kind:?} proxy: {why}"))
    }

    fn try_start(kind: Kind, password: &str) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("testparts-proxy-").tempdir();
        let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
        let password = password.to_owned();
        let mut proxy = Self { process: None, kind, port: 0, password, folder };
        let mut why = String::new();
        for _ in 0..port::TRIES {
            proxy.port = port::free()?;
            match proxy.run() {
                Ok(()) => return Ok(proxy),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    fn run(&mut self) -> Result<(), String> {
        let (folder, port, password) = (self.folder.path(), self.port, &self.password);
        let start = match self.kind {
            Kind::Http => {
                let config = format!(
                    "Port {port}\nListen 127.0.0.1\nTimeout 600\nMaxClients 100\nLogLevel Info\n\
                     BasicAuth {USER} {password}\n"
                );
                let path = folder.join("tinyproxy.conf");
                std::fs::write(&path, config).map_err(|error| error.to_string())?;
                let mut command = Command::new("tinyproxy");
                command.arg("-d").arg("-c").arg(path);
                Start { command, package: HTTP_PACKAGE, ready: Ready::Line(HTTP_READY), folder }
            }
            Kind::Socks5 => {
                let mut command = Command::new("microsocks");
                command.args(["-i", "127.0.0.1", "-p", &port.to_string()]);
                command.args(["-u", USER, "-P", password]);
                // It says nothing when it is ready.
                Start { command, package: SOCKS_PACKAGE, ready: Ready::Port(port), folder }
            }
        };
        self.process = Some(Process::start(start)?);
        Ok(())
    }

    /// Its URL with user and password; the same after a restart.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = match self.kind {
            Kind::Http => "http",
            Kind::Socks5 => "socks5",
        };
        format!("{scheme}://{USER}:{}@127.0.0.1:{}", self.password, self.port)
    }

    /// The last lines that it wrote: where it connected to.
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

    /// Starts it again on the same port, after ending it if it still runs.
    pub fn restart(&mut self) {
        self.stop();
        self.run().unwrap_or_else(|why| panic!("the proxy did not come back: {why}"));
    }
}
