//! Calls, marks and words that may not stand in the project.
//!
//! Calls are looked for in code, comments and strings left out; marks and words in every text.
//! Needles of the second sort are put together from fragments, so that this file passes its own
//! rule.
//! Never: tells good names from bad ones.

use crate::finding::{Exceptions, Finding};
use crate::lexer::tokens;
use crate::modules::test_files;
use crate::source::{Reference, production, references};
use crate::tree::Tree;

/// A call that is refused.
struct Ban {
    /// Its full path, or a macro's name.
    call: &'static [&'static str],
    /// Whether only test code is looked at.
    in_tests: bool,
    /// What to do instead.
    instead: &'static str,
    /// Paths that begin with one of these may, with the reason.
    allowed: Exceptions,
}

impl Ban {
    const fn of_macro(call: &'static [&'static str], instead: &'static str) -> Self {
        Self { call, in_tests: false, instead, allowed: &[] }
    }
}

const MEASURES: &str = "the load generator measures with the machine's clock";
const BANS: [Ban; 7] = [
    Ban::of_macro(&["dbg"], "use tracing"),
    Ban::of_macro(&["todo"], "finish it or leave it out"),
    Ban::of_macro(&["unimplemented"], "finish it or leave it out"),
    Ban {
        call: &["std", "thread", "sleep"],
        in_tests: false,
        instead: "wait for a signal",
        allowed: &[("bench/", MEASURES)],
    },
    Ban {
        call: &["tokio", "time", "sleep"],
        in_tests: true,
        instead: "pause tokio's clock (`start_paused = true`) or wait for a signal",
        allowed: &[
            (
                "crates/engine/src/transport/http1/tests",
                "waits until the kernel has brought bytes to a real socket; nothing signals that",
            ),
            ("crates/engine/tests/sim/", "its runtime's clock is paused for the whole binary"),
        ],
    },
    Ban {
        call: &["std", "time", "SystemTime", "now"],
        in_tests: false,
        instead: "take a Clock",
        allowed: &[("crates/resilience/src/clock.rs", "the one clock"), ("bench/", MEASURES)],
    },
    Ban {
        call: &["std", "time", "Instant", "now"],
        in_tests: false,
        instead: "take a Clock, or use tokio's, which tests can pause",
        allowed: &[
            ("crates/resilience/src/clock.rs", "the one clock"),
            (
                "crates/store/src/sqlite/stopwatch.rs",
                "a batch ends after 5 ms, on a thread without tokio",
            ),
            ("bench/", MEASURES),
        ],
    },
];

/// Texts that may not stand anywhere, in fragments: (fragments, whether case counts, why).
const TEXTS: [(&[&str], bool, &str); 20] = [
    (&["FIX", "ME"], true, "do it, or open an issue"),
    (&["/wo", "rk/"], true, MACHINE),
    (&["/ho", "me/"], true, MACHINE),
    (&["/ro", "ot/"], true, MACHINE),
    (&["/Us", "ers/"], true, MACHINE),
    (&["sha", "red/design"], true, MACHINE),
    (&["sha", "red/style"], true, MACHINE),
    (&["sha", "red/cases"], true, MACHINE),
    (&["crates", ".io"], false, HOST),
    (&["py", "pi.org"], false, HOST),
    (&["python", "hosted.org"], false, HOST),
    (&["npm", "js.org"], false, HOST),
    (&["deb.deb", "ian.org"], false, HOST),
    (&["proxy.go", "lang.org"], false, HOST),
    (&["clau", "de"], false, FOREIGN),
    (&["anthr", "opic"], false, FOREIGN),
    (&["chat", "gpt"], false, FOREIGN),
    (&["open", "ai"], false, FOREIGN),
    (&["copi", "lot"], false, FOREIGN),
    (&["language", " model"], false, FOREIGN),
];
const MACHINE: &str = "a path of one machine or of its folders";
const HOST: &str = "the host of a package registry: tools are configured outside the project";
const FOREIGN: &str = "no part of this project";

/// Cargo writes this into its lock files; nothing else may.
const LOCK_SOURCE: [&str; 3] = ["registry+https://github.com/rust-lang/crates", ".io", "-index"];

/// The rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let tests = test_files(tree);
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        findings.extend(texts(path, text));
        if path.ends_with(".rs") {
            findings.extend(calls(path, text, tests.contains(path)));
        }
    }
    findings.sort();
    findings
}

