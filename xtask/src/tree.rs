//! The project's files as (path, text) pairs, read once.
//!
//! Paths are relative to the workspace root and use `/`. What the root's `.gitignore` names is left
//! out; a file that is not UTF-8 counts as empty.
//! Never: changes anything, or runs another program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Every file of the project, in order of path.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the workspace that this crate belongs to.
    pub(crate) fn of_workspace() -> io::Result<Self> {
        Self::read(root())
    }

    /// Reads all files under `root`.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let ignored = Ignored::parse(&fs::read_to_string(root.join(".gitignore"))?);
        let mut tree = Self::default();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(root.join(&folder))? {
                let entry = entry?;
                let path = folder.join(entry.file_name());
                let name = path.to_string_lossy().replace('\\', "/");
                if ignored.covers(&name) {
                    continue;
                }
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() {
                    let text = String::from_utf8(fs::read(entry.path())?).unwrap_or_default();
                    tree.files.insert(name, text);
                }
            }
        }
        Ok(tree)
    }

    /// A tree made up for a test.
    #[cfg(test)]
    pub(crate) fn of(pairs: &[(&str, &str)]) -> Self {
        let files = pairs.iter().map(|&(path, text)| (path.to_owned(), text.to_owned()));
        Self { files: files.collect() }
    }

    /// All (path, text) pairs.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// All Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// The text of one file.
    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether there is a file or a folder at `path`.
    pub(crate) fn holds(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let inside = format!("{path}/");
        self.files.contains_key(path)
            || self
                .files
                .range(inside.clone()..)
                .next()
                .is_some_and(|(at, _)| at.starts_with(&inside))
    }

    /// Folders of all crates: those with a manifest that names a package.
    pub(crate) fn crates(&self) -> impl Iterator<Item = &str> {
        self.files().filter_map(|(path, text)| {
            let folder = path.strip_suffix("/Cargo.toml")?;
            text.lines().any(|line| line.trim() == "[package]").then_some(folder)
        })
    }
}

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// The few shapes of `.gitignore` lines that the root file uses: `/name` and `*.ending`.
struct Ignored {
    names: Vec<String>,
    endings: Vec<String>,
}

impl Ignored {
    fn parse(text: &str) -> Self {
        let lines = || text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        Self {
            names: lines()
                .filter_map(|line| line.strip_prefix('/'))
                .map(|name| name.trim_end_matches('/').to_owned())
                .collect(),
            endings: lines().filter_map(|line| line.strip_prefix('*')).map(str::to_owned).collect(),
        }
    }

    fn covers(&self, path: &str) -> bool {
        let last = path.rsplit('/').next().unwrap_or(path);
        path == ".git"
            || self.names.iter().any(|name| name == path)
            || self.endings.iter().any(|ending| last.ends_with(ending.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_ignores_is_left_out() {
        let ignored = Ignored::parse("# build\n/target\n/peyk-data/\n*.profraw\n");
        for path in ["target", ".git", "peyk-data", "a/b.profraw"] {
            assert!(ignored.covers(path), "{path}");
        }
        for path in ["docs/peyk-data", "crates/domain/src/target", "README.md"] {
            assert!(!ignored.covers(path), "{path}");
        }
    }

    #[test]
    fn files_folders_and_crates_are_found() {
        let tree = Tree::of(&[
            ("Cargo.toml", "[workspace]"),
            ("crates/a/Cargo.toml", "[package]\nname = \"a\""),
            ("crates/a/src/lib.rs", "//! A."),
        ]);
        assert!(tree.holds("crates/a") && tree.holds("crates/a/src/") && tree.holds("Cargo.toml"));
        assert!(!tree.holds("crates/b") && !tree.holds("crates/a/sr"));
        assert_eq!(tree.crates().collect::<Vec<_>>(), ["crates/a"]);
        assert_eq!(tree.rust().count(), 1);
    }

    #[test]
    fn the_workspace_is_read() {
        let tree = Tree::of_workspace().unwrap();
        assert!(tree.get("xtask/src/tree.rs").is_some_and(|text| text.starts_with("//!")));
        assert!(!tree.holds(".git") && !tree.holds("target"));
    }
}
