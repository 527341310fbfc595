//! Comments wrapped at the width of the code; the stable formatter leaves them as they are.
//!
//! In: the text of a Rust file. Out: the same with the words of over-wide comment lines moved down
//! into the lines that follow. Lists, tables, headings, code blocks and words that open a sentence
//! of a header (`In:`, `Never:`) keep their place.
//! Never: touches code, or a comment that fits.

use std::collections::BTreeSet;

use crate::lexer::{Kind, tokens};

/// Characters of a line.
pub(crate) const COLUMNS_MAX: usize = 100;

/// Words at the start of a comment line that begin a paragraph of their own.
const OPENINGS: [&str; 11] =
    ["- ", "* ", "|", "#", "```", "    ", "In:", "Out:", "Never:", "Source:", "["];

/// Wraps every over-wide comment of a file.
pub(crate) fn wrap(text: &str) -> String {
    let in_strings = string_lines(text);
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::with_capacity(text.len());
    let (mut at, mut fenced) = (0, false);
    while at < lines.len() {
        let line = lines[at];
        let comment = Comment::parse(line).filter(|_| !in_strings.contains(&(at + 1)));
        at += 1;
        fenced ^= comment.as_ref().is_some_and(|comment| comment.words.starts_with("```"));
        match comment {
            Some(comment) if !fenced && line.chars().count() > COLUMNS_MAX => {
                let mut words = comment.words.to_owned();
                while let Some(next) = lines.get(at).and_then(|next| comment.continued(next)) {
                    words.push(' ');
                    words.push_str(next);
                    at += 1;
                }
                comment.fill(&words, &mut out);
            }
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

/// A line that is a comment and nothing else.
struct Comment<'a> {
    indent: &'a str,
    mark: &'a str,
    words: &'a str,
}

impl<'a> Comment<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        let mark = ["//! ", "/// ", "// "].into_iter().find(|mark| code.starts_with(mark))?;
        Some(Self { indent, mark, words: &code[mark.len()..] })
    }

    /// The words of the next line, when they belong to the same paragraph.
    fn continued<'b>(&self, next: &'b str) -> Option<&'b str> {
        let next = Comment::parse(next)?;
        let same = next.indent == self.indent && next.mark == self.mark;
        let opens = OPENINGS.iter().any(|opening| next.words.starts_with(opening));
        let numbered =
            next.words.starts_with(|c: char| c.is_ascii_digit()) && next.words.contains(". ");
        (same && !opens && !numbered).then_some(next.words)
    }

    fn fill(&self, words: &str, out: &mut String) {
        let hanging = if self.words.starts_with(['-', '*']) { "  " } else { "" };
        let mut columns = 0;
        for word in words.split(' ').filter(|word| !word.is_empty()) {
            let length = word.chars().count();
            if columns > 0 && columns + 1 + length <= COLUMNS_MAX {
                out.push(' ');
                columns += 1 + length;
            } else {
                let hanging = if columns == 0 { "" } else { hanging };
                let start = format!("{}{}{hanging}", self.indent, self.mark);
                if columns > 0 {
                    out.push('\n');
                }
                out.push_str(&start);
                columns = start.len() + length;
            }
            out.push_str(word);
        }
        out.push('\n');
    }
}

/// Lines that begin inside a string literal.
fn string_lines(text: &str) -> BTreeSet<usize> {
    let texts = tokens(text);
    let texts = texts.iter().filter(|token| token.kind == Kind::Text);
    texts.flat_map(|token| token.line + 1..=token.line + token.text.matches('\n').count()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_move_down_to_the_end_of_their_paragraph() {
        let wide = "word ".repeat(30);
        let text =
            format!("//! {}\n//! end.\n//! Never: x\n//!\n//! other\nfn f() {{}}\n", wide.trim());
        let wrapped = wrap(&text);
        let first = format!("//! {}", "word ".repeat(19).trim());
        let second = format!("//! {} end.", "word ".repeat(11).trim());
        assert_eq!(
            wrapped,
            format!("{first}\n{second}\n//! Never: x\n//!\n//! other\nfn f() {{}}\n")
        );
        assert_eq!(wrap(&wrapped), wrapped, "nothing is left to do");
    }

    #[test]
    fn what_fits_is_code_or_is_a_string_stays() {
        let wide = "x ".repeat(80);
        let code =
            format!("let a = \"\n// {wide}\";\n/// ```\n/// {wide}\n/// ```\n/// a\n/// b\n");
        assert_eq!(wrap(&code), code);
    }

    #[test]
    fn lists_hang_and_long_words_stand_alone() {
        let long = "y".repeat(120);
        let wrapped = wrap(&format!("    /// - a {long} b\n    /// - c\n"));
        assert_eq!(wrapped, format!("    /// - a\n    ///   {long}\n    ///   b\n    /// - c\n"));
    }
}
