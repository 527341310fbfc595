//! A page of messages ends early when its payloads are many bytes, and says that more follows.
//!
//! Never: a message left out or shown twice.

use serde_json::json;

use crate::support::Server;

#[tokio::test]
async fn payloads_fill_a_page() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let text = "x".repeat(1_000_000);
    let mut posted = Vec::new();
    for _ in 0..10 {
        posted.push(server.message("a", json!({"text": text})).await);
    }
    posted.reverse();
    let (mut seen, mut query) = (Vec::new(), String::new());
    for (count, done) in [(9, false), (1, true)] {
        let page = server.get(&format!("/app/a/msg?{query}")).await.expect(200);
        let rows = page["data"].as_array().unwrap();
        assert_eq!((rows.len(), &page["done"]), (count, &json!(done)));
        seen.extend(rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        query = format!("iterator={}", page["iterator"].as_str().unwrap());
    }
    assert_eq!(seen, posted);
    let lean = server.get("/app/a/msg?with_content=false").await.expect(200);
    assert_eq!((lean["data"].as_array().unwrap().len(), &lean["done"]), (10, &json!(true)));
}
