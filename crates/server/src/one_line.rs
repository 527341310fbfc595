//! Text from outside, fit for one line that people read.
//!
//! Never: escape for a format; whoever writes in one does.

/// One line of at most `chars_max` characters, without control characters and without those that
/// turn the direction of a line or cannot be seen.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
    let shown: String = text.chars().map(|c| if is_shown(c) { c } else { ' ' }).collect();
    let mut words = String::new();
    for word in shown.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
    }
    match words.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

fn is_shown(c: char) -> bool {
    let hides = ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{206f}'];
    !c.is_control() && c != '\u{feff}' && !hides.iter().any(|range| range.contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ui_02_what_hides_or_turns_a_line_is_gone() {
        let rows = [
            ("a\r\nb\tc", "a b c"),
            ("evil\u{202e}gnp.exe", "evil gnp.exe"),
            ("\u{2066}a\u{2069}\u{feff}\u{200b}b", "a b"),
            ("\u{1b}[31mred", "[31mred"),
            ("", ""),
        ];
        for (text, line) in rows {
            assert_eq!(one_line(text, 40), line);
        }
        assert_eq!(one_line("äöüß", 3), "äöü…");
        assert_eq!(one_line("äöü", 3), "äöü");
    }
}
