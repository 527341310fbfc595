//! Stages of the engine never import each other; `run` alone knows their order.
//!
//! A stage that calls the next one hides the flow and cannot be tested alone.
//! Never: judges `run` or what stages share.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::lexer::tokens;
use crate::modules::{module_of, test_files};
use crate::source::{production, references};
use crate::tree::Tree;

const ENGINE: &str = "crates/engine";
/// The stages, in the order of the flow.
const STAGES: [&str; 6] = ["ingest", "admit", "deliver", "record", "bury", "prune"];
/// The modules that may name several stages.
const CONDUCTOR: &str = "run";

/// The rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let tests = test_files(tree);
    let mut findings = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| !tests.contains(*path)) {
        let Some(module) = module_of(ENGINE, path) else { continue };
        let Some(room) = module.first() else { continue };
        if room == CONDUCTOR {
            continue;
        }
        let own = STAGES.iter().find(|stage| *stage == room);
        let mut named = BTreeSet::new();
        for found in references(&production(&tokens(text))) {
            let Some(stage) = stage_of(&found.path, module.len()) else { continue };
            named.insert(stage);
            if own.is_some_and(|own| *own != stage) {
                let text =
                    format!("stage {room} imports stage {stage}: let `run` hand over the value");
                findings.push(Finding::new(path, found.line, text));
            }
        }
        if own.is_none() && named.len() > 1 {
            let text = format!("names several stages ({named:?}): only `run` knows their order");
            findings.push(Finding::new(path, 0, text));
        }
    }
    findings
}

/// The stage a path leads to, seen from a module `depth` levels below the root.
fn stage_of(path: &[String], depth: usize) -> Option<&'static str> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let next = match path.first().map(String::as_str) {
        Some("crate") => path.get(1),
        Some("super") if ups == depth => path.get(ups),
        _ => None,
    }?;
    STAGES.into_iter().find(|stage| stage == next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[("crates/engine/Cargo.toml", "[package]"), (path, text)])).len()
    }

    #[test]
    fn a_stage_that_imports_a_stage_is_found() {
        assert_eq!(found("crates/engine/src/admit.rs", "use crate::deliver::Go;"), 1);
        assert_eq!(found("crates/engine/src/admit.rs", "use super::record;"), 1);
        assert_eq!(
            found("crates/engine/src/deliver/dial.rs", "use super::super::ingest::Post;"),
            1
        );
        assert_eq!(found("crates/engine/src/ingest.rs", "fn f() { crate::record::record() }"), 1);
    }

    #[test]
    fn a_stage_may_use_its_own_rooms_and_what_is_shared() {
        assert_eq!(
            found("crates/engine/src/deliver/dial.rs", "use super::deliver; use super::x;"),
            0
        );
        assert_eq!(found("crates/engine/src/admit.rs", "use crate::{lanes, settings};"), 0);
        let tests = "#[cfg(test)]\nmod tests { use crate::record; }";
        assert_eq!(found("crates/engine/src/admit.rs", tests), 0);
    }

    #[test]
    fn only_run_names_several() {
        let text = "use crate::{admit, deliver};";
        assert_eq!(found("crates/engine/src/engine.rs", text), 1);
        assert_eq!(found("crates/engine/src/run.rs", text), 0);
        assert_eq!(found("crates/engine/src/run/turn.rs", text), 0);
    }
}
