//! Text of others, made safe for a terminal.
//!
//! A receiver's answer or the name of an application may hold escape sequences that move the
//! cursor, and marks that turn the direction of what follows.
//! Never: a changed text where nothing had to be.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a terminal would act on a character instead of showing it.
fn acts(c: char) -> bool {
    // Not U+200C and U+200D: Persian is spelled with them.
    let turns = matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}')
        || matches!(c, '\u{2066}'..='\u{2069}');
    let hides =
        matches!(c, '\u{200B}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{FEFF}');
    turns || hides || c.is_control()
}

/// One line that shows what a terminal would act on.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if acts(c) => {
                let _infallible = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// JSON that means the same; white space between values stays.
pub(crate) fn safe_json(json: &str) -> Cow<'_, str> {
    let escaped = |c: char| acts(c) && !matches!(c, '\n' | '\r' | '\t');
    if !json.chars().any(escaped) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 8);
    for c in json.chars() {
        if escaped(c) {
            let _infallible = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_commands() {
        for (text, shown) in [
            ("plain é 🐎", "plain é 🐎"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("\x1b[2J", "\\u{1b}[2J"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("\u{9b}31m\x7f", "\\u{9b}31m\\u{7f}"),
            ("abc\u{202e}gpj", "abc\\u{202e}gpj"),
        ] {
            assert_eq!(safe(text), shown);
        }
    }

    #[test]
    fn json_means_the_same_afterwards() {
        let json = "{\"a\": \"\u{9b}31m\u{202e}\",\n \"b\": 1.0e2}";
        let shown = safe_json(json);
        assert_eq!(shown, "{\"a\": \"\\u009b31m\\u202e\",\n \"b\": 1.0e2}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(json), value(&shown));
        assert!(matches!(safe_json("{\n}"), Cow::Borrowed(_)));
    }
}
