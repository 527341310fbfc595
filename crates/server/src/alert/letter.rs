//! Letters to on-call people: plain text.
//!
//! Never: anything in the subject but one line of it.

use std::fmt::Write as _;

use domain::alert::notice::{Notice, Occasion};

use super::told;

/// Characters of a subject.
const SUBJECT_CHARS: usize = 160;

/// The subject.
pub(super) fn subject(notice: &Notice) -> String {
    format!("Peyk {}: {}", notice.severity.name(), told::headline(notice, SUBJECT_CHARS))
}

/// The text.
pub(super) fn text(notice: &Notice) -> String {
    let mut text = format!("{}\n\n", told::title(notice));
    for (name, fact) in told::facts(notice) {
        let _infallible = writeln!(text, "{name}: {fact}");
    }
    if !notice.subjects.is_empty() {
        text.push_str("\nEndpoints:\n");
        for line in notice.subjects.iter().map(told::plain_subject).chain(told::more(notice)) {
            let _infallible = writeln!(text, "  {line}");
        }
    }
    if let Some(runbook) = &notice.runbook {
        let _infallible = writeln!(text, "\nRunbook: {runbook}");
    }
    if notice.occasion == Occasion::Firing {
        text.push_str("\nWho looks at it says so: peyk alert acknowledge <incident>.\n");
    }
    text.push_str("\nThis was sent by Peyk on a route of its alerts.\n");
    text
}
