//! Opsgenie: the alert API.
//!
//! An alert is created by a POST to `/v2/alerts` with `message` (at most 130 characters), `alias`
//! (512), `description` (15,000), `priority` (`P1` to `P5`), `tags` and `details` (texts); what is
//! done to it is a POST to `/v2/alerts/{alias}/close` or `/acknowledge` with
//! `identifierType=alias`. The key goes in `authorization: GenieKey …`. It answers 202.
//! Never: markup of a tenant in a description, which is shown as HTML.

use bytes::Bytes;
use domain::alert::notice::{Notice, Occasion};
use domain::alert::rule::Severity;
use domain::target::Target;
use engine::alert::{Request, Worded};
use serde_json::{Map, Value, json};

use super::request::plain;
use super::told;

/// Characters of a message.
const MESSAGE_CHARS: usize = 130;
/// Characters of a description.
const DESCRIPTION_CHARS: usize = 15_000;

/// A request for a notification; `None` if the address of an alert cannot be made.
pub(super) fn request(notice: &Notice, url: &Target, api_key: &str) -> Option<Worded> {
    let headers = vec![("authorization".to_owned(), format!("GenieKey {api_key}"))];
    let act = match notice.occasion {
        Occasion::Firing | Occasion::Updated | Occasion::Test => {
            let made = Request { headers, ..plain(url, &alert(notice)) };
            return Some(Worded::Request(Box::new(made)));
        }
        Occasion::Acknowledged => "acknowledge",
        Occasion::Resolved | Occasion::TestOver => "close",
    };
    let base = url.as_str().trim_end_matches('/');
    let to = format!("{base}/{}/{act}?identifierType=alias", notice.dedup_key);
    let body = json!({"source": "Peyk", "note": told::headline(notice, MESSAGE_CHARS)});
    Some(Worded::Request(Box::new(Request {
        place: format!("{}.{act}", notice.rule),
        target: Target::parse("url", &to, false).ok()?,
        headers,
        secret: None,
        payload: Bytes::from(body.to_string()),
        is_second: true,
    })))
}

fn alert(notice: &Notice) -> Value {
    let facts = notice.facts.iter().map(|(name, fact)| (name.clone(), Value::String(fact.clone())));
    let mut details: Map<_, _> = facts.collect();
    details.insert("incident".to_owned(), told::facts(notice)[3].1.clone().into());
    if let Some(runbook) = &notice.runbook {
        details.insert("runbook".to_owned(), runbook.clone().into());
    }
    json!({
        "message": told::headline(notice, MESSAGE_CHARS),
        "alias": notice.dedup_key,
        "description": description(notice),
        "priority": priority(notice.severity),
        "tags": ["peyk", notice.severity.name(), notice.condition],
        "entity": notice.rule,
        "source": "Peyk",
        "details": details,
    })
}

const fn priority(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "P1",
        Severity::High => "P2",
        Severity::Medium => "P3",
        Severity::Low => "P4",
    }
}

fn description(notice: &Notice) -> String {
    let facts = told::facts(notice).into_iter().map(|(name, fact)| format!("{name}: {fact}"));
    let subjects = notice.subjects.iter().map(told::plain_subject).chain(told::more(notice));
    let lines: Vec<_> = facts.chain(subjects).map(|line| escaped(&line)).collect();
    let text = lines.join("\n");
    text.chars().take(DESCRIPTION_CHARS).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
