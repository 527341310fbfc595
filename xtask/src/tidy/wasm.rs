//! What a bare WebAssembly host does not have stands behind a `cfg` that leaves it out there.
//!
//! The clocks of the standard library compile for such a host and panic when they are read, so that
//! no build finds them.
//! Never: judges clocks of tokio, which whoever switches that feature on has chosen.

use crate::finding::Finding;
use crate::items::{Item, items};
use crate::lexer::{Kind, Token, tokens};
use crate::modules::test_files;
use crate::source::production;
use crate::tree::Tree;

/// Crates that are built for WebAssembly.
const HOMES: [&str; 2] = ["crates/resilience/src/", "crates/webhook/src/"];
/// Names that stand for the machine's clocks and its source of chance.
const MACHINE: [&str; 3] = ["Instant", "SystemTime", "getrandom"];

/// The rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let tests = test_files(tree);
    let mut findings = Vec::new();
    for (path, text) in tree.rust() {
        if tests.contains(path) || !HOMES.iter().any(|home| path.starts_with(home)) {
            continue;
        }
        let code = production(&tokens(text));
        for item in items(&code).iter().filter(|item| !is_left_out(item)) {
            let body = item.body.unwrap_or_default();
            for token in [named(item.head), named(body)].into_iter().flatten() {
                let text = format!("{} is not there on a bare WebAssembly host: cfg", token.text);
                findings.push(Finding::new(path, token.line, text));
            }
        }
    }
    findings
}

fn is_left_out(item: &Item<'_>) -> bool {
    let mut attributes = item.attributes.iter();
    attributes.any(|attribute| {
        attribute.first().is_some_and(|first| first.is("cfg"))
            && attribute.iter().any(|token| token.kind == Kind::Text && token.text == "\"wasm\"")
    })
}

/// The first such name that is not tokio's.
fn named<'a>(tokens: &[Token<'a>]) -> Option<Token<'a>> {
    let of_tokio = |at: usize| {
        at.checked_sub(4).and_then(|at| tokens.get(at)).is_some_and(|token| token.is("tokio"))
    };
    let mut places = tokens.iter().enumerate();
    places
        .find(|(at, token)| MACHINE.iter().any(|name| token.is(name)) && !of_tokio(*at))
        .map(|(_, token)| *token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_not_left_out_is_found() {
        let left_out = "#[cfg(not(all(target_family = \"wasm\", target_os = \"unknown\")))]";
        let text = format!(
            "fn a() {{ tokio::time::Instant::now() }}\n{left_out} struct B(std::time::Instant);\n\
             struct C {{ at: std::time::Instant }}\nfn d() {{ std::time::SystemTime::now() }}"
        );
        let files = [
            ("crates/resilience/Cargo.toml", "[package]"),
            ("crates/resilience/src/lib.rs", text.as_str()),
        ];
        let lines: Vec<_> = check(&Tree::of(&files)).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [3, 4]);
    }
}
