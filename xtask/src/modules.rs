//! Which file a `mod` names, and which files are tests.
//!
//! In: the tree. Out: files reached from the crate roots, files that only tests are built from, and
//! the module path of a file inside its crate.
//! Never: follows `#[path]`; a file moved that way counts as dead, which is meant.

use std::collections::BTreeSet;

use crate::lexer::tokens;
use crate::source::declared;
use crate::tree::Tree;

/// Crate roots that Cargo finds by itself under a crate's folder.
pub(crate) fn roots<'a>(tree: &'a Tree, krate: &'a str) -> impl Iterator<Item = &'a str> {
    tree.rust().map(|(path, _)| path).filter(move |path| {
        let Some(inner) = path.strip_prefix(krate).and_then(|path| path.strip_prefix('/')) else {
            return false;
        };
        let parts: Vec<&str> = inner.split('/').collect();
        matches!(
            parts.as_slice(),
            ["build.rs"]
                | ["src", "lib.rs" | "main.rs"]
                | ["src", "bin", _]
                | ["src", "bin", _, "main.rs"]
                | ["tests" | "benches" | "examples", _]
                | ["tests" | "benches" | "examples", _, "main.rs"]
        )
    })
}

/// Where the file of `mod name;` in the file `path` may be.
pub(crate) fn places(path: &str, is_root: bool, name: &str) -> [String; 2] {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.trim_end_matches(".rs");
    let name = name.trim_start_matches("r#");
    let inside =
        if is_root || stem == "mod" { folder.to_owned() } else { format!("{folder}/{stem}") };
    [format!("{inside}/{name}.rs"), format!("{inside}/{name}/mod.rs")]
}

/// What a walk along `mod` declarations finds.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    /// Every file that is compiled.
    pub(crate) files: BTreeSet<String>,
    /// Those of them that are compiled for tests, benches or examples only.
    pub(crate) tests: BTreeSet<String>,
}

/// Walks from the roots of one crate along its `mod` declarations.
pub(crate) fn reach(tree: &Tree, krate: &str) -> Reached {
    let mut reached = Reached::default();
    let source = format!("{krate}/src/");
    let mut waiting: Vec<(String, bool, bool)> = roots(tree, krate)
        .map(|path| {
            (path.to_owned(), true, !path.starts_with(&source) && !path.ends_with("build.rs"))
        })
        .collect();
    while let Some((path, is_root, test)) = waiting.pop() {
        let Some(text) = tree.get(&path) else { continue };
        for module in declared(&tokens(text)) {
            for place in places(&path, is_root, &module.name) {
                if !reached.files.contains(&place) {
                    waiting.push((place, false, test || module.test));
                }
            }
        }
        if test {
            reached.tests.insert(path.clone());
        }
        reached.files.insert(path);
    }
    reached
}

/// Files of all crates that only tests are built from.
pub(crate) fn test_files(tree: &Tree) -> BTreeSet<String> {
    tree.crates().flat_map(|krate| reach(tree, krate).tests).collect()
}

/// The module path of a file under a crate's `src`; empty for the root.
pub(crate) fn module_of(krate: &str, path: &str) -> Option<Vec<String>> {
    let inner = path.strip_prefix(krate)?.strip_prefix("/src/")?.strip_suffix(".rs")?;
    let mut parts: Vec<String> = inner.split('/').map(str::to_owned).collect();
    let top = parts.len() == 1 && matches!(parts[0].as_str(), "lib" | "main");
    if top || parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        Tree::of(&[
            ("a/Cargo.toml", "[package]"),
            ("a/src/lib.rs", "mod one; #[cfg(test)] mod doubles;"),
            ("a/src/one.rs", "mod two; #[cfg(test)] mod tests;"),
            ("a/src/one/two.rs", ""),
            ("a/src/one/tests.rs", "mod more;"),
            ("a/src/one/tests/more.rs", ""),
            ("a/src/doubles/mod.rs", "mod fake;"),
            ("a/src/doubles/fake.rs", ""),
            ("a/src/dead.rs", ""),
            ("a/tests/it/main.rs", "mod helper;"),
            ("a/tests/it/helper.rs", ""),
        ])
    }

    #[test]
    fn declarations_lead_to_files() {
        let files = reach(&tree(), "a").files;
        assert_eq!(files.len(), 9, "{files:?}");
        assert!(!files.contains("a/src/dead.rs"));
    }

    #[test]
    fn what_hangs_under_a_test_module_is_test() {
        let tests = test_files(&tree());
        let expected = [
            "a/src/doubles/fake.rs",
            "a/src/doubles/mod.rs",
            "a/src/one/tests.rs",
            "a/src/one/tests/more.rs",
            "a/tests/it/helper.rs",
            "a/tests/it/main.rs",
        ];
        assert_eq!(tests.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn files_know_their_module() {
        let of = |path| module_of("a", path).map(|parts| parts.join("::"));
        assert_eq!(of("a/src/lib.rs").as_deref(), Some(""));
        assert_eq!(of("a/src/one/two.rs").as_deref(), Some("one::two"));
        assert_eq!(of("a/src/doubles/mod.rs").as_deref(), Some("doubles"));
        assert_eq!(of("a/tests/it/main.rs"), None);
    }
}
