//! The lines of a TOML file that the rules ask for: section, key, value.
//!
//! Never: a full TOML reader; values stay text, and an array over several lines is its first line.

/// One `key = value` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// The header it stands under, without brackets; empty before the first.
    pub(crate) section: &'a str,
    /// The key as written, dots included.
    pub(crate) key: &'a str,
    /// The value as written.
    pub(crate) value: &'a str,
    /// Its line, from 1.
    pub(crate) line: usize,
}

/// All entries of a file.
pub(crate) fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut found = Vec::new();
    let (mut section, mut open) = ("", 0_usize);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let balance = |text: &str| {
            let opened = text.matches(['[', '{']).count();
            (opened, text.matches([']', '}']).count())
        };
        if line.starts_with('#') {
            continue;
        }
        if open > 0 {
            let (opened, closed) = balance(line);
            open = (open + opened).saturating_sub(closed);
        } else if let Some(header) = line.strip_prefix('[') {
            section = header.trim_start_matches('[').trim_end_matches(']');
        } else if let Some((key, value)) = line.split_once('=') {
            let (opened, closed) = balance(value);
            open = opened.saturating_sub(closed);
            let (key, value) = (key.trim(), value.trim());
            found.push(Entry { section, key, value, line: number + 1 });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_keys_and_lines_are_found() {
        let text = "a = 1\n# b = 2\n[dependencies]\nc.workspace = true\nd = [\n  \"e = f\",\n]\n[[bin]]\ng = { h = 1 }\n";
        let found: Vec<_> =
            entries(text).iter().map(|e| (e.section, e.key, e.value, e.line)).collect();
        let expected = [
            ("", "a", "1", 1),
            ("dependencies", "c.workspace", "true", 4),
            ("dependencies", "d", "[", 5),
            ("bin", "g", "{ h = 1 }", 9),
        ];
        assert_eq!(found, expected);
    }
}
