//! Titles of notifications: fixed words of an operator with places for figures.
//!
//! `{rule}`, `{severity}`, `{value}`, `{threshold}` and `{window}` are replaced; `{{` and `}}` are
//! braces.
//! Never: take a text of a tenant in.

use std::time::Duration;

use crate::error::Invalid;
use crate::limits::ALERT_TITLE_CHARS_MAX;
use crate::text;

/// Characters that change in which direction what follows is read (Unicode's UAX 9).
const TURNS: [char; 12] = [
    '\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
    '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

/// Whether a title can be filled in, from what there is of these.
pub fn validate(field: &str, title: &str, places: &[&str]) -> Result<(), Invalid> {
    text::name(field, title)?;
    if title.chars().count() > ALERT_TITLE_CHARS_MAX {
        let rule = format!("must be at most {ALERT_TITLE_CHARS_MAX} characters");
        return Err(Invalid::new(field, rule));
    }
    if title.chars().any(char::is_control) {
        return Err(Invalid::new(field, "must not contain control characters"));
    }
    if title.contains(TURNS) {
        return Err(Invalid::new(field, "must not change the direction of text"));
    }
    match fill(title, |place| places.contains(&place).then(String::new)) {
        Some(_) => Ok(()),
        None => {
            let known: Vec<_> = places.iter().map(|place| format!("{{{place}}}")).collect();
            let known = known.join(", ");
            Err(Invalid::new(field, format!("may have in braces only {known}; a brace is doubled")))
        }
    }
}

/// Fills a title in; `None` if it names what `value` does not know, or a brace stands alone.
pub fn fill(title: &str, value: impl Fn(&str) -> Option<String>) -> Option<String> {
    let (mut filled, mut rest) = (String::new(), title);
    while let Some(at) = rest.find(['{', '}']) {
        filled.push_str(&rest[..at]);
        let behind = &rest[at..];
        if let Some(after) = behind.strip_prefix("{{") {
            filled.push('{');
            rest = after;
        } else if let Some(after) = behind.strip_prefix("}}") {
            filled.push('}');
            rest = after;
        } else {
            let (place, after) = behind.strip_prefix('{')?.split_once('}')?;
            filled.push_str(&value(place)?);
            rest = after;
        }
    }
    filled.push_str(rest);
    Some(filled)
}

/// A span in the largest unit that it is a whole number of.
pub fn span(span: Duration) -> String {
    let secs = span.as_secs();
    match secs {
        0 => "0s".to_owned(),
        _ if secs.is_multiple_of(86_400) => format!("{}d", secs / 86_400),
        _ if secs.is_multiple_of(3_600) => format!("{}h", secs / 3_600),
        _ if secs.is_multiple_of(60) => format!("{}m", secs / 60),
        _ => format!("{secs}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_filled_in_or_refused() {
        let known = |place: &str| (place == "value").then(|| "12".to_owned());
        let rows = [
            ("no place", Some("no place")),
            ("{value} of {value}", Some("12 of 12")),
            ("{{value}} {value}}}", Some("{value} 12}")),
            ("{other}", None),
            ("{value", None),
            ("value}", None),
            ("{}", None),
            ("{ value }", None),
        ];
        for (title, filled) in rows {
            assert_eq!(fill(title, known).as_deref(), filled, "{title}");
        }
    }

    #[test]
    fn what_cannot_be_a_title_says_why() {
        let places = ["rule", "severity", "value", "threshold", "window"];
        let validate = |field, title| validate(field, title, &places);
        assert!(
            validate("title", "{severity}: {value} > {threshold} in {window} ({rule})").is_ok()
        );
        let long = "a".repeat(ALERT_TITLE_CHARS_MAX + 1);
        for bad in ["", "a\nb", "a\u{7f}b", "a\u{202e}b", "{count}", "{", &long] {
            assert_eq!(validate("title", bad).unwrap_err().loc, ["body", "title"], "{bad}");
        }
    }

    #[test]
    fn a_span_is_written_short() {
        let rows = [(0, "0s"), (90, "90s"), (300, "5m"), (7_200, "2h"), (172_800, "2d")];
        for (secs, text) in rows {
            assert_eq!(span(Duration::from_secs(secs)), text);
        }
    }
}
