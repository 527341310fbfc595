//! Links between pages lead somewhere, and so do paths that a page names in backticks.
//!
//! Never: asks the network; only links inside the project are followed.

use crate::finding::Finding;
use crate::tree::Tree;

/// Folders whose paths, written in backticks, must exist.
const FOLDERS: [&str; 6] = ["crates/", "bench/", "xtask/", "docs/", "deploy/", ".ci/"];

/// A link or a path in a page.
pub(crate) struct Link<'a> {
    /// Where it leads, as written.
    pub(crate) to: &'a str,
    /// Its line.
    pub(crate) line: usize,
}

/// The rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".md")) {
        for link in links(text) {
            if target(path, link.to).is_some_and(|to| !tree.holds(&to)) {
                findings.push(Finding::new(path, link.line, format!("dead link: {}", link.to)));
            }
        }
        for named in named_paths(text) {
            if !tree.holds(named.to) {
                findings.push(Finding::new(
                    path,
                    named.line,
                    format!("no such file: {}", named.to),
                ));
            }
        }
    }
    findings
}

/// Every `[text](to)` outside code blocks.
pub(crate) fn links(text: &str) -> Vec<Link<'_>> {
    let mut found = Vec::new();
    for (line, text) in prose(text) {
        let ends = text.match_indices("](").map(|(at, _)| &text[at + 2..]);
        found.extend(ends.filter_map(|rest| rest.split_once(')')).map(|(to, _)| Link { to, line }));
    }
    found
}

/// Paths of the project in backticks; one with a placeholder or a choice in it is not a path.
fn named_paths(text: &str) -> Vec<Link<'_>> {
    let mut found = Vec::new();
    for (line, text) in prose(text) {
        for to in text.split('`').skip(1).step_by(2) {
            let plain = !to.contains([' ', '<', '*', '{', '…', '$']) && !to.contains("NNNN");
            if plain && FOLDERS.iter().any(|folder| to.starts_with(folder)) {
                found.push(Link { to, line });
            }
        }
    }
    found
}

fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((number + 1, line))
    })
}

/// The file or folder that a link in the page `from` leads to; none outside the project.
pub(crate) fn target(from: &str, link: &str) -> Option<String> {
    let to = link.split('#').next().unwrap_or_default();
    if to.is_empty() || to.contains("://") || to.starts_with("mailto:") {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in to.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_and_paths_are_found() {
        let text = "[a](docs/a.md) [b](docs/b.md#x) [c](https://example.com) `docs/c.md` `docs/<x>.md`\n\
                    ```\n[d](docs/d.md)\n```\n`crates/a`";
        let tree = Tree::of(&[("README.md", text), ("docs/a.md", "[up](../README.md) [here](#x)")]);
        let findings: Vec<_> = check(&tree).iter().map(Finding::to_string).collect();
        let expected = [
            "README.md:1: dead link: docs/b.md#x",
            "README.md:1: no such file: docs/c.md",
            "README.md:5: no such file: crates/a",
        ];
        assert_eq!(findings, expected);
    }
}
