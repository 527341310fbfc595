//! An empty PostgreSQL cluster, made once and copied for each server: a copy takes a tenth of the
//! time.
//!
//! It lies beside the test programs, under the server's version, so that it goes with them.
//! Never: a half-made template under its final name.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, process};

use crate::programs::{of_postgres, run};
use crate::user::User;

pub(crate) const PACKAGE: &str = "postgresql";
/// The superuser's name, without a password.
pub(crate) const SUPERUSER: &str = "postgres";

/// Puts an empty cluster into `data`, whose parent belongs to `user`.
pub(crate) fn copy_to(data: &Path, user: User) -> Result<(), String> {
    let template = path()?;
    if template.is_dir() {
        return copy(&template, data);
    }
    let mut initdb = Command::new(of_postgres("initdb"));
    initdb.args(["--no-sync", "--encoding=UTF8", "--locale=C", "--auth=trust"]);
    initdb.args(["--username", SUPERUSER, "--pgdata"]).arg(data);
    run(user.run(&mut initdb), PACKAGE)?;
    keep(data, &template)
}

/// Others may be doing the same at this moment: whoever renames first wins.
fn keep(data: &Path, template: &Path) -> Result<(), String> {
    let own = template.with_extension(process::id().to_string());
    copy(data, &own)?;
    if fs::rename(&own, template).is_err() {
        fs::remove_dir_all(&own).map_err(|error| format!("{}: {error}", own.display()))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    run(Command::new("cp").arg("-a").arg(from).arg(to), "coreutils").map(drop)
}

fn path() -> Result<PathBuf, String> {
    let version = run(Command::new(of_postgres("postgres")).arg("--version"), PACKAGE)?;
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name = format!("testparts-{}", version.chars().map(plain).collect::<String>());
    let program = env::current_exe().map_err(|error| format!("no path of our own: {error}"))?;
    Ok(program.with_file_name(name))
}
