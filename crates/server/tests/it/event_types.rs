//! Event types: made, listed, archived, brought back, removed.
//!
//! Never: shown to an application that lacks the flag.

use serde_json::json;

use crate::support::Server;

#[tokio::test]
async fn subscriptions_are_listed_by_application() {
    let server = Server::start().await;
    for name in ["t.a", "t.b"] {
        server.put(&format!("/event-type/{name}"), &json!({"description": ""})).await.expect(201);
    }
    server.app_with("a", "https://h.example", json!({"eventTypes": ["t.b", "t.a"]})).await;
    let second = json!({"url": "https://h.example", "eventTypes": ["t.a"]});
    server.post("/app/a/endpoint", &second).await.expect(201);
    server.app_with("b", "https://h.example", json!({})).await;
    let id = async |uid: &str| server.get(&format!("/app/{uid}")).await.expect(200)["id"].take();
    let answer = server.put("/stats/usage/event-types", &json!({})).await.expect(200);
    assert_eq!(
        (&answer["status"], &answer["task"]),
        (&json!("finished"), &json!("event-type.aggregate"))
    );
    let expected = json!([
        {"appId": id("a").await, "explicitlySubscribedEventTypes": ["t.a", "t.b"], "hasCatchAllEndpoint": false},
        {"appId": id("b").await, "explicitlySubscribedEventTypes": [], "hasCatchAllEndpoint": true},
    ]);
    assert_eq!(answer["data"]["event_types"], expected);
}

#[tokio::test]
async fn an_event_type_lives() {
    let server = Server::start().await;
    let schemas = json!({"1": {"type": "object", "properties": {"a": {"type": "string"}}}});
    let body = json!({"name": "u.made", "description": "d", "schemas": schemas});
    let made = server.post("/event-type", &body).await.expect(201);
    assert_eq!(made["schemas"], schemas);
    assert_eq!(server.post("/event-type", &body).await.expect(409)["code"], "event_type_exists");
    let path = "/event-type/u.made";
    assert_eq!(server.get(path).await.expect(200), made);
    let list = server.get("/event-type").await.expect(200);
    assert!(list["data"][0]["schemas"].is_null());
    let list = server.get("/event-type?with_content=true").await.expect(200);
    assert_eq!(list["data"], json!([made]));
    let changed = server.patch(path, &json!({"deprecated": true})).await.expect(200);
    assert_eq!((&changed["description"], &changed["deprecated"]), (&json!("d"), &json!(true)));
    server.delete(path).await.expect(204);
    assert_eq!(server.get("/event-type").await.expect(200)["data"], json!([]));
    assert_eq!(server.get(path).await.expect(200)["archived"], true);
    let list = server.get("/event-type?include_archived=true").await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    let back = server.post("/event-type", &json!({"name": "u.made", "description": "e"})).await;
    let back = back.expect(201);
    assert_eq!((&back["archived"], &back["description"]), (&json!(false), &json!("e")));
    let replaced = server.put(path, &json!({"description": "f"})).await.expect(200);
    assert_eq!(
        (&replaced["description"], &replaced["createdAt"]),
        (&json!("f"), &back["createdAt"])
    );
    server.put("/event-type/u.new", &json!({"description": "g"})).await.expect(201);
    server.delete("/event-type/u.new?expunge=true").await.expect(204);
    server.get("/event-type/u.new").await.expect(404);
    let bad = json!({"name": "x", "description": "", "schemas": {"1": {"type": "text"}}});
    server.post("/event-type", &bad).await.expect(422);
}

#[tokio::test]
async fn schemas_come_back_as_they_were_spelled() {
    let server = Server::start().await;
    let schemas = r#"{"2": {"type":"object", "minProperties":1.0e+0,"maxLength":1E2},"1":{"title":"\u00e9","maximum":123456789012345678901234567890}}"#;
    let body = format!(r#"{{"name":"t","description":"","schemas":{schemas}}}"#);
    let made = server.send("POST", "/api/v1/event-type", &[], body).await;
    let read = server.get("/event-type/t").await;
    let patched = server.patch("/event-type/t", &json!({"deprecated": true})).await;
    let list = server.get("/event-type?with_content=true").await;
    for answer in [made, read, patched, list] {
        assert!(answer.text().contains(&format!(r#""schemas":{schemas}"#)), "{}", answer.text());
    }
}

#[tokio::test]
async fn an_application_sees_no_flagged_types_and_full_pages() {
    let server = Server::start().await;
    let app = server.post("/app", &json!({"name": "A"})).await.expect(201);
    for n in 0..9 {
        let flag = if n % 3 == 0 { json!("beta") } else { json!(null) };
        let body = json!({"name": format!("t{n}"), "description": "", "featureFlag": flag});
        server.post("/event-type", &body).await.expect(201);
    }
    let token = server.made_token(&["--app", app["id"].as_str().unwrap()]);
    let headers = [("authorization", &*format!("Bearer {token}"))];
    let page = server.send("GET", "/api/v1/event-type?limit=4", &headers, "").await.expect(200);
    let names: Vec<_> =
        page["data"].as_array().unwrap().iter().map(|row| row["name"].clone()).collect();
    assert_eq!(names, ["t1", "t2", "t4", "t5"]);
    assert_eq!(page["done"], false);
    let rest = server.send("GET", "/api/v1/event-type?limit=4&iterator=t5", &headers, "").await;
    assert_eq!(rest.expect(200)["data"].as_array().unwrap().len(), 2);
    assert_eq!(server.send("GET", "/api/v1/event-type/t0", &headers, "").await.status, 404);
}
