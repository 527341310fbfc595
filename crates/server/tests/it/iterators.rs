//! Iterators lead on in the list that gave them, and nowhere else.
//!
//! Never: rows for one that was made up.

use serde_json::{Value, json};

use crate::pages::ids;
use crate::support::{Receiver, Reply, Server, until};

/// Two applications with the same in each: two endpoints, messages that were delivered to one and
/// are dead at the other.
async fn peopled() -> Server {
    let server = Server::start().await;
    let receiver = Receiver::scripted(|_, hit| match hit.path.as_str() {
        "/bad" => Reply::status(404),
        _ => Reply::status(200),
    })
    .await;
    for app in ["a", "b"] {
        server.app_with(app, &receiver.url("/"), json!({})).await;
        let bad = json!({"url": receiver.url("/bad"), "uid": "bad"});
        server.post(&format!("/app/{app}/endpoint"), &bad).await.expect(201);
        for n in 0..3 {
            let message = json!({"eventType": "t", "eventId": n.to_string(), "payload": {}});
            server.post(&format!("/app/{app}/msg"), &message).await.expect(202);
        }
        server.wait_dead(app, 3).await;
        server.wait_idle(app).await;
        server.post(&format!("/app/{app}/msg/expunge-all-contents"), &json!({})).await.expect(202);
        let type_of = json!({"name": format!("type.{app}"), "description": ""});
        server.post("/event-type", &type_of).await.expect(201);
    }
    until("deliveries", || async {
        let page = server.get("/app/b/attempt/endpoint/e").await.expect(200);
        (ids(&page).len() == 3).then_some(())
    })
    .await;
    server
}

/// A list that has two rows or more, and one of the same kind that is another.
const LISTS: [(&str, &str); 11] = [
    ("/app", "/event-type"),
    ("/app/a/endpoint", "/app/b/endpoint"),
    ("/event-type", "/app"),
    ("/app/a/msg", "/app/b/msg"),
    ("/app/a/endpoint/e/msg", "/app/a/endpoint/bad/msg"),
    ("/app/a/msg/0/endpoint", "/app/a/msg/1/endpoint"),
    ("/app/a/attempt/msg/0", "/app/a/attempt/msg/1"),
    ("/app/a/attempt/endpoint/e", "/app/a/attempt/endpoint/bad"),
    ("/app/a/dead-letter", "/app/b/dead-letter"),
    ("/dead-letter", "/app/a/dead-letter"),
    ("/background-task", "/app/a/msg"),
];

/// The names of the rows of a page.
fn names(page: &Value) -> Vec<String> {
    let name =
        |row: &Value| row.get("id").unwrap_or_else(|| &row["name"]).as_str().unwrap().to_owned();
    page["data"].as_array().unwrap().iter().map(name).collect()
}

async fn refused(server: &Server, path: &str, iterator: &str) {
    let answer = server.get(&format!("{path}?limit=1&iterator={iterator}")).await;
    assert_eq!(answer.status, 422, "{path} {iterator}: {}", answer.text());
    assert_eq!(answer.json()["detail"][0]["loc"], json!(["query", "iterator"]), "{path}");
}

