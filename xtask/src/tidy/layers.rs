//! The staircase of crates: each depends only on floors below it, and concrete types are named in
//! one place.
//!
//! Floors come from the manifests; names of backends, SQL and the composition root are looked for
//! in the code itself, tests left out.
//! Never: judges modules inside a crate; see `circles` and `stages`.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::{Exceptions, Finding, excuse};
use crate::lexer::{Kind, Token, tokens};
use crate::manifest::entries;
use crate::modules::test_files;
use crate::source::{production, references};
use crate::tree::Tree;

/// The floor of each crate by its folder, lowest first.
const FLOORS: [(&str, u8); 11] = [
    ("crates/resilience", 0),
    ("crates/webhook", 0),
    ("crates/domain", 1),
    ("crates/console", 1),
    ("crates/receiver", 1),
    ("crates/http", 1),
    ("crates/shared", 1),
    ("crates/worker", 1),
    ("crates/store", 2),
    ("crates/engine", 3),
    ("crates/server", 4),
];

/// What only tests may depend on.
const FOR_TESTS: &str = "testparts";

/// Libraries that a crate may not depend on, outside its tests, with the reason.
const REFUSED: [(&str, &[&str], &str); 6] = [
    ("crates/resilience", &["serde", "rusqlite", "axum", "hyper"], "policies are pure"),
    ("crates/webhook", IO, "signing is pure"),
    ("crates/domain", IO, "values and decisions are pure, and their shape is not the wire's"),
    ("crates/store", &["axum", "hyper", "serde"], "a store knows rows, not HTTP or JSON"),
    ("crates/engine", &["axum", "rusqlite", "serde"], "stores and wire shapes are not its matter"),
    ("crates/server", &["rusqlite"], "SQL lives in the store's backends"),
];
const IO: &[&str] = &["tokio", "serde", "rusqlite", "axum", "hyper"];

/// Modules that only the composition root may reach into: (crate, path).
const BACKENDS: [(&str, [&str; 2]); 3] = [
    ("crates/engine/src/", ["store", "sqlite"]),
    ("crates/engine/src/", ["store", "postgres"]),
    ("crates/engine/src/", ["store", "memory"]),
];

/// Concrete types and the files that may name them: where they are defined, and the root.
const CONCRETE: [(&str, &[&str]); 4] = [
    ("SqliteStore", &["crates/store/src/sqlite", ROOT]),
    ("PostgresStore", &["crates/store/src/postgres", ROOT]),
    ("HttpTransport", &["crates/engine/src/transport", ROOT]),
    // The receiver is a library: whoever uses it need not pass a clock in.
    ("SystemClock", &["crates/resilience/src/", "crates/receiver/src/verify.rs", ROOT]),
];
const ROOT: &str = "crates/server/src/app";

/// Files that may name concrete types all the same, with the reason.
const EXCEPTIONS: Exceptions = &[];

/// Where SQL may stand.
const SQL_HOMES: [&str; 6] = [
    "crates/store/src/sqlite",
    "crates/store/src/postgres",
    "crates/store/migrations/",
    "crates/console/src/import/svix/source.rs",
    "crates/receiver/src/postgres",
    "crates/shared/src/postgres",
];
/// Two words in this order in one string literal make it SQL.
const SQL: [(&str, &str); 7] = [
    ("SELECT", "FROM"),
    ("INSERT", "INTO"),
    ("UPDATE", "SET"),
    ("DELETE", "FROM"),
    ("CREATE", "TABLE"),
    ("CREATE", "INDEX"),
    ("PRAGMA", ""),
];

/// The rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = manifests(tree);
    findings.extend(excuse(names(tree), EXCEPTIONS));
    findings
}

fn floor(krate: &str) -> Option<u8> {
    FLOORS.iter().find(|(folder, _)| *folder == krate).map(|(_, floor)| *floor)
}

/// Folder by dependency name, from the workspace's manifest.
fn ours(tree: &Tree) -> BTreeMap<&str, &str> {
    let mut folders = BTreeMap::new();
    for entry in entries(tree.get("Cargo.toml").unwrap_or_default()) {
        let path = entry.value.split_once("path = \"").and_then(|(_, rest)| rest.split_once('"'));
        if let (true, Some((path, _))) = (entry.section == "workspace.dependencies", path) {
            folders.insert(entry.key, path);
        }
    }
    folders
}

