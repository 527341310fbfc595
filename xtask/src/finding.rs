//! What a rule says: places that break it, and places that are excused.
//!
//! Never: knows any rule.

use std::fmt;

/// One place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// The file.
    pub(crate) path: String,
    /// The line, from 1; 0 for the file as a whole.
    pub(crate) line: usize,
    /// What is wrong and what to do.
    pub(crate) text: String,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}

/// Places where a rule does not hold, with the reason: (path, reason).
pub(crate) type Exceptions = &'static [(&'static str, &'static str)];

/// Takes excused findings out, and adds one for every exception that excuses nothing.
pub(crate) fn excuse(findings: Vec<Finding>, exceptions: Exceptions) -> Vec<Finding> {
    let excuses = |path: &str| exceptions.iter().any(|(excused, _)| *excused == path);
    let (excused, mut left): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|finding| excuses(&finding.path));
    for (path, _) in exceptions {
        if !excused.iter().any(|finding| finding.path == *path) {
            left.push(Finding::new(path, 0, "has an exception that it no longer needs: remove it"));
        }
    }
    left.sort();
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_must_be_needed() {
        let finding = |path| Finding::new(path, 1, "too long");
        let found = vec![finding("a.rs"), finding("b.rs")];
        let left = excuse(found, &[("a.rs", "reason"), ("c.rs", "reason")]);
        let paths: Vec<_> = left.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(paths, ["b.rs", "c.rs"]);
    }
}
