//! What a Rust file says, as far as the rules ask: test code, modules, imports, paths.
//!
//! In: tokens. Out: lists of names with their lines. It reads shapes, not meaning: macros are not
//! expanded and an inline `mod` counts as part of its file.
//! Never: reads a file.

use crate::lexer::{Kind, Token};

/// A `mod name;`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) name: String,
    /// Whether it is compiled for tests only.
    pub(crate) test: bool,
}

/// One path: of a `use`, expanded to its end, or written out in code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// Its segments; the last one is `*` for a glob.
    pub(crate) path: Vec<String>,
    /// The name it is imported under; none when it is written out in code.
    pub(crate) name: Option<String>,
    /// Whether it is a re-export: `pub use`, `pub(crate) use`.
    pub(crate) exported: bool,
    /// Where it stands.
    pub(crate) line: usize,
}

/// The tokens that are compiled without `cfg(test)`.
pub(crate) fn production<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if test_attribute(tokens, at) {
            if tokens[at + 1].is("!") {
                return Vec::new();
            }
            at = item_end(tokens, at);
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

/// Lines, both included, of each top-level `#[cfg(test)] mod name { … }`.
pub(crate) fn test_blocks(tokens: &[Token<'_>]) -> Vec<(usize, usize)> {
    let mut blocks = Vec::new();
    let (mut at, mut depth) = (0, 0_usize);
    while at < tokens.len() {
        if depth == 0 && test_attribute(tokens, at) {
            let end = item_end(tokens, at);
            let item = &tokens[at..end];
            let last = item.last().filter(|last| last.is("}"));
            if let Some(last) = last.filter(|_| item.iter().any(|token| token.is("mod"))) {
                blocks.push((tokens[at].line, last.line));
            }
            at = end;
            continue;
        }
        depth = next_depth(depth, &tokens[at]);
        at += 1;
    }
    blocks
}

/// Every `mod name;`.
pub(crate) fn declared(tokens: &[Token<'_>]) -> Vec<Declared> {
    let names = |tokens: &[Token<'_>]| -> Vec<String> {
        let found =
            tokens.windows(3).filter(|w| w[0].is("mod") && w[1].kind == Kind::Word && w[2].is(";"));
        found.map(|w| w[1].text.to_owned()).collect()
    };
    let kept = names(&production(tokens));
    names(tokens).into_iter().map(|name| Declared { test: !kept.contains(&name), name }).collect()
}

/// Every path of two segments or more, imports expanded.
pub(crate) fn references(tokens: &[Token<'_>]) -> Vec<Reference> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].is("use") {
            let exported = at > 0 && (tokens[at - 1].is("pub") || tokens[at - 1].is(")"));
            let mut tree = UseTree { tokens, at: at + 1, exported, found: &mut found };
            tree.read(&mut Vec::new());
            at = tree.at;
        } else if tokens[at].kind == Kind::Word && !(at > 0 && tokens[at - 1].is("::")) {
            let (path, end) = written_path(tokens, at);
            let visibility = at > 2 && tokens[at - 1].is("in") && tokens[at - 3].is("pub");
            if path.len() > 1 && !visibility {
                found.push(Reference { path, name: None, exported: false, line: tokens[at].line });
            }
            at = end;
        } else {
            at += 1;
        }
    }
    found
}

/// Reads what follows a `use`.
struct UseTree<'a, 'b> {
    tokens: &'a [Token<'a>],
    at: usize,
    exported: bool,
    found: &'b mut Vec<Reference>,
}

impl UseTree<'_, '_> {
    /// Reads one subtree and stops at the mark that ends it.
    fn read(&mut self, prefix: &mut Vec<String>) {
        let depth = prefix.len();
        while let Some(token) = self.tokens.get(self.at) {
            if token.kind == Kind::Word || token.is("*") {
                prefix.push(token.text.to_owned());
                self.at += 1;
                if !self.tokens.get(self.at).is_some_and(|next| next.is("::")) {
                    self.leaf(prefix, token.line);
                    break;
                }
            } else if token.is("{") {
                self.at += 1;
                self.group(prefix);
                break;
            } else if token.is("::") {
                self.at += 1;
            } else {
                break;
            }
        }
        prefix.truncate(depth);
    }

    fn group(&mut self, prefix: &mut Vec<String>) {
        while let Some(token) = self.tokens.get(self.at) {
            if token.is("}") {
                self.at += 1;
                return;
            }
            if token.is(",") {
                self.at += 1;
                continue;
            }
            let before = self.at;
            self.read(prefix);
            self.at = self.at.max(before + 1);
        }
    }

    fn leaf(&mut self, prefix: &[String], line: usize) {
        let mut path = prefix.to_vec();
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let mut name = path.last().cloned();
        if self.tokens.get(self.at).is_some_and(|next| next.is("as")) {
            name = self.tokens.get(self.at + 1).map(|alias| alias.text.to_owned());
            self.at += 2;
        }
        self.found.push(Reference { path, name, exported: self.exported, line });
    }
}

fn written_path(tokens: &[Token<'_>], from: usize) -> (Vec<String>, usize) {
    let mut path = vec![tokens[from].text.to_owned()];
    let mut at = from + 1;
    while at + 1 < tokens.len() && tokens[at].is("::") && tokens[at + 1].kind == Kind::Word {
        path.push(tokens[at + 1].text.to_owned());
        at += 2;
    }
    (path, at)
}

/// Whether an attribute that compiles what follows for tests only begins here: `cfg(test)`, or
/// `all` or `any` of `test` and something else.
fn test_attribute(tokens: &[Token<'_>], at: usize) -> bool {
    let is = |offset: usize, text: &str| tokens.get(at + offset).is_some_and(|t| t.is(text));
    let inner = usize::from(is(1, "!"));
    let cfg = is(0, "#") && is(1 + inner, "[") && is(2 + inner, "cfg") && is(3 + inner, "(");
    let nested = is(4 + inner, "all") || is(4 + inner, "any");
    cfg && (is(4 + inner, "test") || nested && is(6 + inner, "test"))
}

/// The index after the bracket or brace that closes the first one at or after `from`.
fn closed(tokens: &[Token<'_>], from: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        let next = next_depth(depth, token);
        if next == 0 && depth > 0 {
            return at + 1;
        }
        depth = next;
    }
    tokens.len()
}

/// The index after the item, field or statement whose attributes begin at `from`.
fn item_end(tokens: &[Token<'_>], from: usize) -> usize {
    let mut at = from;
    while tokens.get(at).is_some_and(|token| token.is("#")) {
        at = closed(tokens, at);
    }
    let keyword = tokens.get(at).is_some_and(|first| ITEM_WORDS.contains(&first.text));
    let mut depth = 0;
    while let Some(token) = tokens.get(at) {
        let next = next_depth(depth, token);
        let closes = [")", "]", "}"].iter().any(|close| token.is(close));
        if depth == 0 && closes {
            return at;
        }
        at += 1;
        let ends = token.is(";") || token.is("}") || token.is(",") && !keyword;
        if next == 0 && ends {
            return at;
        }
        depth = next;
    }
    at
}

/// Words that an item, unlike a field or a match arm, begins with.
const ITEM_WORDS: [&str; 15] = [
    "pub", "fn", "mod", "use", "impl", "struct", "enum", "const", "static", "trait", "type",
    "async", "unsafe", "extern", "let",
];

fn next_depth(depth: usize, token: &Token<'_>) -> usize {
    if ["(", "[", "{"].iter().any(|open| token.is(open)) {
        depth + 1
    } else if [")", "]", "}"].iter().any(|close| token.is(close)) {
        depth.saturating_sub(1)
    } else {
        depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokens;

    fn kept(text: &str) -> String {
        let found: Vec<_> = production(&tokens(text)).iter().map(|token| token.text).collect();
        found.join(" ")
    }

    fn paths(text: &str) -> Vec<String> {
        references(&tokens(text)).iter().map(|found| found.path.join("::")).collect()
    }

    #[test]
    fn test_items_are_left_out() {
        assert_eq!(kept("#[cfg(test)] mod tests { fn a() {} } fn b() {}"), "fn b ( ) { }");
        assert_eq!(kept("#[cfg(test)]\n#[path = \"x\"] mod t; fn b() {}"), "fn b ( ) { }");
        assert_eq!(kept("#[cfg(any(test, feature = \"x\"))] pub mod t; a"), "a");
        assert_eq!(kept("struct S { #[cfg(test)] a: u8, b: u8 }"), "struct S { b : u8 }");
        assert_eq!(kept("#[cfg(test)] fn f<A, B>(a: [A; 2]) -> B { a } c"), "c");
        assert_eq!(kept("#![cfg(test)] fn a() {}"), "");
        assert_eq!(kept("#[cfg(unix)] fn a() {}"), "# [ cfg ( unix ) ] fn a ( ) { }");
    }

    #[test]
    fn test_blocks_know_their_lines() {
        let text = "fn a() {}\n#[cfg(test)]\nmod t {\n  fn b() {}\n}\n#[cfg(test)]\nmod u;\n";
        assert_eq!(test_blocks(&tokens(text)), [(2, 5)]);
    }

    #[test]
    fn modules_are_found() {
        let found = declared(&tokens("pub mod a; #[cfg(test)] mod tests; mod b { fn c() {} }"));
        let named: Vec<_> = found.iter().map(|m| (m.name.as_str(), m.test)).collect();
        assert_eq!(named, [("a", false), ("tests", true)]);
    }

    #[test]
    fn imports_are_expanded_to_their_ends() {
        let text = "use crate::{a, b::{self, C as D, e::*}}; use super::x; fn f() { g::h::<u8>() }";
        let expected =
            ["crate::a", "crate::b", "crate::b::C", "crate::b::e::*", "super::x", "g::h"];
        assert_eq!(paths(text), expected);
    }

    #[test]
    fn a_visibility_is_no_reference() {
        assert!(paths("pub(in crate::a) fn f() {} pub(super) const A: u8 = 1;").is_empty());
        assert_eq!(paths("for x in crate::a::b() {}"), ["crate::a::b"]);
    }

    #[test]
    fn imports_carry_the_name_they_are_known_by() {
        let text = "pub use error::{A, B as C};\npub(crate) use d::E; use f::G; h::I";
        let found = references(&tokens(text));
        let names: Vec<_> =
            found.iter().map(|found| (found.name.as_deref(), found.exported)).collect();
        assert_eq!(names[..3], [(Some("A"), true), (Some("C"), true), (Some("E"), true)]);
        assert_eq!(names[3..], [(Some("G"), false), (None, false)]);
        assert_eq!(found[2].line, 2);
    }
}
