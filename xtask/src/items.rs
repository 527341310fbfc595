//! The items of a Rust file, or of the body of a trait or an `impl`: what each begins with, and its
//! tokens.
//!
//! In: tokens. Out: one entry for each item, in their order.
//! Never: expands a macro, or looks into a function.

use crate::lexer::{Kind, Token};

/// One item.
#[derive(Clone, Debug)]
pub(crate) struct Item<'a> {
    /// Its keyword: `fn`, `struct`, `impl`…
    pub(crate) keyword: &'a str,
    /// Its name; of an `impl` none.
    pub(crate) name: Option<&'a str>,
    /// Whether it says `pub` and nothing narrower.
    pub(crate) public: bool,
    /// Its attributes, without `#`, `[` and `]`.
    pub(crate) attributes: Vec<&'a [Token<'a>]>,
    /// Everything after the visibility up to the body or the semicolon.
    pub(crate) head: &'a [Token<'a>],
    /// What stands between its braces.
    pub(crate) body: Option<&'a [Token<'a>]>,
}

const KEYWORDS: [&str; 12] = [
    "fn",
    "struct",
    "enum",
    "union",
    "trait",
    "impl",
    "mod",
    "use",
    "const",
    "static",
    "type",
    "macro_rules",
];
/// Words that may stand before `fn`, `trait` or `impl`.
const BEFORE: [&str; 4] = ["const", "async", "unsafe", "extern"];

/// Splits tokens into items. What is none, such as a call of a macro, is passed over.
pub(crate) fn items<'a>(tokens: &'a [Token<'a>]) -> Vec<Item<'a>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let (attributes, after) = attributes(tokens, at);
        let (public, from) = visibility(tokens, after);
        let end = end(tokens, from);
        if let Some((keyword, name)) = keyword(&tokens[from..end]) {
            let (head, body) = parts(&tokens[from..end], keyword);
            found.push(Item { keyword, name, public, attributes, head, body });
        }
        at = end.max(at + 1);
    }
    found
}

/// The parts between commas that stand in no bracket of any sort, angle brackets included.
pub(crate) fn split<'a>(tokens: &'a [Token<'a>]) -> Vec<&'a [Token<'a>]> {
    let mut parts = Vec::new();
    let (mut depth, mut from) = (0_usize, 0);
    for (at, token) in tokens.iter().enumerate() {
        if token.is(",") && depth == 0 {
            parts.push(&tokens[from..at]);
            from = at + 1;
        } else if ["(", "[", "{", "<"].iter().any(|open| token.is(open)) {
            depth += 1;
        } else if [")", "]", "}", ">"].iter().any(|close| token.is(close)) {
            depth = depth.saturating_sub(1);
        }
    }
    parts.push(&tokens[from..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// Attributes at the beginning, and where they end.
pub(crate) fn attributes<'a>(
    tokens: &'a [Token<'a>],
    from: usize,
) -> (Vec<&'a [Token<'a>]>, usize) {
    let (mut found, mut at) = (Vec::new(), from);
    while tokens.get(at).is_some_and(|token| token.is("#")) {
        let inner = usize::from(tokens.get(at + 1).is_some_and(|token| token.is("!")));
        let open = at + 1 + inner;
        let close = closing(tokens, open);
        if inner == 0 {
            found.push(tokens.get(open + 1..close).unwrap_or_default());
        }
        at = close + 1;
    }
    (found, at.min(tokens.len()))
}

/// Whether it is public, and where the visibility ends.
pub(crate) fn visibility(tokens: &[Token<'_>], at: usize) -> (bool, usize) {
    match (tokens.get(at), tokens.get(at + 1)) {
        (Some(first), Some(second)) if first.is("pub") && second.is("(") => {
            (false, closing(tokens, at + 1) + 1)
        }
        (Some(first), _) if first.is("pub") => (true, at + 1),
        _ => (false, at),
    }
}

/// The index of the bracket that closes the one at `open`.
fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if ["(", "[", "{"].iter().any(|bracket| token.is(bracket)) {
            depth += 1;
        } else if [")", "]", "}"].iter().any(|bracket| token.is(bracket)) {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}

/// The index after the item that begins at `from`.
fn end(tokens: &[Token<'_>], from: usize) -> usize {
    let first = tokens[from..].iter().find(|token| !BEFORE.iter().any(|word| token.is(word)));
    let valued = ["use", "static", "type"].iter().any(|word| first.is_some_and(|f| f.is(word)))
        || constant(&tokens[from..]);
    let mut at = from;
    while let Some(token) = tokens.get(at) {
        if token.is("{") || token.is("(") || token.is("[") {
            let close = closing(tokens, at);
            if token.is("{") && !valued {
                return (close + 1).min(tokens.len());
            }
            at = close + 1;
        } else if token.is(";") {
            return at + 1;
        } else {
            at += 1;
        }
    }
    at.min(tokens.len())
}

/// `const NAME`, and not `const fn`.
fn constant(item: &[Token<'_>]) -> bool {
    let [first, second, ..] = item else { return false };
    first.is("const") && !BEFORE.contains(&second.text) && !second.is("fn")
}

fn keyword<'a>(item: &[Token<'a>]) -> Option<(&'a str, Option<&'a str>)> {
    let says = |token: &Token<'_>| constant(item) || !BEFORE.contains(&token.text);
    let at = item.iter().position(|token| token.kind == Kind::Word && says(token))?;
    let keyword = KEYWORDS.iter().find(|word| item[at].is(word))?;
    let name = item.get(at + 1).filter(|token| token.kind == Kind::Word);
    let name = name.filter(|_| !matches!(*keyword, "impl" | "use"));
    Some((keyword, name.map(|token| token.text)))
}

fn parts<'a>(item: &'a [Token<'a>], keyword: &str) -> (&'a [Token<'a>], Option<&'a [Token<'a>]>) {
    let valued = matches!(keyword, "const" | "static" | "type" | "use");
    let open = item.iter().position(|token| token.is("{")).filter(|_| !valued);
    let last = item.len().saturating_sub(1);
    match open {
        Some(open) => (&item[..open], item.get(open + 1..last)),
        // Without the semicolon.
        None => (&item[..last], None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokens;

    fn shapes(text: &str) -> Vec<String> {
        let tokens = tokens(text);
        let found = items(&tokens);
        let shape = |item: &Item<'_>| {
            let public = if item.public { "pub " } else { "" };
            format!("{public}{} {}", item.keyword, item.name.unwrap_or("-"))
        };
        found.iter().map(shape).collect()
    }

    #[test]
    fn items_are_told_apart() {
        let text = "#![forbid(x)] pub use a::{b, c}; pub(crate) const fn f() { if a { b } }
            pub const A: [u8; 2] = [1, 2]; const B: S = S { a: 1 }; #[derive(Debug)] pub struct C;
            pub struct D(u8, pub u8); pub struct E<T> where T: X { a: T } impl<T> E<T> { fn g() {} }
            pub async fn h() -> u8 { 1 } m! { x } pub trait T { fn i(&self); } mod z;";
        let expected = [
            "pub use -",
            "fn f",
            "pub const A",
            "const B",
            "pub struct C",
            "pub struct D",
            "pub struct E",
            "impl -",
            "pub fn h",
            "pub trait T",
            "mod z",
        ];
        assert_eq!(shapes(text), expected);
    }

    #[test]
    fn commas_in_brackets_split_nothing() {
        let tokens = tokens("a: HashMap<K, V>, b: (u8, u8), c");
        assert_eq!(split(&tokens).len(), 3);
    }
}