fn manifests(tree: &Tree) -> Vec<Finding> {
    let ours = ours(tree);
    let mut findings = Vec::new();
    for krate in tree.crates().filter(|krate| krate.starts_with("crates/")) {
        let path = format!("{krate}/Cargo.toml");
        let Some(own) = floor(krate) else {
            findings.push(Finding::new(&path, 0, "has no floor: add it to FLOORS in layers.rs"));
            continue;
        };
        for entry in entries(tree.get(&path).unwrap_or_default()) {
            let (section, name) = dependency(entry.section, entry.key);
            if !section.ends_with("dependencies") {
                continue;
            }
            if let Some(folder) = ours.get(name) {
                if *folder == FOR_TESTS {
                    if !section.ends_with("dev-dependencies") {
                        let text = format!("may not depend on {name}: it is for tests only");
                        findings.push(Finding::new(&path, entry.line, text));
                    }
                    continue;
                }
                // A crate may switch on features of its own for its tests.
                let itself = *folder == krate && section.ends_with("dev-dependencies");
                if !itself && floor(folder).is_none_or(|floor| floor >= own) {
                    let text =
                        format!("floor {own} may not depend on {name}: only on floors below");
                    findings.push(Finding::new(&path, entry.line, text));
                }
            } else if let Some(reason) = refusal(krate, section, name) {
                let text = format!("may not depend on {name}: {reason}");
                findings.push(Finding::new(&path, entry.line, text));
            }
        }
    }
    findings
}

/// Section and name of a dependency, written `[dependencies] a.x = …` or `[dependencies.a]`.
fn dependency<'a>(section: &'a str, key: &'a str) -> (&'a str, &'a str) {
    match section.rsplit_once("dependencies.") {
        Some((_, name)) => (&section[..section.len() - name.len() - 1], name),
        None => (section, key.split('.').next().unwrap_or(key)),
    }
}

/// Why this crate may not depend on `name`; families count as their root (`hyper-util` as `hyper`).
fn refusal(krate: &str, section: &str, name: &str) -> Option<&'static str> {
    if section.ends_with("dev-dependencies") {
        return None;
    }
    let (_, refused, reason) = REFUSED.iter().find(|(folder, ..)| *folder == krate)?;
    let family = |root: &&&str| {
        name.strip_prefix(**root)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
    };
    refused.iter().find(family).map(|_| *reason)
}

fn names(tree: &Tree) -> Vec<Finding> {
    let tests = test_files(tree);
    let mut findings = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| path.starts_with("crates/")) {
        if tests.contains(path) {
            continue;
        }
        let code = production(&tokens(text));
        findings.extend(concrete(path, &code));
        findings.extend(backends(path, &code));
        findings.extend(sql(path, &code));
    }
    findings
}

fn concrete(path: &str, code: &[Token<'_>]) -> Vec<Finding> {
    let mut found = BTreeSet::new();
    for token in code.iter().filter(|token| token.kind == Kind::Word) {
        for (name, homes) in CONCRETE {
            if token.text == name && !homes.iter().any(|home| path.starts_with(home)) {
                let text = format!("names {name}: only {ROOT} chooses concrete types");
                found.insert(Finding::new(path, token.line, text));
            }
        }
    }
    found.into_iter().collect()
}

fn backends(path: &str, code: &[Token<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for found in references(code) {
        for (folder, backend) in BACKENDS {
            if path.starts_with(folder) && found.path.starts_with(&backend.map(str::to_owned)) {
                let text =
                    format!("names {}: it knows the store's traits only", backend.join("::"));
                findings.push(Finding::new(path, found.line, text));
            }
        }
    }
    findings
}

fn sql(path: &str, code: &[Token<'_>]) -> Vec<Finding> {
    if SQL_HOMES.iter().any(|home| path.starts_with(home)) {
        return Vec::new();
    }
    let texts = code.iter().filter(|token| token.kind == Kind::Text && is_sql(token.text));
    texts
        .map(|token| Finding::new(path, token.line, "SQL: it lives in the backends of the store"))
        .collect()
}

fn is_sql(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    SQL.iter().any(|(first, second)| {
        let mut words = words.clone();
        words.any(|word| word == *first) && (second.is_empty() || words.any(|word| word == *second))
    })
}

#[cfg(test)]
mod tests;