fn calls(path: &str, text: &str, is_test: bool) -> Vec<Finding> {
    let all = tokens(text);
    let kept = if is_test { Vec::new() } else { production(&all) };
    let paused = text.contains("start_paused = true");
    let mut findings = Vec::new();
    let mut refuse = |ban: &Ban, line: usize| {
        let in_tests = || kept.iter().all(|token| token.line != line) && !paused;
        let allowed = ban.allowed.iter().any(|(home, _)| path.starts_with(home));
        if !allowed && (!ban.in_tests || in_tests()) {
            findings.push(Finding::new(
                path,
                line,
                format!("{}: {}", ban.call.join("::"), ban.instead),
            ));
        }
    };
    for pair in all.windows(2).filter(|pair| pair[1].is("!")) {
        for ban in BANS.iter().filter(|ban| ban.call == [pair[0].text]) {
            refuse(ban, pair[0].line);
        }
    }
    let references = references(&all);
    for found in &references {
        let full = full_path(found, &references);
        for ban in BANS.iter().filter(|ban| full.ends_with(ban.call) && ban.call.len() > 1) {
            refuse(ban, found.line);
        }
        // What is not imported here by name, say through a glob, is judged by what is left of it.
        let unknown = found.path == full && !matches!(full[0], "std" | "tokio" | "crate" | "super");
        let bans = BANS.iter().filter(|ban| unknown && ban.call.ends_with(&full) && full.len() > 1);
        bans.for_each(|ban| refuse(ban, found.line));
    }
    findings
}

/// A path with its first segment replaced by what it was imported as.
fn full_path<'a>(found: &'a Reference, all: &'a [Reference]) -> Vec<&'a str> {
    let first = &found.path[0];
    let import =
        all.iter().find(|other| found.name.is_none() && other.name.as_ref() == Some(first));
    let head = import.map_or_else(|| std::slice::from_ref(first), |import| &import.path);
    head.iter().chain(&found.path[1..]).map(String::as_str).collect()
}

fn texts(path: &str, text: &str) -> Vec<Finding> {
    let text = if path.rsplit('/').next() == Some("Cargo.lock") {
        text.replace(&LOCK_SOURCE.concat(), "")
    } else {
        text.to_owned()
    };
    let lower = text.to_lowercase();
    let mut findings = Vec::new();
    for (fragments, exact, why) in TEXTS {
        let needle = fragments.concat();
        let hay = if exact { &text } else { &lower };
        let lines = hay.lines().enumerate().filter(|(_, line)| line.contains(&needle));
        findings
            .extend(lines.map(|(at, _)| Finding::new(path, at + 1, format!("{needle}: {why}"))));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let pairs = [("crates/a/Cargo.toml", "[package]"), (path, text)];
        check(&Tree::of(&pairs)).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn refused_calls_are_found_however_they_are_written() {
        for call in
            ["dbg!(1)", "todo!()", "unimplemented!()", "std::thread::sleep(d)", "Instant::now()"]
        {
            assert_eq!(
                found("crates/a/src/lib.rs", &format!("fn f() {{ {call} }}")).len(),
                1,
                "{call}"
            );
        }
        let imported = "use std::{thread::sleep, time::SystemTime}; fn f() { SystemTime::now() }";
        assert_eq!(found("crates/a/src/lib.rs", imported).len(), 2);
        let of_tokio =
            "use tokio::time::{self, Instant}; fn f() { Instant::now(); time::sleep(d) }";
        assert!(found("crates/a/src/lib.rs", of_tokio).is_empty());
        assert!(
            found("crates/a/src/lib.rs", "// dbg!(1)\nconst A: &str = \"todo!()\";").is_empty()
        );
    }

    #[test]
    fn tests_may_not_sleep_but_on_a_paused_clock() {
        let sleeping = "async fn f() { tokio::time::sleep(d).await }";
        assert!(found("crates/a/src/lib.rs", sleeping).is_empty());
        assert_eq!(found("crates/a/tests/it.rs", sleeping).len(), 1);
        let inside = format!("#[cfg(test)]\nmod tests {{ {sleeping} }}");
        assert_eq!(found("crates/a/src/lib.rs", &inside).len(), 1);
        let paused = format!("#[tokio::test(start_paused = true)] {sleeping}");
        assert!(found("crates/a/tests/it.rs", &paused).is_empty());
    }

    #[test]
    fn the_clock_may_be_read_where_it_lives() {
        let text = "fn now() { std::time::SystemTime::now() }";
        assert!(found("crates/resilience/src/clock.rs", text).is_empty());
        assert!(found("bench/src/load.rs", text).is_empty());
    }

    #[test]
    fn every_refused_text_is_found_in_any_file() {
        for (fragments, exact, _) in TEXTS {
            let needle = fragments.concat();
            assert_eq!(found("docs/a.md", &format!("one\nsee {needle}x")).len(), 1, "{needle}");
            let upper = needle.to_uppercase();
            let hits = usize::from(!exact || upper == needle);
            assert_eq!(found("docs/a.md", &upper).len(), hits, "{upper}");
        }
    }

    #[test]
    fn the_lock_file_may_name_its_one_source() {
        let source = LOCK_SOURCE.concat();
        for lock in ["Cargo.lock", "a/Cargo.lock"] {
            assert!(found(lock, &format!("source = \"{source}\"")).is_empty());
        }
        assert_eq!(found("a/My-Cargo.lock", &source).len(), 1);
        assert_eq!(found("Cargo.lock", &source.replace("registry+", "sparse+")).len(), 1);
    }
}
