//! Tables of posted bodies: what comes through byte for byte, and what is refused how.
//!
//! Never: a store.

use super::*;

const MOST: usize = 1_000;

fn payload(text: &str) -> Bytes {
    let body = format!(r#" {{"eventType":"a.b", "payload": {text} , "x": ["\ud800"]}} "#);
    read(body.as_bytes(), MOST).ok().unwrap().spec.payload
}

#[test]
fn sg_11_db_01_db_02_payloads_stay_as_they_are() {
    for text in [
        "{}",
        r#"{"b":1,"a":2}"#,
        r#"{"a":1,"a":2}"#,
        r#"{ "n" : 1.0e+2,"m":-0,"big":123456789012345678901234567890 }"#,
        r#"{"a":"x\u0000y"}"#,
        r#"{"a\u0000":1}"#,
        r#"{"a":"\\u0000"}"#,
        r#"{"a":"\ud800"}"#,
        r#"{"\udc00\ud800":"\/"}"#,
        "{\"a\":\"\u{2028}\u{2029}\u{FEFF}👩‍👩‍👧é\u{65}\u{301}\u{202E}\"}",
        "{\"a\":[1,\n\t2]}",
    ] {
        assert_eq!(payload(text), text.as_bytes());
    }
}

#[test]
fn every_field_is_read() {
    let body =
        br#"{"data":{},"eventType":"a","eventId":"e.1","channels":["c"],"payloadRetentionPeriod":5,
        "application":{"name":"A"},"tags":["t"],"deliverAt":"2030-01-01T00:00:00Z"}"#;
    let message = read(body, MOST).ok().unwrap();
    assert_eq!(message.spec.event_id.as_deref(), Some("e.1"));
    assert_eq!(message.spec.channels, ["c"]);
    assert_eq!(message.spec.retention_hours, Some(5 * 24));
    assert_eq!(message.spec.tags, ["t"]);
    assert_eq!(message.spec.deliver_at, Some(Timestamp::from_secs(1_893_456_000)));
    assert_eq!(message.application.unwrap().get(), r#"{"name":"A"}"#);
    let body = br#"{"payload":{},"eventType":"a","payloadRetentionHours":1}"#;
    assert_eq!(read(body, MOST).ok().unwrap().spec.retention_hours, Some(1));
    let body = br#"{"payload":{},"eventType":"a","eventId":null,"channels":null,"application":null,
        "payloadRetentionPeriod":null,"transformationsParams":null}"#;
    let message = read(body, MOST).ok().unwrap();
    assert!(message.application.is_none() && message.spec.channels.is_empty());
}

