//! Slack: messages of an incoming webhook, in blocks.
//!
//! A header is plain text of at most 150 characters, a text of a section at most 3,000. In `mrkdwn`
//! three characters are written as entities (`&`, `<`, `>`), so that there is no link and no
//! mention but ours; with `verbatim` names like `@channel` stay words. What a tenant chose stands
//! in code, where no sign of `mrkdwn` has a meaning.
//! Never: a text of a tenant outside of code.

use domain::alert::notice::Notice;
use serde_json::{Value, json};

use super::told;

/// Characters of a header.
const HEADER_CHARS: usize = 150;
/// Characters of the text of a section, some of them left for entities.
const SECTION_CHARS: usize = 2_900;

/// A message.
pub(super) fn message(notice: &Notice) -> Value {
    let mut blocks = vec![
        json!({"type": "header", "text": {
            "type": "plain_text", "emoji": false, "text": told::headline(notice, HEADER_CHARS)
        }}),
        section(told::facts(notice).iter().map(|(name, fact)| format!("{name}: {}", code(fact)))),
    ];
    if !notice.subjects.is_empty() {
        let lines = notice.subjects.iter().map(|it| code(&told::subject(it)));
        blocks.push(section(lines.chain(told::more(notice))));
    }
    if let Some(runbook) = &notice.runbook {
        // A bar would end the address.
        let link = format!("<{}|Runbook>", escaped(runbook).replace('|', "%7C"));
        blocks.push(section([link].into_iter()));
    }
    // What notifications show; mentions and links are read in it too.
    json!({"text": escaped(&told::headline(notice, HEADER_CHARS)), "blocks": blocks})
}

fn section(lines: impl Iterator<Item = String>) -> Value {
    let mut text = String::new();
    for line in lines {
        if text.chars().count() + line.chars().count() >= SECTION_CHARS {
            break;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&line);
    }
    json!({"type": "section", "text": {"type": "mrkdwn", "verbatim": true, "text": text}})
}

fn code(text: &str) -> String {
    format!("`{}`", escaped(text).replace('`', "'"))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
