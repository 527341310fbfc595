//! Rust text to tokens: enough to tell code from comments and strings.
//!
//! In: the text of a file. Out: words, marks, string literals, each with its line. Comments are
//! dropped. A text that does not compile gives some tokens or other; the compiler complains first.
//! Never: reads a file, or fails.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier or keyword.
    Word,
    /// Punctuation: one character, or `::`, `=>`, `->`.
    Mark,
    /// A string literal of any sort, quotes included.
    Text,
    /// A number, a character or a lifetime.
    Other,
}

/// A piece of Rust text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// What it is.
    pub(crate) kind: Kind,
    /// Its characters.
    pub(crate) text: &'a str,
    /// The line it begins on, from 1.
    pub(crate) line: usize,
    /// Where it begins in the file, in bytes.
    pub(crate) at: usize,
}

impl Token<'_> {
    /// Whether it is this word or mark.
    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Mark) && self.text == text
    }
}

/// Splits a text into tokens.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < text.len() {
        let rest = &text[at..];
        let (kind, length) = next(rest);
        if let Some(kind) = kind {
            found.push(Token { kind, text: &rest[..length], line, at });
        }
        line += rest[..length].matches('\n').count();
        at += length;
    }
    found
}

/// Kind (none for white space and comments) and length of what `rest` begins with.
fn next(rest: &str) -> (Option<Kind>, usize) {
    let first = rest.chars().next().unwrap_or(' ');
    if rest.starts_with("//") {
        return (None, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (None, block_comment(rest));
    }
    if let Some(length) = string(rest) {
        return (Some(Kind::Text), length);
    }
    if first == '\'' || rest.starts_with("b'") {
        return (Some(Kind::Other), quote(rest));
    }
    if first == '_' || first.is_alphabetic() {
        let word = |text: &str| {
            text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(text.len())
        };
        let raw = if rest.starts_with("r#") { 2 } else { 0 };
        return (Some(Kind::Word), raw + word(&rest[raw..]));
    }
    if first.is_ascii_digit() {
        return (Some(Kind::Other), number(rest));
    }
    if first.is_whitespace() {
        return (None, first.len_utf8());
    }
    let double = ["::", "=>", "->"].iter().any(|mark| rest.starts_with(mark));
    (Some(Kind::Mark), if double { 2 } else { first.len_utf8() })
}

fn block_comment(rest: &str) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Length of the string literal that `rest` begins with: `"…"`, `r#"…"#`, with `b` or `c` before.
fn string(rest: &str) -> Option<usize> {
    let prefix = rest.find(|c| !matches!(c, 'b' | 'c' | 'r'))?;
    let (letters, body) = rest.split_at(prefix);
    if !matches!(letters, "" | "b" | "c" | "r" | "br" | "cr") {
        return None;
    }
    if letters.ends_with('r') {
        let hashes = body.len() - body.trim_start_matches('#').len();
        let inner = body[hashes..].strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        let end = inner.find(&close).map_or(inner.len(), |end| end + close.len());
        return Some(prefix + hashes + 1 + end);
    }
    let mut escaped = false;
    for (at, c) in body.strip_prefix('"')?.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(prefix + 1 + at + 1),
            _ => {}
        }
    }
    Some(rest.len())
}

/// Length of the character literal or lifetime that `rest` begins with.
fn quote(rest: &str) -> usize {
    let open = if rest.starts_with('b') { 2 } else { 1 };
    let mut inner = rest[open..].chars();
    let first = inner.next();
    if first == Some('\\') {
        let escaped = inner.next().map_or(0, char::len_utf8);
        let body = open + 1 + escaped;
        return rest[body..].find('\'').map_or(rest.len(), |end| body + end + 1);
    }
    let first_length = first.map_or(0, char::len_utf8);
    if inner.next() == Some('\'') {
        return open + first_length + 1;
    }
    let name = &rest[open..];
    open + name.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(name.len())
}

fn number(rest: &str) -> usize {
    let mut length = 0;
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next() {
        let point = c == '.' && chars.peek().is_some_and(char::is_ascii_digit);
        if c != '_' && !c.is_alphanumeric() && !point {
            break;
        }
        length += c.len_utf8();
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        tokens(text)
            .iter()
            .filter(|token| token.kind == Kind::Word)
            .map(|token| token.text)
            .collect()
    }

    #[test]
    fn comments_and_strings_are_not_words() {
        let text = "a // b\n/* c /* d */ e */ f(\"g \\\" h\", r#\"i \" j\"#, b\"k\") l";
        assert_eq!(words(text), ["a", "f", "l"]);
    }

    #[test]
    fn quotes_are_told_from_lifetimes() {
        let text = "fn a<'b>(c: &'b str) { m('\"', '\\'', b'\\\\', '…', 'x'); n }";
        assert_eq!(words(text), ["fn", "a", "c", "str", "m", "n"]);
    }

    #[test]
    fn lines_survive_long_strings() {
        let found = tokens("\"one\ntwo\"\nthree 0..5 1.5e3");
        let lines: Vec<_> = found.iter().map(|token| (token.text, token.line)).collect();
        let expected = [("\"one\ntwo\"", 1), ("three", 3), ("0", 3), (".", 3), (".", 3), ("5", 3)];
        assert_eq!(lines[..6], expected);
        assert_eq!(lines[6].0, "1.5e3");
    }

    #[test]
    fn raw_names_and_paths_are_whole() {
        let found: Vec<_> = tokens("r#type::a => b").iter().map(|token| token.text).collect();
        assert_eq!(found, ["r#type", "::", "a", "=>", "b"]);
    }
}
