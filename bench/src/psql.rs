//! Statements to a PostgreSQL database under measurement, by the program `psql`.
//!
//! In: a URL and statements, with values for `:names` in them. Out: what they give, a line for each
//! row, `|` between columns.
//! Never: be called while the clock of a measurement runs.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::fault::{Fault, Result, While as _};

/// Runs statements, each in a transaction of its own.
pub(crate) fn run(url: &str, statements: &str, values: &[(&str, String)]) -> Result<String> {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url]);
    for (name, value) in values {
        psql.arg("-v").arg(format!("{name}={value}"));
    }
    psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = psql.spawn().while_("running psql")?;
    if let Some(mut stdin) = process.stdin.take() {
        stdin.write_all(statements.as_bytes()).while_("telling psql what to do")?;
    }
    let output = process.wait_with_output().while_("running psql")?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(Fault::new(format!("psql: {}", String::from_utf8_lossy(&output.stderr).trim())))
}
