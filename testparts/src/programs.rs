//! Where the servers' programs are.
//!
//! Debian keeps PostgreSQL's out of the search path, one folder per version; the newest is taken,
//! and the search path only if there is none.
//! Never: installs anything.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Command, Output};

const DEBIAN: &str = "/usr/lib/postgresql";

/// A program of PostgreSQL, by its name.
pub(crate) fn of_postgres(name: &str) -> PathBuf {
    let versions = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let versions = versions.filter_map(|version| {
        let number: u32 = version.file_name().to_str()?.parse().ok()?;
        let program = version.path().join("bin").join(name);
        program.is_file().then_some((number, program))
    });
    versions.max().map_or_else(|| name.into(), |(_, program)| program)
}

/// Runs to the end what should succeed; returns what it wrote.
pub(crate) fn run(command: &mut Command, package: &str) -> Result<String, String> {
    let Output { status, stdout, stderr } =
        command.output().map_err(|error| cannot_start(command, package, &error))?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).trim_end().to_owned());
    }
    let program = command.get_program().display();
    Err(format!("{program} failed, {status}: {}", String::from_utf8_lossy(&stderr)))
}

/// The sentence for a program that did not start.
pub(crate) fn cannot_start(command: &Command, package: &str, error: &std::io::Error) -> String {
    let program = command.get_program().display();
    if error.kind() == ErrorKind::NotFound {
        return format!(
            "{program} is not installed: install the package {package} (on Debian `apt-get \
             install {package}`), or run ./test, which does"
        );
    }
    format!("{program} could not be started: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let refused = run(&mut Command::new("no-such-program"), "some-package").unwrap_err();
        assert!(refused.contains("no-such-program is not installed"), "{refused}");
        assert!(refused.contains("apt-get install some-package"), "{refused}");
    }

    #[test]
    fn a_failure_carries_what_the_program_said() {
        let failed = run(Command::new("sh").args(["-c", "echo why >&2; exit 3"]), "x").unwrap_err();
        assert!(failed.contains("why") && failed.contains('3'), "{failed}");
    }
}
