//! Every error code that the API answers with has a page, and every page a code.
//!
//! In: the first string that `Problem::new`, `bad_request` or `conflict` is called with, in the
//! server. A space in a code is `_` in the page's name.
//! Never: judges the pages.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::lexer::{Kind, Token, tokens};
use crate::modules::test_files;
use crate::source::production;
use crate::tree::Tree;

const SERVER: &str = "crates/server/src/";
const PAGES: &str = "docs/problems/";
/// Pages without a code of their own: the index, and 422, which names fields instead.
const UNCODED: [&str; 2] = ["README", "validation"];
/// Functions whose first string argument is a code.
const MAKERS: [&str; 3] = ["new", "bad_request", "conflict"];

/// The rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let tests = test_files(tree);
    let mut codes = BTreeMap::new();
    for (path, text) in tree.rust() {
        if path.starts_with(SERVER) && !tests.contains(path) {
            for token in made(&production(&tokens(text))) {
                let code = token.text.trim_matches('"').replace(' ', "_");
                codes.entry(code).or_insert((path, token.line));
            }
        }
    }
    let page = |path: &str| path.strip_prefix(PAGES)?.strip_suffix(".md").map(str::to_owned);
    let pages: BTreeSet<String> = tree.files().filter_map(|(path, _)| page(path)).collect();
    let mut findings = Vec::new();
    for (code, (path, line)) in codes.iter().filter(|(code, _)| !pages.contains(*code)) {
        findings.push(Finding::new(path, *line, format!("the code {code} has no page in {PAGES}")));
    }
    let known = |page: &&String| codes.contains_key(*page) || UNCODED.contains(&page.as_str());
    for page in pages.iter().filter(|page| !known(page)) {
        let text = "no answer carries this code";
        findings.push(Finding::new(&format!("{PAGES}{page}.md"), 0, text));
    }
    findings
}

/// The first string that each maker of a problem is called with.
fn made<'a>(code: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut found = Vec::new();
    for (at, call) in code.windows(4).enumerate() {
        let of_problem = call[0].is("Problem") || call[0].is("Self");
        if of_problem && call[1].is("::") && MAKERS.contains(&call[2].text) && call[3].is("(") {
            let mut depth = 1_i32;
            let inside = code[at + 4..].iter().take_while(|token| {
                depth += i32::from(token.is("(")) - i32::from(token.is(")"));
                depth > 0
            });
            found.extend(inside.copied().find(|token| token.kind == Kind::Text));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_without_a_page_and_pages_without_a_code_are_found() {
        let code = "fn e() -> Self { Self::new(status, code) } fn f() { Problem::new(Status::X, \"not found\", \"text\"); }
            fn g() { Self::conflict(\"taken\", format!(\"{x}\")) }
            fn h() { Problem::field(&[\"limit\"], \"too big\", \"x\") }
            #[cfg(test)] mod tests { fn t() { Problem::bad_request(\"odd\", \"\") } }";
        let tree = Tree::of(&[
            ("crates/server/src/http/problem.rs", code),
            ("docs/problems/README.md", ""),
            ("docs/problems/validation.md", ""),
            ("docs/problems/not_found.md", ""),
            ("docs/problems/gone.md", ""),
        ]);
        let findings: Vec<_> = check(&tree).iter().map(Finding::to_string).collect();
        let expected = [
            "crates/server/src/http/problem.rs:2: the code taken has no page in docs/problems/",
            "docs/problems/gone.md: no answer carries this code",
        ];
        assert_eq!(findings, expected);
    }
}
