//! Tokens to one line, always spaced alike.
//!
//! Never: depends on how the source is wrapped.

use crate::lexer::{Kind, Token};

/// The tokens as one line.
pub(super) fn line(tokens: &[Token<'_>]) -> String {
    let mut text = String::new();
    let mut before: Option<&Token<'_>> = None;
    for (at, token) in tokens.iter().enumerate() {
        // A comma before a closing bracket is only there where the source is wrapped.
        if token.is(",") && tokens.get(at + 1).is_none_or(closes) {
            continue;
        }
        if before.is_some_and(|before| spaced(before, token)) {
            text.push(' ');
        }
        text.push_str(token.text);
        before = Some(token);
    }
    text
}

fn closes(token: &Token<'_>) -> bool {
    [")", "]", "}", ">"].iter().any(|close| token.is(close))
}

/// Whether a space stands between the two.
fn spaced(before: &Token<'_>, after: &Token<'_>) -> bool {
    let around = |token: &Token<'_>| ["=", "->", "=>", "+", "{", "}"].iter().any(|m| token.is(m));
    let word = |token: &Token<'_>| token.kind != Kind::Mark;
    if around(before) || around(after) {
        return true;
    }
    if [",", ";", ":"].iter().any(|mark| before.is(mark)) {
        return true;
    }
    word(after) && (word(before) || before.is(">") || before.is(")"))
        || word(before) && (after.is("&") || after.is("#"))
        || before.is(")") && after.is("&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokens;

    #[test]
    fn wrapping_does_not_matter() {
        for text in [
            "fn call<T, E, F>(&self, call: F) -> Result<T, CallError<E>> where F: Future<Output = Result<T, E>>",
            "struct A { b: [u8; 2], c: &'static str, d: Box<dyn Fn(&str) -> u8 + Send> }",
            "impl<S: Sleeper + ?Sized> Sleeper for &S",
            "fn a(&mut self, b: impl Into<Arc<str>>) -> impl Future<Output = ()> + use<S, T>",
        ] {
            assert_eq!(line(&tokens(text)), text);
            let wrapped = text.replace(", ", ",\n    ").replace(')', ",\n)");
            assert_eq!(line(&tokens(&wrapped)), text, "{wrapped}");
        }
    }
}
