//! The listings of public interfaces in `docs/api/` say what the code says.
//!
//! A change of an interface then shows in the change itself, and whoever reviews it sees it.
//! Never: judges whether a change is compatible.

use crate::api::listings;
use crate::finding::Finding;
use crate::tree::Tree;

/// The rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in listings(tree) {
        let written = tree.get(&path).unwrap_or_default();
        if written == text {
            continue;
        }
        let same = written.lines().zip(text.lines()).take_while(|(a, b)| a == b).count();
        let at = text.lines().nth(same).unwrap_or("nothing more");
        let text = format!("the code has {at:?} here: run `cargo xtask api`");
        findings.push(Finding::new(&path, same + 1, text));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_that_lags_behind_is_found() {
        let code = "pub fn old() {} pub fn new() {}";
        let tree = |listing| {
            Tree::of(&[("crates/shared/src/lib.rs", code), ("docs/api/shared.txt", listing)])
        };
        let up_to_date = listings(&tree("")).remove(0).1;
        assert!(check(&tree(&up_to_date)).is_empty());
        let findings = check(&tree("pub fn crates/shared::new()\n"));
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].line, findings[0].path.as_str()), (2, "docs/api/shared.txt"));
    }
}
