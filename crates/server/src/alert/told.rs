//! What all formats say alike: words for occasions, lines about endpoints.
//!
//! Names that tenants chose come out as one line; each format escapes it.
//! Never: markup.

use domain::alert::notice::{Notice, Occasion};
use domain::alert::reading::Failing;
use domain::ids::Kind;

use crate::api::views::time;
use crate::one_line::one_line;

/// Characters of a title.
pub(super) const TITLE_CHARS: usize = 300;
/// Characters of a name.
const NAME_CHARS: usize = 80;

/// The occasion in a word.
pub(super) const fn status(notice: &Notice) -> &'static str {
    match notice.occasion {
        Occasion::Firing => "firing",
        Occasion::Updated => "still firing",
        Occasion::Acknowledged => "acknowledged",
        Occasion::Resolved | Occasion::TestOver => "resolved",
        Occasion::Test => "test",
    }
}

/// The title.
pub(super) fn title(notice: &Notice) -> String {
    one_line(&notice.title, TITLE_CHARS)
}

/// Title behind the status.
pub(super) fn headline(notice: &Notice, chars_max: usize) -> String {
    let line = format!("[{}] {}", status(notice), notice.title);
    // One is the sign that it was cut.
    one_line(&line, chars_max.saturating_sub(1))
}

/// Figures, and what else has a name.
pub(super) fn facts(notice: &Notice) -> Vec<(String, String)> {
    let mut facts = vec![
        ("rule".to_owned(), notice.rule.clone()),
        ("severity".to_owned(), notice.severity.name().to_owned()),
        ("since".to_owned(), time(notice.since)),
        ("incident".to_owned(), notice.incident.text(Kind::Incident)),
    ];
    facts.extend(notice.facts.iter().map(|(name, fact)| (name.clone(), one_line(fact, 200))));
    facts
}

/// What an endpoint is called: its owner's name for it, or its id.
pub(super) fn endpoint(of: &Failing) -> String {
    let id = of.endpoint.text(Kind::Endpoint);
    match &of.endpoint_uid {
        Some(uid) => format!("{} ({id})", one_line(uid, NAME_CHARS)),
        None => id,
    }
}

/// The application of an endpoint, as a tenant called it.
pub(super) fn app(of: &Failing) -> String {
    one_line(&of.app_name, NAME_CHARS)
}

/// An endpoint in one line.
pub(super) fn subject(of: &Failing) -> String {
    format!("{} of {}, {}, since {}", endpoint(of), app(of), of.origin, time(of.since))
}

/// An endpoint in one line, for those who make links of what looks like an address: nothing that a
/// tenant chose does.
pub(super) fn plain_subject(of: &Failing) -> String {
    let (endpoint, app) = (unlinked(&endpoint(of)), unlinked(&app(of)));
    format!("{endpoint} of {app}, {}, since {}", unlinked(&of.origin), time(of.since))
}

/// Full stops, colons and at signs between other characters stand in brackets: `evil[.]example`.
fn unlinked(text: &str) -> String {
    let mut plain = String::new();
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_within = |next: Option<&char>| next.is_some_and(|next| !next.is_whitespace());
        let joins = matches!(c, '.' | ':' | '@' | '\u{3002}' | '\u{ff0e}' | '\u{ff61}');
        if joins
            && before.is_some_and(|before: char| !before.is_whitespace())
            && is_within(rest.peek())
        {
            plain.extend(['[', c, ']']);
        } else {
            plain.push(c);
        }
        before = Some(c);
    }
    plain
}

/// How many are not named.
pub(super) fn more(notice: &Notice) -> Option<String> {
    (notice.more > 0).then(|| format!("and {} more", notice.more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_looks_like_an_address_is_left() {
        let rows = [
            ("http://evil.example", "http[:]//evil[.]example"),
            ("www.evil.example/a?b=1.", "www[.]evil[.]example/a?b=1."),
            ("mailto:a@b.example", "mailto[:]a[@]b[.]example"),
            ("evil。example", "evil[。]example"),
            ("A. B: C @ D", "A. B: C @ D"),
            ("Example Ltd.", "Example Ltd."),
            ("", ""),
        ];
        for (name, plain) in rows {
            assert_eq!(unlinked(name), plain);
        }
    }
}
