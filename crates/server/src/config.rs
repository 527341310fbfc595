//! Settings: the defaults, then the file, then the environment; read, then checked.
//!
//! In: a [`Source`] and the name of a file. Out: [`Settings`], or one line that names the setting
//! and the rule.
//! Never: act on a setting; nothing is opened or created here.

pub(crate) mod alerts;
pub(crate) mod bounds;
mod error;
pub(crate) mod hidden;
mod nodes;
mod proxy;
pub(crate) mod raw;
mod reader;
pub(crate) mod settings;
pub(crate) mod smtp;
pub(crate) mod source;
pub(crate) mod telemetry;

use std::path::Path;

pub(crate) use error::ConfigError;
pub(crate) use nodes::NodePort;
use raw::Raw;
pub(crate) use settings::{Database, Settings};
pub(crate) use source::Source;

/// The file that is read when none is named.
const FILE: &str = "peyk.toml";

/// Reads and checks all settings.
pub(crate) fn load(source: &dyn Source, file: Option<&Path>) -> Result<Settings, ConfigError> {
    let mut raw = Raw::defaults()?;
    let path = file.unwrap_or_else(|| Path::new(FILE));
    match source.file(path) {
        Ok(text) => raw.overlay_file(&text, &path.display().to_string())?,
        Err(fault) if file.is_none() && fault.kind() == std::io::ErrorKind::NotFound => {}
        Err(fault) => {
            return Err(ConfigError(format!("cannot read {}: {fault}", path.display())));
        }
    }
    raw.overlay_environment(source.variables())?;
    Settings::from_raw(&raw)
}

#[cfg(test)]
mod tests;
