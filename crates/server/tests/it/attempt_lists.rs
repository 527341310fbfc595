//! Lists of attempts: by endpoint and by message, with every filter, there and back.
//!
//! Never: an attempt of another endpoint, or one that a filter leaves out.

use serde_json::{Value, json};

use crate::pages::{ids, walk};
use crate::support::{Receiver, Reply, Server, until};

const TYPES: [&str; 3] = ["t.a", "t.b", "t.c"];

/// A message of each type to an endpoint `e` that takes it and one `f` that refuses it, all tried.
async fn tried() -> (Server, Receiver, Vec<String>) {
    let server = Server::with(&[("PEYK_RETRY__ATTEMPTS_MAX", "1")]).await;
    let receiver = Receiver::scripted(|_, hit| match &*hit.path {
        "/e" => Reply::status(200),
        _ => Reply::status(500),
    })
    .await;
    server.app_with("a", &receiver.url("/e"), json!({})).await;
    let refuses = json!({"url": receiver.url("/f"), "uid": "f"});
    server.post("/app/a/endpoint", &refuses).await.expect(201);
    let mut made = Vec::new();
    for (event_type, channel) in TYPES.into_iter().zip(["c1", "c2", "c1"]) {
        let message = json!({"eventType": event_type, "channels": [channel], "payload": {}});
        let message = server.post("/app/a/msg", &message).await.expect(202);
        made.push(message["id"].as_str().unwrap().to_owned());
        server.wait_attempts("a", made.last().unwrap(), 2).await;
    }
    (server, receiver, made)
}

/// The messages of the attempts that a list shows.
async fn messages(server: &Server, path: &str) -> Vec<Value> {
    let page = server.get(path).await.expect(200);
    page["data"].as_array().unwrap().iter().map(|row| row["msgId"].clone()).collect()
}

/// Ports `test_list_attempts_by_endpoint` and `test_pagination_by_endpoint`.
#[tokio::test]
async fn test_list_attempts_by_endpoint() {
    let (server, _receiver, made) = tried().await;
    let newest_first = [&made[2], &made[1], &made[0]].map(|id| json!(id));
    for (endpoint, status, class) in [("e", 0, 200), ("f", 2, 500)] {
        let path = format!("/app/a/attempt/endpoint/{endpoint}");
        assert_eq!(messages(&server, &path).await, newest_first);
        for (query, expected) in [
            ("channel=c1".to_owned(), vec![2, 0]),
            ("event_types=t.a,t.b".to_owned(), vec![1, 0]),
            ("event_types=t.a&event_types=t.b".to_owned(), vec![1, 0]),
            ("event_types[]=t.a&event_types[]=t.c".to_owned(), vec![2, 0]),
            ("event_types[0]=t.b&event_types[1]=t.c".to_owned(), vec![2, 1]),
            ("channel=c1&event_types=t.b".to_owned(), vec![]),
            (format!("status={status}"), vec![2, 1, 0]),
            (format!("status={}", 2 - status), vec![]),
            (format!("status_code_class={class}"), vec![2, 1, 0]),
            (format!("status_code_class={}", 700 - class), vec![]),
            ("status_code_class=0".to_owned(), vec![]),
        ] {
            let found = messages(&server, &format!("{path}?{query}")).await;
            let expected: Vec<_> = expected.into_iter().map(|at: usize| json!(made[at])).collect();
            assert_eq!(found, expected, "{endpoint} {query}");
        }
        assert_eq!(walk(&server, &path, 1).await.len(), 3);
        assert_eq!(walk(&server, &format!("{path}?event_types=t.a,t.c"), 1).await.len(), 2);
    }
    server.get("/app/a/attempt/endpoint/none").await.expect(404);
    server.get("/app/a/attempt/endpoint/e?status_code_class=201").await.expect(422);
}

/// Ports `test_pagination_by_msg`.
#[tokio::test]
async fn test_pagination_by_msg() {
    let (server, _receiver, made) = tried().await;
    let path = format!("/app/a/attempt/msg/{}", made[0]);
    let all = server.get(&path).await.expect(200);
    assert_eq!(walk(&server, &path, 1).await, ids(&all));
    let endpoint = async |uid: &str| {
        server.get(&format!("/app/a/endpoint/{uid}")).await.expect(200)["id"].take()
    };
    let (e, f) = (endpoint("e").await, endpoint("f").await);
    for (query, expected) in [
        ("", vec![&e, &f]),
        ("endpoint_id=e", vec![&e]),
        ("endpoint_id=f", vec![&f]),
        ("status=0", vec![&e]),
        ("status=2", vec![&f]),
        ("status_code_class=500", vec![&f]),
        ("status_code_class=500&endpoint_id=e", vec![]),
        ("channel=c1&event_types=t.a", vec![&e, &f]),
        ("channel=c2", vec![]),
        ("event_types=t.b", vec![]),
    ] {
        let page = server.get(&format!("{path}?{query}")).await.expect(200);
        let rows = page["data"].as_array().unwrap();
        let mut found: Vec<_> = rows.iter().map(|row| &row["endpointId"]).collect();
        found.sort_by_key(|id| **id != e);
        assert_eq!(found, expected, "{query}");
    }
    server.get(&format!("{path}?endpoint_id=none")).await.expect(404);
}

/// Ports `test_combined_before_after_filtering`: `after` includes, `before` excludes, to the 4 ms
/// of an id.
#[tokio::test]
async fn test_combined_before_after_filtering() {
    let server = Server::start().await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.post("/app", &json!({"name": "clock", "uid": "clock"})).await.expect(201);
    // A time of the server that lies between what was there before and what comes then.
    let now = async || {
        let message = json!({"eventType": "tick", "payload": {}});
        let made = server.post("/app/clock/msg", &message).await.expect(202);
        let text = made["timestamp"].as_str().unwrap().to_owned();
        (text.parse::<jiff::Timestamp>().unwrap().as_microsecond(), text)
    };
    let between = async || {
        let (begun, _) = now().await;
        until("another moment", || async {
            let (at, text) = now().await;
            (at - begun >= 10_000).then_some(text)
        })
        .await
    };
    let (mut made, mut times) = (Vec::new(), Vec::new());
    for n in 0..3 {
        times.push(between().await);
        made.push(server.message("a", json!({"n": n})).await);
        server.wait_attempts("a", &made[n], 1).await;
    }
    let expect = async |query: String, expected: &[usize]| {
        let expected: Vec<_> = expected.iter().map(|at| json!(made[*at])).collect();
        let found = messages(&server, &format!("/app/a/attempt/endpoint/e?{query}")).await;
        assert_eq!(found, expected, "attempts, {query}");
        let list = server.get(&format!("/app/a/msg?{query}")).await.expect(200);
        let found: Vec<_> = ids(&list).into_iter().map(Value::from).collect();
        assert_eq!(found, expected, "messages, {query}");
    };
    expect(format!("before={}", times[1]), &[0]).await;
    expect(format!("before={}", times[0]), &[]).await;
    expect(format!("after={}", times[1]), &[2, 1]).await;
    expect(format!("after={}&before={}", times[1], times[2]), &[1]).await;
    expect(format!("after={}&before={}", times[2], times[1]), &[]).await;
    // Only a lower bound asks for the earliest page.
    expect(format!("after={}&limit=1", times[1]), &[1]).await;
    // Of one message alone, too.
    let path = format!("/app/a/attempt/msg/{}", made[1]);
    assert_eq!(messages(&server, &format!("{path}?before={}", times[1])).await.len(), 0);
    assert_eq!(messages(&server, &format!("{path}?after={}", times[1])).await.len(), 1);
}
