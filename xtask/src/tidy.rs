//! The house rules, each a pure function from the tree to what breaks it.
//!
//! `cargo test -p xtask` runs them as tests; `cargo xtask tidy` prints every finding. A rule that
//! makes the code worse in one place gets an exception with a reason, in the list of that rule; an
//! exception that is no longer needed is itself a finding.
//! Never: changes a file.

use crate::finding::Finding;
use crate::tree::Tree;

mod api;
mod bans;
mod circles;
mod config;
mod dead_files;
mod documented;
mod headers;
mod layers;
mod lifecycle;
mod links;
mod members;
mod problems;
mod size;
mod stages;
mod wasm;

/// A rule: from the tree to everything that breaks it.
pub(crate) type Check = fn(&Tree) -> Vec<Finding>;

/// All rules by name.
pub(crate) const CHECKS: [(&str, Check); 15] = [
    ("members", members::check),
    ("layers", layers::check),
    ("stages", stages::check),
    ("circles", circles::check),
    ("size", size::check),
    ("headers", headers::check),
    ("bans", bans::check),
    ("dead_files", dead_files::check),
    ("links", links::check),
    ("lifecycle", lifecycle::check),
    ("config", config::check),
    ("problems", problems::check),
    ("documented", documented::check),
    ("api", api::check),
    ("wasm", wasm::check),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(name: &str) {
        let tree = Tree::of_workspace().unwrap();
        let (_, check) = CHECKS.iter().find(|(known, _)| *known == name).unwrap();
        let findings: Vec<_> = check(&tree).iter().map(Finding::to_string).collect();
        assert!(findings.is_empty(), "{} findings\n{}", findings.len(), findings.join("\n"));
    }

    macro_rules! the_project_keeps {
        ($($name:ident),* $(,)?) => {
            $(#[test] fn $name() { holds(stringify!($name)); })*

            #[test]
            fn no_rule_is_left_out() {
                assert_eq!([$(stringify!($name)),*], CHECKS.map(|(name, _)| name));
            }
        };
    }

    the_project_keeps!(
        members, layers, stages, circles, size, headers, bans, dead_files, links, lifecycle,
        config, problems, documented, api, wasm,
    );
}
