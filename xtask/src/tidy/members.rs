//! Every crate takes lints, licence and "not published" from the workspace.
//!
//! A crate without `[lints] workspace = true` would not be linted at all, and nobody would notice.
//! Never: judges dependencies; see `layers`.

use crate::finding::Finding;
use crate::manifest::entries;
use crate::tree::Tree;

/// A line that must stand in each manifest: section, and (key, value) pairs of which one will do;
/// an empty value stands for any.
type Wanted = (&'static str, &'static [(&'static str, &'static str)]);

const WANTED: [Wanted; 4] = [
    ("lints", &[("workspace", "true")]),
    ("package", &[("license.workspace", "true"), ("license", "\"Apache-2.0\"")]),
    ("package", &[("publish.workspace", "true"), ("publish", "false")]),
    ("package", &[("description", "")]),
];

/// The rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for krate in tree.crates() {
        let path = format!("{krate}/Cargo.toml");
        let entries = entries(tree.get(&path).unwrap_or_default());
        for (section, choices) in WANTED {
            let met = choices.iter().any(|(key, value)| {
                entries.iter().any(|entry| {
                    let valued = value.is_empty() || entry.value == *value;
                    entry.section == section && entry.key == *key && valued
                })
            });
            if !met {
                let text = format!("[{section}] needs {}", choices[0].0);
                findings.push(Finding::new(&path, 0, text));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_without_lints_is_found() {
        let package =
            "[package]\nlicense.workspace = true\npublish = false\ndescription = \"A.\"\n";
        let good = format!("{package}[lints]\nworkspace = true\n");
        let tree = Tree::of(&[("a/Cargo.toml", package), ("b/Cargo.toml", &good)]);
        let findings = check(&tree);
        assert_eq!(findings, [Finding::new("a/Cargo.toml", 0, "[lints] needs workspace")]);
    }

    #[test]
    fn licence_publish_and_description_are_asked_for() {
        let text = "[package]\npublish = true\n[lints]\nworkspace = true\n";
        assert_eq!(check(&Tree::of(&[("a/Cargo.toml", text)])).len(), 3);
    }
}