#[test]
fn a_whole_number_may_have_a_fraction_of_zero() {
    let hours = |field: &str| {
        let body = format!(r#"{{"eventType":"a","payload":{{}},{field}}}"#);
        read(body.as_bytes(), MOST).map(|message| message.spec.retention_hours).ok()
    };
    assert_eq!(hours(r#""payloadRetentionPeriod":5.0"#), Some(Some(120)));
    assert_eq!(hours(r#""payloadRetentionHours":1e1"#), Some(Some(10)));
    for bad in ["5.5", "-5.0", "65541", "1e300", "\"5\""] {
        assert_eq!(hours(&format!(r#""payloadRetentionPeriod":{bad}"#)), None, "{bad}");
    }
}

#[test]
fn a_raw_payload_is_sent_in_place_of_the_payload() {
    let body = r#"{"payload":{},"eventType":"a","transformationsParams":
        {"rawPayload":"<a b=\"c\"/>\n","headers":{"X":1e999,"Content-Type":"text/xml"},"x":-1e999}}"#;
    let message = read(body.as_bytes(), MOST).ok().unwrap();
    assert_eq!(message.spec.payload, "<a b=\"c\"/>\n");
    assert_eq!(message.spec.content_type.as_str(), "text/xml");
    assert!(message.payload.is_none());
    let body = r#"{"payload":{},"eventType":"a","transformationsParams":{"rawPayload":""}}"#;
    let message = read(body.as_bytes(), MOST).ok().unwrap();
    assert_eq!((message.spec.payload.len(), message.spec.content_type), (0, ContentType::Json));
}

const WRONG: &[(&str, &str)] = &[
    (r#"{"payload":{}}"#, "eventType"),
    (r#"{"eventType":"a"}"#, "payload"),
    (r#"{"eventType":1,"payload":{}}"#, "eventType"),
    (r#"{"eventType":"","payload":{}}"#, "eventType"),
    (r#"{"eventType":"a b","payload":{}}"#, "eventType"),
    (r#"{"eventType":"a\u0000","payload":{}}"#, "eventType"),
    (r#"{"eventType":"a","payload":[]}"#, "payload"),
    (r#"{"eventType":"a","payload":"{}"}"#, "payload"),
    (r#"{"eventType":"a","payload":null}"#, "payload"),
    (r#"{"eventType":"a","data":1}"#, "payload"),
    (r#"{"eventType":"a","payload":{},"data":{}}"#, "beside payload"),
    (
        r#"{"eventType":"a","payload":{},"payload":{}}"#,
        r#""payload"], msg: "must not be given twice"#,
    ),
    (
        r#"{"eventType":"a","payload":{},"eventType":"a"}"#,
        r#""eventType"], msg: "must not be given twice"#,
    ),
    (
        r#"{"eventType":"a","payload":{},"application":{},"application":{}}"#,
        r#""application"], msg: "must not be given twice"#,
    ),
    (r#"{"eventType":"a","payload":{},"eventId":"msg_1.1700000000"}"#, "eventId"),
    (r#"{"eventType":"a","payload":{},"eventId":"a b"}"#, "eventId"),
    (r#"{"eventType":"a","payload":{},"eventId":7}"#, "eventId"),
    (r#"{"eventType":"a","payload":{},"channels":["a","b","c","d","e","f"]}"#, "channels"),
    (r#"{"eventType":"a","payload":{},"channels":[1]}"#, "channels"),
    (r#"{"eventType":"a","payload":{},"channels":[]}"#, "must hold 1 to 5 channels"),
    (r#"{"eventType":"a","payload":{},"eventId":"expunge-all-contents"}"#, "eventId"),
    (r#"{"eventType":"a","payload":{},"channels":"c"}"#, "channels"),
    (r#"{"eventType":"a","payload":{},"payloadRetentionPeriod":4}"#, "payloadRetentionPeriod"),
    (r#"{"eventType":"a","payload":{},"payloadRetentionPeriod":91}"#, "payloadRetentionPeriod"),
    (r#"{"eventType":"a","payload":{},"payloadRetentionPeriod":1e99}"#, "payloadRetentionPeriod"),
    (r#"{"eventType":"a","payload":{},"payloadRetentionHours":0}"#, "payloadRetentionHours"),
    (r#"{"eventType":"a","payload":{},"payloadRetentionHours":2161}"#, "payloadRetentionHours"),
    (
        r#"{"eventType":"a","payload":{},"payloadRetentionHours":9,"payloadRetentionPeriod":9}"#,
        "payloadRetentionHours",
    ),
    (r#"{"eventType":"a","payload":{},"tags":["a","b","c","d","e","f"]}"#, "tags"),
    (r#"{"eventType":"a","payload":{},"tags":[""]}"#, "tags"),
    (r#"{"eventType":"a","payload":{},"tags":[1]}"#, "tags"),
    (r#"{"eventType":"a","payload":{},"deliverAt":"tomorrow"}"#, "deliverAt"),
    (r#"{"eventType":"a","payload":{},"deliverAt":7}"#, "deliverAt"),
    (r#"{"eventType":"a","payload":{},"transformationsParams":7}"#, "transformationsParams"),
    (
        r#"{"eventType":"a","payload":{},"transformationsParams":{"rawPayload":{}}}"#,
        r#"["body", "transformationsParams", "rawPayload"], msg: "must be a text""#,
    ),
    (
        r#"{"eventType":"a","payload":{},"transformationsParams":{"headers":[]}}"#,
        r#"["body", "transformationsParams", "headers"], msg: "must be an object""#,
    ),
    (
        r#"{"eventType":"a","payload":{},"transformationsParams":{"headers":{"\ud800":""}}}"#,
        r#"["body", "transformationsParams", "headers"], msg: "has a name with half"#,
    ),
    (r#"{"eventType":"a","payload":{},"deliverAt":"10000-01-01T00:00:00Z"}"#, "not be later"),
    (r#"{"eventType":"a","payload":{},"\ud800":1}"#, "has a name with half of a surrogate pair"),
    (
        r#"{"eventType":"a","payload":{},"tags":["\udc00"]}"#,
        r#"["body", "tags"], msg: "cannot be read: it holds half of a surrogate pair"#,
    ),
    (
        r#"{"eventType":"a","payload":{},"transformationsParams":{"headers":{"content-type":"a\nb"}}}"#,
        "content-type",
    ),
    (r#"["a",{}]"#, "body"),
    ("1", "body"),
    ("", "jsondecode"),
    ("{", "jsondecode"),
    (r#"{"eventType":"a","payload":{}} x"#, "jsondecode"),
    (r#"{"eventType":"a","payload":{}}{}"#, "jsondecode"),
    (r#"{"eventType":"a","payload":{"a":}}"#, "jsondecode"),
    (r#"{"eventType":"a","payload":{'a':1}}"#, "jsondecode"),
    ("{\"eventType\":\"a\",\"payload\":{\"a\":\"\u{0}\"}}", "jsondecode"),
    (r#"{"eventType":"\ud800","payload":{}}"#, r#"["body", "eventType"], msg: "cannot be read"#),
];

#[test]
fn what_is_wrong_is_422_and_named() {
    for (body, field) in WRONG {
        let problem = read(body.as_bytes(), MOST).err().unwrap();
        assert_eq!(problem.status().as_u16(), 422, "{body}");
        assert!(format!("{problem:?}").contains(field), "{body}: {problem:?}");
    }
    let not_text = read(b"{\"eventType\":\"a\",\"payload\":{\"a\":\"\xFF\"}}", MOST);
    assert_eq!(not_text.err().unwrap().status().as_u16(), 422);
}

#[test]
fn a_good_payload_is_not_blamed_for_another_fault() {
    let odd = r#"{"a":1e999,"b":"\ud800"}"#;
    let body = format!(r#"{{"eventType":1,"payload":{odd}}}"#);
    let said = format!("{:?}", read(body.as_bytes(), MOST * 10).err().unwrap());
    assert!(said.contains("eventType") && !said.contains("payload"), "{said}");
}

#[test]
fn a_payload_that_readers_cannot_read_is_refused() {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(1_100), "}".repeat(1_100));
    let long = format!(r#"{{"a":{}}}"#, "7".repeat(5_000));
    for (odd, rule) in [(deep, "120 levels"), (long, "4000 digits")] {
        let body = format!(r#"{{"eventType":"a","payload":{odd}}}"#);
        let said = format!("{:?}", read(body.as_bytes(), MOST * 10).err().unwrap());
        assert!(said.contains(r#"["body", "payload"]"#) && said.contains(rule), "{said}");
        let raw = |text: &str| {
            let text = serde_json::to_string(text).unwrap();
            let params = format!(r#""transformationsParams":{{"rawPayload":{text}}}"#);
            let body = format!(r#"{{"eventType":"a","payload":{{}},{params}}}"#);
            read(body.as_bytes(), MOST * 10).map(drop).map_err(|problem| format!("{problem:?}"))
        };
        let said = raw(&odd).unwrap_err();
        assert!(said.contains(r#""transformationsParams", "rawPayload"]"#), "{said}");
        assert!(raw(&odd[1..]).is_ok() && raw(&format!("{odd}x")).is_ok(), "no JSON");
    }
}

#[test]
fn a_payload_is_bounded_by_itself() {
    let body = |bytes: usize| {
        let fill = "x".repeat(bytes - r#"{"a":""}"#.len());
        format!(r#"{{"eventType":"a","payload":{{"a":"{fill}"}}}}"#)
    };
    assert!(read(body(MOST).as_bytes(), MOST).is_ok());
    assert_eq!(read(body(MOST + 1).as_bytes(), MOST).err().unwrap().status().as_u16(), 413);
}

#[test]
fn the_rule_that_a_time_of_delivery_breaks_is_named() {
    let now = Timestamp::from_secs(1_893_456_000);
    let spec = |deliver_at: i64, retention_hours| {
        let body = br#"{"payload":{},"eventType":"a"}"#;
        let deliver_at = Some(Timestamp::from_secs(now.as_secs() + deliver_at));
        MessageSpec { deliver_at, retention_hours, ..read(body, MOST).ok().unwrap().spec }
    };
    for (deliver_at, kept, rule) in [
        (-61, None, "must not be in the past by more than 60 seconds"),
        (24 * 3_600 + 1, None, "must be at most 24 hours from now"),
        (24 * 3_600 + 1, Some(100), "must be at most 24 hours from now"),
        (7_200, Some(1), "must be before the payload goes, which is 1 hour from now"),
    ] {
        assert_eq!(deliver_at_rule(&spec(deliver_at, kept), now), rule);
    }
}
