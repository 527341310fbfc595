//! The secret that tokens are signed with: the one in the settings, else one of this data
//! directory.
//!
//! It is made at the first start of a server, readable by its owner only. Two processes that start
//! at once end up with the same.
//! Never: print it, or replace one that is there.

use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use resilience::FromOs;

use crate::config::Settings;

const FILE: &str = "jwt_secret";

/// The secret in force, made when there is none yet.
pub(super) fn read_or_make(settings: &Settings) -> Result<String, String> {
    match &settings.jwt_secret {
        Some(secret) => Ok(secret.reveal().to_owned()),
        None => in_directory(&settings.data_dir),
    }
}

/// The secret in force; a token under one that was made only now would fit no server.
pub(crate) fn read(settings: &Settings) -> Result<String, String> {
    if let Some(secret) = &settings.jwt_secret {
        return Ok(secret.reveal().to_owned());
    }
    let path = settings.data_dir.join(FILE);
    found(&path)?.ok_or_else(|| {
        format!(
            "there is no {}: start `peyk serve` first, or name its data directory with --config or \
             PEYK_DATA_DIR",
            path.display()
        )
    })
}

fn in_directory(data_dir: &Path) -> Result<String, String> {
    let path = data_dir.join(FILE);
    if let Some(secret) = found(&path)? {
        return Ok(secret);
    }
    std::fs::create_dir_all(data_dir)
        .map_err(|fault| said("make the directory of", &path, &fault))?;
    make(data_dir, &path).map_err(|fault| said("make", &path, &fault))?;
    found(&path)?.ok_or_else(|| said("read", &path, &ErrorKind::NotFound.into()))
}

fn said(what: &str, path: &Path, fault: &std::io::Error) -> String {
    format!("cannot {what} {}: {fault}; or set jwt_secret", path.display())
}

/// The secret in this file, if there is one.
fn found(path: &Path) -> Result<Option<String>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => checked(path, &text).map(Some),
        Err(fault) if fault.kind() == ErrorKind::NotFound => Ok(None),
        Err(fault) => Err(said("read", path, &fault)),
    }
}

fn checked(path: &Path, text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.len() >= 16 {
        return Ok(text.to_owned());
    }
    Err(format!(
        "{} holds no secret of 16 characters or more: delete it to have one made",
        path.display()
    ))
}

/// Writes a whole file under another name first, then gives it its name unless that is taken by
/// now.
fn make(data_dir: &Path, path: &Path) -> std::io::Result<()> {
    let mut bytes = [0; 32];
    let mut name = [0; 8];
    FromOs::fill(&mut bytes)
        .and_then(|()| FromOs::fill(&mut name))
        .map_err(std::io::Error::other)?;
    let draft = data_dir.join(format!("{FILE}.{}", URL_SAFE_NO_PAD.encode(name)));
    let mut file = std::fs::OpenOptions::new();
    let mut file = file.write(true).create_new(true).mode(0o600).open(&draft)?;
    let linked = file
        .write_all(URL_SAFE_NO_PAD.encode(bytes).as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::hard_link(&draft, path));
    let _left = std::fs::remove_file(&draft);
    match linked {
        Err(fault) if fault.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_secret_is_made_once_and_only_its_owner_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = dir.path().join("a/b");
        let first = in_directory(&data_dir).unwrap();
        assert_eq!(first.len(), 43);
        assert_eq!(in_directory(&data_dir).unwrap(), first);
        let mode = std::fs::metadata(data_dir.join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&data_dir).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn an_empty_file_is_not_taken_for_a_secret() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "\n").unwrap();
        let said = in_directory(dir.path()).unwrap_err();
        assert!(said.contains("delete it"), "{said}");
        assert!(!said.contains('\n'));
    }
}
