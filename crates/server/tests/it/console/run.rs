//! The binary as a command of its own, with the address and the token of a server.
//!
//! Never: a terminal; what would ask is refused.

use std::process::{Command, Stdio};

use crate::support::Server;

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// What it printed, if it succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out
    }
}

/// The command, not yet started.
pub(crate) fn command(server: &Server, arguments: &[&str]) -> Command {
    let mut command = Command::new(crate::support::server::PEYK);
    command.args(arguments).current_dir(server.dir()).env_clear().stdin(Stdio::null());
    command.env("PEYK_SERVER", format!("http://{}", server.address()));
    command.env("PEYK_TOKEN", &server.token);
    command
}

/// Runs a command to its end.
pub(crate) fn peyk(server: &Server, arguments: &[&str]) -> Ended {
    peyk_with(server, arguments, |_| {})
}

/// Runs a changed command to its end.
pub(crate) fn peyk_with(
    server: &Server,
    arguments: &[&str],
    change: impl FnOnce(&mut Command),
) -> Ended {
    let mut command = command(server, arguments);
    change(&mut command);
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    Ended { code, out: text(output.stdout), err: text(output.stderr) }
}
