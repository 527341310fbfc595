//! Every format against what its vendor documents: names, kinds and lengths of fields.
//!
//! Never: a request to a vendor.

use domain::alert::reading::Failing;
use domain::alert::rule::Severity;
use domain::email::EmailAddress;
use domain::ids::PublicId;
use resilience::Timestamp;
use serde_json::json;

use super::*;

const AT: Timestamp = Timestamp::from_secs(1_800_000_000);
/// All that a tenant may try, in one name.
const HOSTILE: &str = "<!channel> <@U1> @here <https://evil.example|ok> [ok](https://evil.example) \
    *b* `c` {{DATE(2020)}} <b>x</b> &amp; \u{202e}gnp.exe\u{2066}\r\nBcc: a@b.example";

fn notice(occasion: Occasion) -> Notice {
    let subject = |key| Failing {
        endpoint: PublicId::new(key, [1; 12]),
        endpoint_uid: Some("hook".into()),
        origin: "https://a.example:443".into(),
        app: PublicId::new(9, [2; 12]),
        app_name: HOSTILE.into(),
        since: AT,
    };
    Notice {
        occasion,
        incident: PublicId::new(3, [3; 12]),
        rule: "endpoints".into(),
        condition: "endpoint_failing".into(),
        severity: Severity::Critical,
        title: "12 endpoints have failed for 1h".into(),
        facts: vec![("value".into(), "12".into())],
        subjects: (1..=10).map(subject).collect(),
        more: 2,
        runbook: Some("https://wiki.example/a|b?c=<d>".into()),
        since: AT,
        at: AT,
        dedup_key: "peyk-0707070707070707-endpoints".into(),
    }
}

fn url() -> Target {
    Target::parse("url", "https://vendor.example/path", false).unwrap()
}

fn sent(channel: Channel, notice: &Notice) -> (Request, Value) {
    let route = Route { name: "ops".into(), channel };
    match worded(&route, notice) {
        Some(Worded::Request(request)) => {
            let body = serde_json::from_slice(&request.payload).unwrap();
            (*request, body)
        }
        other => panic!("{other:?}"),
    }
}

