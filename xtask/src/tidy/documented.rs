//! Every route of the API is in docs/wire.md, and every metric in docs/operations.md.
//!
//! In: string literals of the server and the engine. A page may not name a metric that is gone; of
//! routes it may name what is to come, under that heading.
//! Never: judges what a page says about them.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::lexer::{Kind, tokens};
use crate::modules::test_files;
use crate::source::production;
use crate::tree::Tree;

const ROUTES: &str = "crates/server/src/api.rs";
const WIRE: &str = "docs/wire.md";
const METRICS: [&str; 3] =
    ["crates/engine/src/", "crates/server/src/telemetry", "crates/store/src/"];
const OPERATIONS: &str = "docs/operations.md";
const METRIC_PREFIX: &str = "peyk_";

/// The rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let wire = tree.get(WIRE).unwrap_or_default();
    for (route, (path, line)) in literals(tree, &[ROUTES], |text| text.starts_with('/')) {
        if !wire.contains(&format!("`{route}`")) {
            findings.push(Finding::new(path, line, format!("the route {route} is not in {WIRE}")));
        }
    }
    let is_metric = |text: &str| text.strip_prefix(METRIC_PREFIX).is_some_and(is_name);
    let metrics = literals(tree, &METRICS, is_metric);
    let operations = tree.get(OPERATIONS).unwrap_or_default();
    for (metric, (path, line)) in &metrics {
        if !operations.contains(&format!("`{metric}`")) {
            let text = format!("the metric {metric} is not in {OPERATIONS}");
            findings.push(Finding::new(path, *line, text));
        }
    }
    for (at, line) in operations.lines().enumerate() {
        let named = line.split('`').nth(1).filter(|_| line.starts_with("| `"));
        if let Some(gone) = named.filter(|name| is_metric(name) && !metrics.contains_key(name)) {
            findings.push(Finding::new(OPERATIONS, at + 1, format!("nothing records {gone}")));
        }
    }
    findings
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// String literals of production code under these paths, and where each first stands.
fn literals<'a>(
    tree: &'a Tree,
    homes: &[&str],
    wanted: impl Fn(&str) -> bool,
) -> BTreeMap<&'a str, (&'a str, usize)> {
    let tests = test_files(tree);
    let mut found = BTreeMap::new();
    for (path, text) in tree.rust() {
        if tests.contains(path) || !homes.iter().any(|home| path.starts_with(home)) {
            continue;
        }
        for token in production(&tokens(text)) {
            let literal = token.text.trim_matches('"');
            if token.kind == Kind::Text && wanted(literal) {
                found.entry(literal).or_insert((path, token.line));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pairs: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(pairs)).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_route_without_a_line_is_found() {
        let code = (ROUTES, "fn f() { route(\"/a/{b}\"); route(\"/a\") }");
        let findings = found(&[code, (WIRE, "| GET `/a/{b}` |")]);
        assert_eq!(findings, [format!("{ROUTES}:1: the route /a is not in {WIRE}")]);
    }

    #[test]
    fn metrics_and_their_table_agree() {
        let code =
            ("crates/engine/src/run/telemetry.rs", "counter!(\"peyk_a\"); gauge!(\"peyk_b\")");
        let page = (OPERATIONS, "| `peyk_a` | counter |\n| `peyk_c` | gauge |\nsee `peyk_d`\n");
        let findings = found(&[code, page]);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].contains("the metric peyk_b"), "{findings:?}");
        assert!(findings[1].ends_with(":2: nothing records peyk_c"), "{findings:?}");
    }
}
