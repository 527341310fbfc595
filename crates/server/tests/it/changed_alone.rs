//! Each field of an application, an endpoint and an event type, patched alone.
//!
//! Never: a field changed that was not named.

use serde_json::{Value, json};

use crate::support::Server;

/// Patches one field after the other; each time nothing else may change.
async fn patch_each(server: &Server, path: &str, changes: &[(&str, Value, Value)]) {
    for (name, given, shown) in changes {
        let mut expected = server.get(path).await.expect(200);
        let found = server.patch(path, &json!({*name: given})).await.expect(200);
        assert_ne!(found["updatedAt"], expected["updatedAt"], "{path} {name}");
        for same in same_as(name) {
            expected[*same] = shown.clone();
        }
        if *name == "disabled" {
            expected["disabledReason"] = if *shown == true { "owner".into() } else { Value::Null };
        }
        expected["updatedAt"] = found["updatedAt"].clone();
        assert_eq!(found, expected, "{path} {name}");
        assert_eq!(server.get(path).await.expect(200), expected);
    }
}

/// What shows a field, under its older names too.
fn same_as(name: &str) -> &[&str] {
    match name {
        "throttleRate" | "rateLimit" => &["throttleRate", "rateLimit"],
        "eventTypes" | "filterTypes" => &["eventTypes", "filterTypes"],
        "description" => &["description"],
        "name" => &["name"],
        "uid" => &["uid"],
        "url" => &["url"],
        "metadata" => &["metadata"],
        "channels" => &["channels"],
        "disabled" => &["disabled"],
        "version" => &["version"],
        "archived" => &["archived"],
        "deprecated" => &["deprecated"],
        "schemas" => &["schemas"],
        "featureFlag" => &["featureFlag"],
        other => panic!("{other}"),
    }
}

/// A field that is shown as it was given.
fn field(name: &'static str, value: Value) -> (&'static str, Value, Value) {
    (name, value.clone(), value)
}

/// Ports `test_patch` of applications.
#[tokio::test]
async fn test_patch_of_an_application() {
    let server = Server::start().await;
    let made = server.post("/app", &json!({"name": "A"})).await.expect(201);
    let path = format!("/app/{}", made["id"].as_str().unwrap());
    let changes = [
        field("name", json!("B")),
        field("uid", json!("u")),
        field("rateLimit", json!(10)),
        field("throttleRate", json!(20)),
        field("metadata", json!({"k": "v"})),
        field("metadata", json!({})),
    ];
    patch_each(&server, &path, &changes).await;
    for (name, code) in [("uid", 200), ("rateLimit", 200), ("metadata", 200), ("name", 422)] {
        server.patch(&path, &json!({name: null})).await.expect(code);
    }
    let cleared = server.get(&path).await.expect(200);
    assert!(cleared.get("uid").is_none() && cleared["throttleRate"].is_null(), "{cleared}");
    assert_eq!((&cleared["name"], &cleared["metadata"]), (&json!("B"), &json!({})));
}

/// Ports `test_patch` and `test_rate_limit` of endpoints.
#[tokio::test]
async fn test_patch_of_an_endpoint() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example", json!({})).await;
    for name in ["t.a", "t.b"] {
        server.put(&format!("/event-type/{name}"), &json!({"description": ""})).await.expect(201);
    }
    let id = server.get("/app/a/endpoint/e").await.expect(200)["id"].as_str().unwrap().to_owned();
    let path = format!("/app/a/endpoint/{id}");
    let changes = [
        ("url", json!("https://Other.example"), json!("https://other.example/")),
        field("description", json!("d")),
        field("uid", json!("u")),
        field("uid", json!(null)),
        field("version", json!(7)),
        field("rateLimit", json!(10)),
        field("throttleRate", json!(20)),
        field("throttleRate", json!(null)),
        field("disabled", json!(true)),
        field("disabled", json!(false)),
        field("eventTypes", json!(["t.a"])),
        field("filterTypes", json!(["t.a", "t.b"])),
        field("eventTypes", json!(null)),
        field("channels", json!(["c"])),
        field("channels", json!(null)),
        field("metadata", json!({"k": "v"})),
        field("metadata", json!({})),
    ];
    patch_each(&server, &path, &changes).await;
    let many: Vec<_> = (0..11).map(|at| format!("c{at}")).collect();
    for refused in [
        json!({"url": null}),
        json!({"url": "ftp://h.example"}),
        json!({"disabled": null}),
        json!({"version": 0}),
        json!({"throttleRate": 0}),
        json!({"eventTypes": []}),
        json!({"eventTypes": ["t.none"]}),
        json!({"channels": []}),
        json!({"channels": many}),
        json!({"channels": ["a b"]}),
        json!({"uid": ""}),
    ] {
        server.patch(&path, &refused).await.expect(422);
    }
}

/// Ports `test_patch` of event types.
#[tokio::test]
async fn test_patch_of_an_event_type() {
    let server = Server::start().await;
    server.put("/event-type/t", &json!({"description": "d"})).await.expect(201);
    let changes = [
        field("description", json!("e")),
        field("archived", json!(true)),
        field("archived", json!(false)),
        field("deprecated", json!(true)),
        field("featureFlag", json!("beta")),
        field("featureFlag", json!(null)),
        field("schemas", json!({"1": {"type": "object"}})),
        field("schemas", json!(null)),
    ];
    patch_each(&server, "/event-type/t", &changes).await;
    for refused in [
        json!({"description": null}),
        json!({"archived": null}),
        json!({"schemas": {"1": {"type": 1}}}),
        json!({"schemas": "none"}),
    ] {
        server.patch("/event-type/t", &refused).await.expect(422);
    }
    server.patch("/event-type/none", &json!({"description": ""})).await.expect(404);
}
