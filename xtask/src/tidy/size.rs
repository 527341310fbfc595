//! Rooms of a bounded size: production part, tests in the file, test files, width of lines.
//!
//! A line may be wider only because of a string or a URL. Functions of more than 70 lines are
//! clippy's matter.
//! Never: asks for small files; a file of 40 lines must earn its door too.

use crate::finding::{Exceptions, Finding, excuse};
use crate::lexer::{Kind, tokens};
use crate::modules::test_files;
use crate::source::test_blocks;
use crate::tree::Tree;
use crate::wrap::COLUMNS_MAX;

/// Lines of a file, its test module left out.
const PRODUCTION_LINES_MAX: usize = 400;
/// Lines of a test module inside a file. At 100 it is time to move it to `name/tests.rs`; the rule
/// leaves room to finish a thought.
const INLINE_TEST_LINES_MAX: usize = 150;
/// Lines of a file that is tests only.
const TEST_FILE_LINES_MAX: usize = 700;

/// Files that may be larger, with the reason.
const EXCEPTIONS: Exceptions = &[];

/// The rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let tests = test_files(tree);
    let mut findings = Vec::new();
    for (path, text) in tree.rust() {
        findings.extend(lines(path, text, tests.contains(path)));
        findings.extend(columns(path, text));
    }
    excuse(findings, EXCEPTIONS)
}

fn lines(path: &str, text: &str, is_test: bool) -> Vec<Finding> {
    let all = text.lines().count();
    let mut findings = Vec::new();
    let mut refuse = |line, what: &str, lines: usize, most: usize, instead: &str| {
        if lines > most {
            let text = format!("{what} has {lines} lines, at most {most}: {instead}");
            findings.push(Finding::new(path, line, text));
        }
    };
    if is_test {
        refuse(0, "test file", all, TEST_FILE_LINES_MAX, "one file per behaviour");
        return findings;
    }
    let blocks = test_blocks(&tokens(text));
    let inline: usize = blocks.iter().map(|(first, last)| last + 1 - first).sum();
    refuse(0, "production part", all - inline, PRODUCTION_LINES_MAX, "find the second noun");
    for (first, last) in blocks {
        let lines = last + 1 - first;
        refuse(first, "test module", lines, INLINE_TEST_LINES_MAX, "move it to its own tests.rs");
    }
    findings
}

fn columns(path: &str, text: &str) -> Vec<Finding> {
    let tokens = tokens(text);
    let mut findings = Vec::new();
    let mut start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let range = start..start + line.len();
        start = range.end;
        let line = line.trim_end();
        let columns = line.chars().count();
        if columns <= COLUMNS_MAX || line.contains("://") {
            continue;
        }
        let in_strings: usize = tokens
            .iter()
            .filter(|token| token.kind == Kind::Text)
            .map(|token| overlap(text, token.at..token.at + token.text.len(), &range))
            .sum();
        if in_strings == 0 || columns - in_strings.min(columns) > COLUMNS_MAX {
            let text = format!("{columns} columns, at most {COLUMNS_MAX}: `cargo xtask wrap`");
            findings.push(Finding::new(path, number + 1, text));
        }
    }
    findings
}

fn overlap(text: &str, token: std::ops::Range<usize>, line: &std::ops::Range<usize>) -> usize {
    let (from, to) = (token.start.max(line.start), token.end.min(line.end));
    if from < to { text[from..to].chars().count() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let pairs = [("a/Cargo.toml", "[package]"), (path, text)];
        check(&Tree::of(&pairs)).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_long_production_part_is_found() {
        let code = "fn f() {}\n".repeat(400);
        let tests = "#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";
        assert!(found("a/src/lib.rs", &format!("{code}{tests}")).is_empty());
        let findings = found("a/src/lib.rs", &format!("{code}fn f() {{}}\n{tests}"));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].contains("401 lines"), "{findings:?}");
    }

    #[test]
    fn a_long_test_module_is_found() {
        let block = |lines| format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "f();\n".repeat(lines));
        assert!(found("a/src/lib.rs", &block(147)).is_empty());
        assert_eq!(found("a/src/lib.rs", &block(148)).len(), 1);
    }

    #[test]
    fn a_long_test_file_is_found() {
        assert!(found("a/tests/it.rs", &"f();\n".repeat(700)).is_empty());
        assert_eq!(found("a/tests/it.rs", &"f();\n".repeat(701)).len(), 1);
    }

    #[test]
    fn wide_lines_are_found_unless_a_string_or_url_makes_them_so() {
        let wide = "x".repeat(101);
        assert_eq!(found("a/src/lib.rs", &format!("// {wide}")).len(), 1);
        assert_eq!(found("a/src/lib.rs", &format!("let {wide} = \"a\";")).len(), 1);
        assert!(found("a/src/lib.rs", &format!("let a = \"{wide}\";")).is_empty());
        assert!(found("a/src/lib.rs", &format!("let a = \"\n{wide}\";")).is_empty());
        assert!(found("a/src/lib.rs", &format!("// https://example.com/{wide}")).is_empty());
    }
}