/// Every text of a value.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(entries) => entries.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn pagerduty_gets_events_of_version_2() {
    let channel = || Channel::PagerDuty { url: url(), routing_key: "k".repeat(32) };
    let actions = [
        (Occasion::Firing, "trigger"),
        (Occasion::Updated, "trigger"),
        (Occasion::Acknowledged, "acknowledge"),
        (Occasion::Resolved, "resolve"),
        (Occasion::Test, "trigger"),
        (Occasion::TestOver, "resolve"),
    ];
    for (occasion, action) in actions {
        let (request, event) = sent(channel(), &notice(occasion));
        assert_eq!((event["event_action"].as_str(), request.is_second), (Some(action), false));
        assert_eq!(event["routing_key"].as_str().unwrap().len(), 32);
        let key = event["dedup_key"].as_str().unwrap();
        assert!(key == notice(occasion).dedup_key && key.len() <= 255);
        assert_eq!(event.get("payload").is_some(), action == "trigger");
    }
    let (_, event) = sent(channel(), &notice(Occasion::Firing));
    let payload = &event["payload"];
    assert!((1..=1_024).contains(&payload["summary"].as_str().unwrap().chars().count()));
    assert!(!payload["source"].as_str().unwrap().is_empty());
    assert_eq!(payload["severity"], "critical");
    assert!(payload["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
    assert_eq!(payload["custom_details"]["endpoints"].as_array().unwrap().len(), 11);
    assert_eq!(keys(&event["links"][0]), ["href", "text"]);
    let known = ["client", "dedup_key", "event_action", "links", "payload", "routing_key"];
    assert_eq!(keys(&event), known);
}

#[test]
fn opsgenie_gets_an_alert_and_its_end_under_one_alias() {
    let channel = || Channel::Opsgenie { url: url(), api_key: "genie".into() };
    let (request, alert) = sent(channel(), &notice(Occasion::Firing));
    assert_eq!(request.headers, [("authorization".to_owned(), "GenieKey genie".to_owned())]);
    assert_eq!(request.target, url());
    assert!((1..=130).contains(&alert["message"].as_str().unwrap().chars().count()));
    assert_eq!(alert["alias"], "peyk-0707070707070707-endpoints");
    assert!(alert["description"].as_str().unwrap().chars().count() <= 15_000);
    assert_eq!((&alert["priority"], &alert["source"]), (&json!("P1"), &json!("Peyk")));
    assert!(alert["details"].as_object().unwrap().values().all(Value::is_string));
    assert!(alert["tags"].as_array().unwrap().iter().all(|tag| tag.as_str().unwrap().len() <= 50));
    for (occasion, act) in [(Occasion::Resolved, "close"), (Occasion::Acknowledged, "acknowledge")]
    {
        let (request, body) = sent(channel(), &notice(occasion));
        let path = format!("/peyk-0707070707070707-endpoints/{act}?identifierType=alias");
        assert_eq!(request.target.as_str(), format!("https://vendor.example/path{path}"));
        assert!(request.is_second && request.place == format!("endpoints.{act}"));
        assert_eq!(request.headers[0].1, "GenieKey genie");
        assert_eq!(keys(&body), ["note", "source"]);
    }
}

#[test]
fn slack_gets_blocks_within_their_bounds() {
    let (_, message) = sent(Channel::Slack { url: url() }, &notice(Occasion::Firing));
    let blocks = message["blocks"].as_array().unwrap();
    assert!((1..=50).contains(&blocks.len()));
    assert_eq!(blocks[0]["type"], "header");
    assert_eq!(blocks[0]["text"]["type"], "plain_text");
    assert!(blocks[0]["text"]["text"].as_str().unwrap().chars().count() <= 150);
    for block in &blocks[1..] {
        assert_eq!(block["type"], "section");
        assert_eq!(
            (&block["text"]["type"], &block["text"]["verbatim"]),
            (&json!("mrkdwn"), &json!(true))
        );
        assert!((1..=3_000).contains(&block["text"]["text"].as_str().unwrap().chars().count()));
    }
    let link = blocks.last().unwrap()["text"]["text"].as_str().unwrap();
    assert_eq!(link, "<https://wiki.example/a%7Cb?c=&lt;d&gt;|Runbook>");
}

#[test]
fn ui_02_slack_reads_no_mention_and_no_link_of_a_tenant() {
    let (_, message) = sent(Channel::Slack { url: url() }, &notice(Occasion::Firing));
    let of_tenants = &message["blocks"][2]["text"]["text"];
    for line in of_tenants.as_str().unwrap().lines().filter(|line| !line.starts_with("and ")) {
        let inner = line.strip_prefix('`').and_then(|line| line.strip_suffix('`')).unwrap();
        assert!(!inner.contains(['<', '>', '`']), "{inner}");
        assert!(inner.contains("&lt;!channel&gt; &lt;@U1&gt; @here"), "shown literally: {inner}");
    }
    no_turns(&message);
}

#[test]
fn teams_gets_an_adaptive_card_without_markdown() {
    let (_, message) = sent(Channel::Teams { url: url() }, &notice(Occasion::Firing));
    assert_eq!(
        (&message["type"], keys(&message)),
        (&json!("message"), vec!["attachments", "type"])
    );
    let attachment = &message["attachments"][0];
    assert_eq!(attachment["contentType"], "application/vnd.microsoft.card.adaptive");
    let card = &attachment["content"];
    assert_eq!((&card["type"], &card["version"]), (&json!("AdaptiveCard"), &json!("1.4")));
    assert_eq!(card["actions"][0]["type"], "Action.OpenUrl");
    for block in card["body"].as_array().unwrap() {
        assert_eq!(block["type"], "RichTextBlock", "a TextBlock would read Markdown");
        assert!(block["inlines"].as_array().unwrap().iter().all(|run| run["type"] == "TextRun"));
    }
    assert!(texts(card).iter().all(|text| !text.contains("{{")));
    assert!(card.get("msteams").unwrap().get("entities").is_none(), "so nobody is mentioned");
    assert!(message.to_string().len() < 28_000);
    no_turns(&message);
}

#[test]
fn a_signed_webhook_holds_type_time_and_data() {
    let secret = Box::new(Secret::from_random_hmac([7; 24]));
    let channel = Channel::Webhook { url: url(), secret };
    let (request, payload) = sent(channel, &notice(Occasion::Firing));
    assert!(request.secret.is_some());
    assert_eq!(keys(&payload), ["data", "timestamp", "type"]);
    assert_eq!(payload["type"], "alert.firing");
    assert_eq!(payload["data"]["endpoints"][0]["appName"], HOSTILE, "as it is");
    assert_eq!(payload["data"]["moreEndpoints"], 2);
}

#[test]
fn ui_02_opsgenie_and_pagerduty_show_markup_literally() {
    let channel = Channel::Opsgenie { url: url(), api_key: "genie".into() };
    let mut marked = notice(Occasion::Firing);
    marked.subjects[0].app_name = "<b>x</b> &amp; \u{202e}".into();
    let (_, alert) = sent(channel, &marked);
    assert!(!alert["description"].as_str().unwrap().contains(['<', '>']));
    assert!(alert["description"].as_str().unwrap().contains("&lt;b&gt;x&lt;/b&gt; &amp;amp;"));
    no_turns(&alert);
    let channel = Channel::PagerDuty { url: url(), routing_key: "k".repeat(32) };
    no_turns(&sent(channel, &notice(Occasion::Firing)).1);
}

#[test]
fn ui_02_no_name_of_a_tenant_becomes_a_link() {
    let mut named = notice(Occasion::Firing);
    named.subjects[0].app_name = "http://evil.example/login".into();
    named.subjects[1].endpoint_uid = Some("www.evil.example".into());
    named.subjects[2].origin = "https://evil.example:443".into();
    let opsgenie = Channel::Opsgenie { url: url(), api_key: "genie".into() };
    let pagerduty = Channel::PagerDuty { url: url(), routing_key: "k".repeat(32) };
    let to = vec![EmailAddress::parse("to", "ops@example.com").unwrap()];
    let route = Route { name: "mail".into(), channel: Channel::Email { to } };
    let Some(Worded::Letter { text, .. }) = worded(&route, &named) else { panic!() };
    for sent in [sent(opsgenie, &named).1.to_string(), sent(pagerduty, &named).1.to_string(), text]
    {
        assert!(!sent.contains("evil.example") && !sent.contains("http://"), "{sent}");
        assert_eq!(sent.matches("evil[.]example").count(), 3 + 9 * 2, "{sent}");
    }
}

#[test]
fn ui_02_a_letter_is_plain_and_its_subject_one_line() {
    let to = vec![EmailAddress::parse("to", "ops@example.com").unwrap()];
    let route = Route { name: "mail".into(), channel: Channel::Email { to } };
    let mut notice = notice(Occasion::Firing);
    notice.title = HOSTILE.into();
    let Some(Worded::Letter { subject, text }) = worded(&route, &notice) else { panic!() };
    assert!(!subject.contains(char::is_control) && subject.chars().count() < 200, "{subject}");
    assert!(text.lines().all(|line| !line.starts_with("Bcc:")), "{text}");
    assert!(!text.contains('\u{202e}') && text.contains("and 2 more"), "{text}");
    assert!(text.contains("Runbook: https://wiki.example/"), "{text}");
}

#[test]
fn a_trial_leaves_nothing_open() {
    let over = notice(Occasion::TestOver);
    for channel in [Channel::Slack { url: url() }, Channel::Teams { url: url() }] {
        assert!(worded(&Route { name: "a".into(), channel }, &over).is_none());
    }
    let channel = Channel::Opsgenie { url: url(), api_key: "genie".into() };
    assert!(sent(channel, &over).0.target.as_str().contains("/close?"));
}

/// Nothing turns the direction of a line, or begins a new one within a name.
fn no_turns(message: &Value) {
    for text in texts(message) {
        let turned = text.contains(['\u{202e}', '\u{2066}', '\r']);
        assert!(!turned && !text.contains("\nBcc"), "{text}");
    }
}

#[test]
fn with_a_public_address_each_channel_names_where_the_incident_is() {
    let words = wording(Some("https://peyk.example/x".to_owned()));
    let firing = notice(Occasion::Firing);
    let link = format!(
        "https://peyk.example/x/api/v1/alert/incident/{}",
        firing.incident.text(Kind::Incident)
    );
    let channels = [
        Channel::PagerDuty { url: url(), routing_key: "k".repeat(32) },
        Channel::Opsgenie { url: url(), api_key: "genie".into() },
        Channel::Slack { url: url() },
        Channel::Teams { url: url() },
    ];
    for channel in channels {
        let route = Route { name: "ops".into(), channel };
        let says = |words: &Wording, notice: &Notice| match words(&route, notice) {
            Some(Worded::Request(request)) => String::from_utf8(request.payload.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        };
        assert!(says(&words, &firing).contains(&link), "{route:?}");
        assert!(!says(&words, &notice(Occasion::Test)).contains(&link), "of a trial there is none");
        assert!(!says(&wording(None), &firing).contains("/alert/incident/"), "{route:?}");
    }
}
