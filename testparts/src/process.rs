//! One running server: started, signalled, ended, together with all it started itself.
//!
//! A watchdog ends it when the process that started it is gone, however that happened: it reads
//! from a pipe that closes with us. It stands in a process group of its own, since a test that
//! hangs is ended by a signal to its whole group.
//! Never: a signal to a process that was already reaped.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::log::Log;
use crate::programs::cannot_start;

/// A server on a busy machine needs a second; this one hangs.
const READY_WITHIN: Duration = Duration::from_secs(60);
const END_WITHIN: Duration = Duration::from_secs(20);

/// Waits for the end of its input, then kills the server ($1) with its children, and removes its
/// folder ($2).
const WATCHDOG: &str = r#"
read -r _
kill -KILL "$1" $(cat "/proc/$1/task/$1/children" 2>/dev/null) 2>/dev/null
rm -rf "$2"
"#;

/// How to start a server and how to know that it is ready.
pub(crate) struct Start<'a> {
    pub(crate) command: Command,
    /// The package that brings the program.
    pub(crate) package: &'a str,
    /// How it is known that it accepts connections.
    pub(crate) ready: Ready,
    /// What the watchdog removes.
    pub(crate) folder: &'a Path,
}

/// What tells that a server accepts connections.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ready {
    /// A line of its log, of which this is part.
    Line(&'static str),
    /// Only that it does, on this port of loopback.
    Port(u16),
}

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: Log,
    watchdog: Child,
}

impl Process {
    /// Starts the server and waits until it accepts connections.
    pub(crate) fn start(start: Start<'_>) -> Result<Self, String> {
        let Start { mut command, package, ready, folder } = start;
        // One pipe for both streams: a server writes its log to either.
        let (reader, writer) = std::io::pipe().map_err(|error| error.to_string())?;
        let stdout = writer.try_clone().map_err(|error| error.to_string())?;
        command.stdin(Stdio::null()).stdout(stdout).stderr(writer);
        let child = command.spawn().map_err(|error| cannot_start(&command, package, &error))?;
        // Our ends of the pipe close with the command, or the log would never end.
        drop(command);
        let watchdog = watch(child.id(), folder)?;
        let line = match ready {
            Ready::Line(part) => Some(part),
            Ready::Port(_) => None,
        };
        let process = Self { child, log: Log::follow(reader, line), watchdog };
        match ready {
            Ready::Line(_) => process.log.await_ready(READY_WITHIN)?,
            Ready::Port(port) => process.log.await_port(port, READY_WITHIN)?,
        }
        Ok(process)
    }

    /// Whether it has not ended.
    pub(crate) fn runs(&self) -> bool {
        // What has ended is a zombie until it is reaped.
        let state = fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        state.is_ok_and(|line| !line.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
    }

    /// The last lines that it wrote.
    pub(crate) fn said(&self) -> String {
        self.log.tail()
    }

    /// Ends the server as `signal` asks, or by force if it does not follow.
    pub(crate) fn end(mut self, signal: Signal) {
        self.resume();
        self.signal(self.pid(), signal);
        self.log.await_end(END_WITHIN);
        self.kill();
    }

    /// Stops the server and its children where they are; connections stay open and silent.
    pub(crate) fn pause(&self) {
        // The parent first: a stopped parent starts no more children.
        self.signal(self.pid(), Signal::STOP);
        for child in self.children() {
            self.signal(child, Signal::STOP);
        }
    }

    /// Lets a paused server go on.
    pub(crate) fn resume(&self) {
        for child in self.children() {
            self.signal(child, Signal::CONT);
        }
        self.signal(self.pid(), Signal::CONT);
    }

    fn kill(&mut self) {
        for child in self.children() {
            self.signal(child, Signal::KILL);
        }
        // It may have ended by itself; then there is nothing to kill, only to reap.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.log.await_end(END_WITHIN);
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn children(&self) -> Vec<Pid> {
        let pid = self.child.id();
        let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let list = list.unwrap_or_default();
        list.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
    }

    /// A child may have ended meanwhile, which is no failure.
    fn signal(&self, pid: Pid, signal: Signal) {
        let _ = kill_process(pid, signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The watchdog first: what it would kill is about to be reaped.
        let _ = self.watchdog.kill();
        let _ = self.watchdog.wait();
        self.kill();
    }
}

fn watch(pid: u32, folder: &Path) -> Result<Child, String> {
    let mut command = Command::new("sh");
    command.args(["-c", WATCHDOG, "watchdog", &pid.to_string()]).arg(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.spawn().map_err(|error| cannot_start(&command, "dash", &error))
}
