//! Every Rust file is compiled, and every page of `docs/` can be reached by a link.
//!
//! A file that no `mod` names is edited by people who believe that it does something.
//! Never: follows `#[path]` or looks at what a link says.

use std::collections::BTreeSet;

use super::links::{links, target};
use crate::finding::Finding;
use crate::modules::reach;
use crate::tree::Tree;

/// The rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = rust(tree);
    findings.extend(pages(tree));
    findings.sort();
    findings
}

fn rust(tree: &Tree) -> Vec<Finding> {
    let reached: BTreeSet<String> =
        tree.crates().flat_map(|krate| reach(tree, krate).files).collect();
    let dead = tree.rust().filter(|(path, _)| !reached.contains(*path));
    dead.map(|(path, _)| Finding::new(path, 0, "no `mod` leads to this file")).collect()
}

fn pages(tree: &Tree) -> Vec<Finding> {
    let is_page = |path: &&str| path.starts_with("docs/") && path.ends_with(".md");
    let mut linked = BTreeSet::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".md")) {
        linked.extend(
            links(text).iter().filter_map(|link| target(path, link.to)).filter(|to| to != path),
        );
    }
    let dead =
        tree.files().map(|(path, _)| path).filter(is_page).filter(|path| !linked.contains(*path));
    dead.map(|path| Finding::new(path, 0, "no other page links to this page")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_mod_names_is_found() {
        let tree = Tree::of(&[
            ("a/Cargo.toml", "[package]"),
            ("a/src/lib.rs", "mod one; // mod two;"),
            ("a/src/one.rs", ""),
            ("a/src/two.rs", ""),
        ]);
        assert_eq!(check(&tree), [Finding::new("a/src/two.rs", 0, "no `mod` leads to this file")]);
    }

    #[test]
    fn a_page_that_nobody_links_to_is_found() {
        let tree = Tree::of(&[
            ("README.md", "[index](docs/README.md)"),
            ("docs/README.md", "[one](one.md#part) and `two.md`"),
            ("docs/one.md", ""),
            ("docs/two.md", "[self](two.md)"),
        ]);
        let paths: Vec<_> = check(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(paths, ["docs/two.md"]);
    }
}
