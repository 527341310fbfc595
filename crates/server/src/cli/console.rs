//! Commands against a running server: what they take from this process, how they end.
//!
//! Never: a command of its own; `crates/console` has them.

use console::{Command, Failure, Surroundings};

use crate::app;
use crate::config::Source as _;
use crate::config::raw::{SERVER, TOKEN};
use crate::config::source::Process;

/// Runs one.
pub(super) fn run(command: Command) -> Result<(), Failure> {
    let mut variables = Process.variables();
    let mut given = |name| variables.remove(name).filter(|text| !text.is_empty());
    let around = Surroundings { server: given(SERVER), token: given(TOKEN), clock: app::clock() };
    console::run(command, &around)
}
