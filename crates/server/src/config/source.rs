//! Where settings come from: files and the environment.
//!
//! Never: interpret; the only place in Peyk that reads the environment.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use resilience::FromOs;

/// A place to read settings from.
pub(crate) trait Source {
    /// All variables of the environment.
    fn variables(&self) -> BTreeMap<String, String>;
    /// The text of a file.
    fn file(&self, path: &Path) -> io::Result<String>;
}

/// The process's own environment and files.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Process;

impl Source for Process {
    fn variables(&self) -> BTreeMap<String, String> {
        // Other people's variables may hold anything; ours are checked when they are read.
        let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect()
    }

    fn file(&self, path: &Path) -> io::Result<String> {
        std::fs::read_to_string(path)
    }
}

/// A new directory for things that need not last, where the system keeps such.
pub(crate) fn scratch_directory() -> Result<PathBuf, String> {
    let mut name = [0; 8];
    FromOs::fill(&mut name).map_err(|fault| format!("no random numbers: {fault}"))?;
    let path = std::env::temp_dir().join(format!("peyk-demo-{:016x}", u64::from_be_bytes(name)));
    match std::fs::create_dir(&path) {
        Ok(()) => Ok(path),
        Err(fault) => Err(format!("cannot make {}: {fault}", path.display())),
    }
}
