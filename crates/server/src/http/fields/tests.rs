//! Tables of fields: what each way of reading makes of a value.
//!
//! Never: a body of one resource.

use super::*;

fn fields(text: &str) -> Fields<'_> {
    Fields::parse(text.as_bytes()).unwrap()
}

#[test]
fn create_and_patch_differ_in_what_an_absent_field_means() {
    let old = || Some("old".to_owned());
    let new = || Some("new".to_owned());
    for (json, created, patched) in [
        (r#"{}"#, None, old()),
        (r#"{"uid":null}"#, None, None),
        (r#"{"uid":"new"}"#, new(), new()),
    ] {
        assert_eq!(fields(json).nullable(&["uid"], None, text), created, "{json}");
        assert_eq!(fields(json).nullable(&["uid"], old(), text), patched, "{json}");
    }
    for (json, created, patched) in [
        (r#"{}"#, Some(String::new()), old()),
        (r#"{"description":null}"#, Some(String::new()), None),
        (r#"{"description":"new"}"#, new(), new()),
    ] {
        let default = || Some(String::new());
        assert_eq!(fields(json).firm("description", None, default(), text), created);
        assert_eq!(fields(json).firm("description", old(), default(), text), patched);
    }
}

#[test]
fn a_whole_number_may_have_a_fraction_of_zero() {
    for (json, number) in [("5", 5), ("5.0", 5), ("1e3", 1_000), ("0.0", 0)] {
        assert_eq!(whole_of(&serde_json::from_str(json).unwrap()), Some(number), "{json}");
    }
    for json in ["5.5", "-5", "-5.0", "-0.0", "1e300", "\"5\"", "null"] {
        assert_eq!(whole_of(&serde_json::from_str(json).unwrap()), None, "{json}");
    }
}

#[test]
fn all_faults_are_gathered() {
    let mut body = fields(r#"{"a":1,"b":70000,"c":[1],"d":{"e":"x"},"f":"yes"}"#);
    assert_eq!(body.nullable(&["a"], None, text), None);
    assert_eq!(body.nullable(&["b"], None, whole::<u16>(1..=65_535)), None);
    assert_eq!(body.nullable(&["c"], None, texts), None);
    let mut inner = body.object("d").unwrap();
    assert_eq!(inner.firm("e", None, None, flag), None);
    body.absorb(inner);
    assert_eq!(body.firm("f", None, Some(true), flag), None);
    assert_eq!(body.firm("g", None, None, text), None);
    let said = format!("{:?}", body.finish().unwrap_err());
    for place in ["\"a\"", "\"b\"", "\"c\"", "\"d\", \"e\"", "\"f\"", "\"g\""] {
        assert!(said.contains(place), "{place} in {said}");
    }
}

#[test]
fn a_field_under_two_names_has_one_value() {
    for (json, rate) in [
        (r#"{"rateLimit":5}"#, Some(5)),
        (r#"{"rateLimit": 7,"throttleRate":7}"#, Some(7)),
        (r#"{"rateLimit":null,"throttleRate":null}"#, None),
    ] {
        let mut body = fields(json);
        let read = body.nullable(&["throttleRate", "rateLimit"], None, whole::<u16>(1..=65_535));
        assert_eq!(read, rate, "{json}");
        assert!(body.finish().is_ok(), "{json}");
    }
    for json in [r#"{"rateLimit":5,"throttleRate":7}"#, r#"{"throttleRate":null,"rateLimit":5}"#] {
        let mut body = fields(json);
        body.nullable(&["throttleRate", "rateLimit"], None, whole::<u16>(1..=65_535));
        let said = format!("{:?}", body.finish().unwrap_err());
        assert!(said.contains(r#"["body", "rateLimit"], msg: "must not differ"#), "{said}");
    }
}

#[test]
fn what_is_no_object_is_422() {
    for body in
        ["", "[]", "1", "null", "{", "{}x", "{\"a\":1,}", "{\"a\":\"\u{0}\"}", "nul", "{1:2}"]
    {
        assert_eq!(Fields::parse(body.as_bytes()).unwrap_err().status().as_u16(), 422, "{body}");
    }
    assert_eq!(Fields::parse(b"{\"a\":\"\xFF\"}").unwrap_err().status().as_u16(), 422);
    let deep = "[".repeat(100_000);
    assert_eq!(Fields::parse(deep.as_bytes()).unwrap_err().status().as_u16(), 422);
}

#[test]
fn a_name_that_is_asked_for_is_given_once() {
    let mut body = fields(r#"{"a":1,"b":{"c":1,"\u0063":2},"a":null,"x":1,"x":2}"#);
    body.nullable(&["a"], None, |_, _| Ok(()));
    let mut inner = body.object("b").unwrap();
    inner.nullable(&["c"], None, |_, _| Ok(()));
    body.absorb(inner);
    let said = format!("{:?}", body.finish().unwrap_err());
    assert_eq!(said.matches("must not be given twice").count(), 2, "{said}");
    assert!(said.contains(r#"["body", "a"]"#) && said.contains(r#"["body", "b", "c"]"#));
}

#[test]
fn half_a_surrogate_pair_is_no_text_and_said_to_be_none() {
    for json in [r#"{"a":"x\ud800"}"#, r#"{"a":"\udc00"}"#, r#"{"a":"\ud800\u0041"}"#] {
        let mut body = fields(json);
        assert_eq!(body.nullable(&["a"], None, text), None);
        let said = format!("{:?}", body.finish().unwrap_err());
        assert!(said.contains(HALF_PAIR) && said.contains(r#"["body", "a"]"#), "{said}");
    }
    let said = format!("{:?}", fields(r#"{"a\ud800":1}"#).finish().unwrap_err());
    assert!(said.contains(HALF_PAIR) && !said.contains("jsondecode"), "{said}");
    let mut body = fields(r#"{"b":{"\udfff":1}}"#);
    let inner = body.object("b").unwrap();
    body.absorb(inner);
    let said = format!("{:?}", body.finish().unwrap_err());
    assert!(said.contains(r#"["body", "b"]"#), "{said}");
    assert!(Fields::parse(b"{\"\xFF\":1}").is_err());
    assert!(fields(r#"{"\ud83d\ude00":1}"#).finish().is_ok());
}

#[test]
fn a_time_beyond_all_is_told_from_what_is_none() {
    let last = time_of("9999-12-30T22:00:00Z").unwrap();
    assert_eq!(time_of("9999-12-30T23:00:00+01:00"), Ok(last));
    for beyond in [
        "9999-12-30T22:00:01Z",
        "9999-12-31T23:59:59+00:00",
        "10000-01-01T00:00:00Z",
        "+123456-01-01T00:00:00Z",
    ] {
        assert!(time_of(beyond).unwrap_err().contains("later"), "{beyond}");
    }
    for none in ["", "now", "-1", "2030-01-31", "2030-13-01T00:00:00Z", "12345"] {
        assert!(time_of(none).unwrap_err().contains("like"), "{none}");
    }
}

#[test]
fn what_nobody_asks_for_is_not_read() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for odd in ["1e999", "-1E+99999", r#""\ud800""#, r#"{"a":1,"a":[2e999]}"#, &deep] {
        let json = format!(r#"{{"x":{odd},"name":"n","y":{{"z":{odd}}}}}"#);
        let mut body = fields(&json);
        assert_eq!(body.firm("name", None, None, text).as_deref(), Some("n"));
        assert!(body.object("y").is_some());
        assert!(body.finish().is_ok());
        // A field that is asked for must be readable.
        let mut body = fields(&json);
        assert_eq!(body.nullable(&["x"], None, |_, _| Ok(())), None);
        let said = format!("{:?}", body.finish().unwrap_err());
        assert!(said.contains("cannot be read"), "{said}");
    }
}

#[test]
fn metadata_is_an_object_of_texts() {
    let read = |json: &str| metadata("metadata", &serde_json::from_str(json).unwrap());
    assert_eq!(read(r#"{"a": "b"}"#).unwrap(), r#"{"a":"b"}"#);
    assert!(read(r#"{"a":1}"#).is_err() && read("[]").is_err());
    assert!(read(&format!(r#"{{"a":"{}"}}"#, "x".repeat(4_100))).is_err());
}
