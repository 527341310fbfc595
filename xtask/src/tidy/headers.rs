//! Each file opens with its contract; in the product it also says what it must never do.
//!
//! What a file must never do is what a reader cannot see from what it does.
//! Never: judges the words.

use crate::finding::{Exceptions, Finding, excuse};
use crate::modules::test_files;
use crate::tree::Tree;

/// Files without such an opening, with the reason.
const EXCEPTIONS: Exceptions = &[];

/// The rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let tests = test_files(tree);
    let mut findings = Vec::new();
    for (path, text) in tree.rust() {
        let header: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
        let product = path.starts_with("crates/") && !tests.contains(path);
        if header.is_empty() {
            findings.push(Finding::new(path, 1, "opens without `//!`: say what the file is for"));
        } else if product && !header.iter().any(|line| line.contains("Never:")) {
            let text = "the header has no sentence `Never: …`: what must this file not do?";
            findings.push(Finding::new(path, 1, text));
        }
    }
    excuse(findings, EXCEPTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[("crates/a/Cargo.toml", "[package]"), (path, text)])).len()
    }

    #[test]
    fn a_file_without_opening_is_found() {
        assert_eq!(found("xtask/src/main.rs", "use std::io;\n//! Late.\n"), 1);
        assert_eq!(found("xtask/src/main.rs", "//! Here.\n"), 0);
    }

    #[test]
    fn the_product_says_what_it_never_does() {
        assert_eq!(found("crates/a/src/lib.rs", "//! Counts.\n"), 1);
        assert_eq!(found("crates/a/src/lib.rs", "//! Counts.\n\n// Never: too late\n"), 1);
        assert_eq!(found("crates/a/src/lib.rs", "//! Counts.\n//!\n//! Never: sleeps.\n"), 0);
        assert_eq!(found("crates/a/tests/it.rs", "//! Counts.\n"), 0);
    }
}
