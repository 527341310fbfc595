//! Log lines on standard error, pretty or JSON.
//!
//! Never: standard output, which belongs to what commands print for scripts.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::config::ConfigError;
use crate::config::settings::{LogFormat, Settings};

/// Begins logging; the second call in a process is an error.
pub(crate) fn start(settings: &Settings) -> Result<(), ConfigError> {
    let level = EnvFilter::builder()
        .parse(&settings.log_level)
        .map_err(|fault| ConfigError(format!("`log.level` is wrong: {fault}")))?;
    let lines = tracing_subscriber::fmt().with_env_filter(level).with_writer(std::io::stderr);
    let begun = match settings.log_format {
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).try_init(),
        LogFormat::Pretty => lines.with_ansi(std::io::stderr().is_terminal()).try_init(),
    };
    begun.map_err(|fault| ConfigError(format!("cannot begin logging: {fault}")))
}
