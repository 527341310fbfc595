//! Microsoft Teams: an Adaptive Card for a workflow that starts with a webhook.
//!
//! A message has an attachment of the type `application/vnd.microsoft.card.adaptive`. Text stands
//! in runs (`TextRun`), which know no Markdown, and mentions need a list of their own, which is not
//! there. The workflow answers 202.
//! Never: a `TextBlock`, which reads Markdown.

use domain::alert::notice::{Notice, Occasion};
use domain::alert::rule::Severity;
use serde_json::{Value, json};

use super::told;

/// A message.
pub(super) fn message(notice: &Notice) -> Value {
    let mut body = vec![json!({
        "type": "RichTextBlock",
        "inlines": [{
            "type": "TextRun", "weight": "Bolder", "size": "Large", "color": color(notice),
            "text": literal(&told::headline(notice, told::TITLE_CHARS)),
        }],
    })];
    body.extend(told::facts(notice).iter().map(|(name, fact)| line(name, fact)));
    body.extend(notice.subjects.iter().map(|it| line("endpoint", &told::subject(it))));
    body.extend(told::more(notice).map(|more| line("endpoints", &more)));
    let mut card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "msteams": {"width": "Full"},
    });
    if let Some(runbook) = &notice.runbook {
        card["actions"] = json!([{"type": "Action.OpenUrl", "title": "Runbook", "url": runbook}]);
    }
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": card,
        }],
    })
}

const fn color(notice: &Notice) -> &'static str {
    match (notice.occasion, notice.severity) {
        (Occasion::Resolved | Occasion::TestOver, _) => "Good",
        (_, Severity::Critical | Severity::High) => "Attention",
        (_, Severity::Medium | Severity::Low) => "Warning",
    }
}

fn line(name: &str, text: &str) -> Value {
    json!({
        "type": "RichTextBlock",
        "inlines": [
            {"type": "TextRun", "weight": "Bolder", "text": format!("{name}: ")},
            {"type": "TextRun", "text": literal(text)},
        ],
    })
}

/// Two braces would be a function of dates or a place of a template.
fn literal(text: &str) -> String {
    text.replace("{{", "{ {").replace("${", "$ {")
}