#[tokio::test]
async fn pg_02_a_foreign_cut_or_changed_iterator_is_refused() {
    let server = peopled().await;
    for (path, other) in LISTS {
        let all = names(&server.get(path).await.expect(200));
        let first = server.get(&format!("{path}?limit=1")).await.expect(200);
        assert_eq!(names(&first), all[..1], "{path}");
        let iterator = first["iterator"].as_str().unwrap();
        let next = server.get(&format!("{path}?limit=1&iterator={iterator}")).await.expect(200);
        assert_eq!(names(&next), all[1..2], "{path}");
        let back = next["prevIterator"].as_str().unwrap();
        let back = server.get(&format!("{path}?limit=1&iterator={back}")).await.expect(200);
        assert_eq!(names(&back), all[..1], "{path}: the way back");

        let foreign = server.get(&format!("{other}?limit=1")).await.expect(200);
        let foreign = foreign["iterator"].as_str().unwrap();
        let (place, seal) = iterator.split_once('~').unwrap();
        let cut = iterator.len() - 1;
        let other_place = foreign.split_once('~').unwrap().0;
        // The last letter of an id, and one in its middle.
        let turned = |at: usize| {
            let mut bytes = place.as_bytes().to_vec();
            bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
            String::from_utf8(bytes).unwrap()
        };
        let (last, middle) = (turned(place.len() - 1), turned(place.len() / 2));
        for bad in [
            "",
            "-",
            "x",
            foreign,
            &format!("-{foreign}"),
            &iterator[..cut],
            &iterator[..place.len() + 1],
            &place[..place.len() - 1],
            &place[..4],
            &last,
            &middle,
            &format!("{last}~{seal}"),
            &format!("{middle}~{seal}"),
            &format!("{other_place}~{seal}"),
            &format!("{iterator}A"),
            &format!("-{iterator}A"),
        ] {
            // Two lists may begin with the same row.
            if bad != iterator {
                refused(&server, path, bad).await;
            }
        }
    }
    for (path, other) in [
        ("/app/a/msg", "/app/b/msg"),
        ("/app/a/endpoint", "/app/b/endpoint"),
        ("/app/a/attempt/endpoint/e", "/app/a/attempt/endpoint/bad"),
        ("/app/a/attempt/msg/0", "/app/a/attempt/msg/1"),
        ("/app/a/msg/0/attempt", "/app/a/msg/1/attempt"),
        ("/app/a/msg/0/endpoint/e/attempt", "/app/a/msg/0/endpoint/bad/attempt"),
        ("/app/a/endpoint/e/msg", "/app/b/endpoint/e/msg"),
    ] {
        let foreign = names(&server.get(other).await.expect(200)).remove(0);
        refused(&server, path, &foreign).await;
    }
    refused(&server, "/operational-webhook/endpoint", "ep_000000000000000000000000000").await;
}

/// Programs exist that make one of the last row they know.
#[tokio::test]
async fn the_bare_id_of_a_row_is_an_iterator() {
    let server = peopled().await;
    for (path, _) in LISTS.into_iter().filter(|(path, _)| !path.ends_with("dead-letter")) {
        let all = names(&server.get(path).await.expect(200));
        let next = server.get(&format!("{path}?limit=1&iterator={}", all[0])).await.expect(200);
        assert_eq!(names(&next), all[1..2], "{path}");
        let back = server.get(&format!("{path}?limit=1&iterator=-{}", all[1])).await.expect(200);
        assert_eq!(names(&back), all[..1], "{path}");
    }
}

#[tokio::test]
async fn a_row_that_goes_between_two_pages_breaks_nothing() {
    let server = Server::start().await;
    for n in 0..3 {
        server.post("/app", &json!({"name": "x", "uid": format!("a{n}")})).await.expect(201);
        let kind = json!({"name": format!("t{n}"), "description": ""});
        server.post("/event-type", &kind).await.expect(201);
    }
    for n in 0..3 {
        let endpoint = json!({"url": "https://h.example", "uid": format!("e{n}")});
        server.post("/app/a2/endpoint", &endpoint).await.expect(201);
    }
    for (path, gone) in [
        ("/app/a2/endpoint?order=ascending&limit=1", "/app/a2/endpoint/e0"),
        ("/app?limit=1", "/app/a0"),
        ("/event-type?limit=1", "/event-type/t0?expunge=true"),
    ] {
        let all = names(&server.get(&path.replace("limit=1", "limit=9")).await.expect(200));
        let first = server.get(path).await.expect(200);
        let iterator = first["iterator"].as_str().unwrap();
        server.delete(gone).await.expect(204);
        let next = server.get(&format!("{path}&iterator={iterator}")).await.expect(200);
        assert_eq!(names(&next), all[1..2], "{path}");
        let back = next["prevIterator"].as_str().unwrap();
        let back = server.get(&format!("{path}&iterator={back}")).await.expect(200);
        assert_eq!((names(&back), &back["done"]), (Vec::new(), &json!(true)), "{path}");
        server.get(&format!("{path}&iterator={}", all[0])).await.expect(422);
    }
}

#[tokio::test]
async fn an_iterator_outlives_a_restart() {
    let mut server = Server::start().await;
    for n in 0..2 {
        server.post("/app", &json!({"name": "x", "uid": format!("a{n}")})).await.expect(201);
    }
    let first = server.get("/app?limit=1").await.expect(200);
    server.kill_and_restart();
    let next = format!("/app?limit=1&iterator={}", first["iterator"].as_str().unwrap());
    assert_eq!(server.get(&next).await.expect(200)["data"][0]["uid"], "a1");
}
