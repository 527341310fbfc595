//! `config.default.toml` documents every setting: each key has a sentence above it.
//!
//! A key that is commented out because it has no default counts as a key.
//! Never: compares the keys with what the server reads; the server's own tests do, on the
//! compiled-in copy.

use crate::finding::Finding;
use crate::tree::Tree;

const NAME: &str = "config.default.toml";

/// The rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut files = tree.files().filter(|(path, _)| path.rsplit('/').next() == Some(NAME));
    let (Some((path, text)), None) = (files.next(), files.next()) else {
        return vec![Finding::new(NAME, 0, "there must be exactly one such file")];
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut findings = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(key) = key(line) else { continue };
        let above = lines[..at].last().copied().unwrap_or_default();
        let sentence = |line: &str| line.starts_with('#') && self::key(line).is_none();
        // The sentence over a section may speak of its first key.
        let section = above.starts_with('[') && at > 1 && sentence(lines[at - 2]);
        if !section && !sentence(above) {
            let text = format!("{key} has no sentence above it");
            findings.push(Finding::new(path, at + 1, text));
        }
    }
    findings
}

/// The key of `key = value` or `#key = value`; a sentence with an equals sign in it has spaces
/// before.
fn key(line: &str) -> Option<&str> {
    let (key, value) = line.trim_start_matches('#').split_once('=')?;
    let key = key.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    (!key.is_empty() && key.chars().all(plain) && !value.trim().is_empty()).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        check(&Tree::of(&[("a/config.default.toml", text)]))
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    #[test]
    fn a_key_without_a_sentence_is_found() {
        let good = "# Where to listen.\nlisten = \"a\"\n\n[retry]\n# The first step,\n# at least 1ms.\nbase = \"2s\"\n";
        assert!(found(good).is_empty(), "{:?}", found(good));
        assert_eq!(found("# One.\na = 1\nb = 2\n").len(), 1);
        assert_eq!(found("a = 1\n").len(), 1);
        assert!(found("# Proxy: `url`.\n[proxy]\n# url = \"x\"\n").is_empty());
        assert_eq!(found("[proxy]\nurl = \"x\"\n").len(), 1);
        assert_eq!(found("# A blank line parts it.\n\na = 1\n").len(), 1);
    }

    #[test]
    fn keys_without_a_default_count() {
        assert_eq!(found("# Secret.\n#jwt_secret = \"x\"\n# main_key = \"y\"\n").len(), 1);
        assert!(found("# Set a = b to see.\nc = 1\n").is_empty());
    }

    #[test]
    fn the_file_must_be_there_once() {
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}
