//! Lists are walked there and back, each row once.
//!
//! Never: a row skipped or repeated, whatever arrives meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Receiver, Server, time};

pub(crate) fn ids(page: &Value) -> Vec<String> {
    let rows = page["data"].as_array().unwrap();
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// Walks forward to the end, then back to the beginning, and gives what it met on the way there.
pub(crate) async fn walk(server: &Server, path: &str, limit: usize) -> Vec<String> {
    let joint = if path.contains('?') { '&' } else { '?' };
    let mut pages: Vec<Value> = Vec::new();
    let mut iterator = String::new();
    loop {
        let page = server.get(&format!("{path}{joint}limit={limit}{iterator}")).await.expect(200);
        if let Some(last) = page["iterator"].as_str() {
            iterator = format!("&iterator={last}");
        }
        let done = page["done"].as_bool().unwrap();
        pages.push(page);
        assert!(pages.len() < 1_000, "the walk does not end");
        if done {
            break;
        }
    }
    for at in (1..pages.len()).rev() {
        let back = pages[at]["prevIterator"].as_str().unwrap();
        let page = server.get(&format!("{path}{joint}limit={limit}&iterator={back}")).await;
        assert_eq!(ids(&page.expect(200)), ids(&pages[at - 1]), "the way back");
    }
    pages.iter().flat_map(ids).collect()
}

#[tokio::test]
async fn pg_01_messages_of_one_moment_are_each_listed_once() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let made = join_all((0..25).map(|n| server.message("a", json!({"n": n})))).await;
    let expected: BTreeSet<_> = made.into_iter().collect();
    for limit in [1, 7, 10, 25, 250] {
        let seen = walk(&server, "/app/a/msg?with_content=false", limit).await;
        assert_eq!(seen.len(), 25);
        assert!(seen.is_sorted_by(|a, b| a > b), "newest first");
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), expected);
    }
    crate::support::until("25 attempts", || async {
        let page = server.get("/app/a/attempt/endpoint/e").await.expect(200);
        (ids(&page).len() == 25).then_some(())
    })
    .await;
    let attempts = walk(&server, "/app/a/attempt/endpoint/e", 7).await;
    assert_eq!(attempts.into_iter().collect::<BTreeSet<_>>().len(), 25);
    let empty = server.get("/app/a/msg?limit=0").await.expect(200);
    assert_eq!((&empty["data"], &empty["done"]), (&json!([]), &json!(false)));
}

#[tokio::test]
async fn lists_of_the_directory_are_walked_in_either_order() {
    let server = Server::start().await;
    for n in 0..9 {
        server.post("/app", &json!({"name": "x", "uid": format!("a{n}")})).await.expect(201);
        let endpoint = json!({"url": "https://h.example", "uid": format!("e{n}")});
        server.post("/app/a0/endpoint", &endpoint).await.expect(201);
    }
    for (path, ascending_default) in [("/app", true), ("/app/a0/endpoint", false)] {
        let up = walk(&server, &format!("{path}?order=ascending"), 4).await;
        let down = walk(&server, &format!("{path}?order=descending"), 4).await;
        assert_eq!(up.len(), 9);
        assert!(up.is_sorted() && down.iter().eq(up.iter().rev()));
        let default = walk(&server, path, 5).await;
        assert_eq!(default, if ascending_default { up } else { down });
    }
}

#[tokio::test]
async fn messages_are_filtered_by_type_channel_and_time() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let mut made = Vec::new();
    for (event_type, channel) in [("t.a", "c1"), ("t.b", "c2"), ("t.c", "c1")] {
        let message = json!({"eventType": event_type, "channels": [channel], "payload": {}});
        made.push(server.post("/app/a/msg", &message).await.expect(202));
    }
    let listed =
        async |query: &str| ids(&server.get(&format!("/app/a/msg?{query}")).await.expect(200));
    let id = |at: usize| made[at]["id"].as_str().unwrap().to_owned();
    let all = listed("").await;
    assert_eq!(all, [id(2), id(1), id(0)]);
    for query in [
        "event_types=t.a,t.b",
        "event_types=t.a&event_types=t.b",
        "event_types[]=t.a&event_types[]=t.b",
    ] {
        assert_eq!(listed(query).await, [id(1), id(0)], "{query}");
    }
    assert_eq!(listed("channel=c1").await, [id(2), id(0)]);
    // Times are held against those in ids, to 4 ms.
    let far = time(&made[2]["timestamp"]).plus(Duration::from_millis(8));
    let late = loop {
        let message = json!({"eventType": "t.d", "payload": {}});
        let late = server.post("/app/a/msg", &message).await.expect(202);
        if time(&late["timestamp"]) >= far {
            break late;
        }
    };
    let at = late["timestamp"].as_str().unwrap();
    assert_eq!(listed(&format!("before={at}")).await.last(), Some(&id(0)));
    let after = listed(&format!("after={at}")).await;
    assert!(after.contains(&late["id"].as_str().unwrap().to_owned()) && !after.contains(&id(2)));
    assert_eq!(listed("after=2000-01-01T00:00:00Z&limit=1").await, [id(0)], "the earliest page");
    assert!(listed("before=2000-01-01T00:00:00Z").await.is_empty());
}
