//! Answers as no well-behaved receiver gives them: endless, torn, packed, undecodable.
//!
//! Never: a second send of what was answered 2xx, or a send that hangs.

use bytes::Bytes;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Raw, Receiver, Reply, Server, Step};

const OK: &str = "HTTP/1.1 200 OK\r\n";

/// The first attempt of one message to a receiver that plays these steps.
async fn attempt_of(steps: Vec<Step>) -> Value {
    let settings = [("PEYK_ATTEMPT__DEADLINE", "5s"), ("PEYK_RETRY__BASE", "1h")];
    let server = Server::with(&settings).await;
    let raw = Raw::start(move |_| steps.clone()).await;
    server.app_with("a", &raw.url("/"), json!({})).await;
    let id = server.message("a", json!({"n": 1})).await;
    let rows = server.wait_attempts("a", &id, 1).await;
    assert_eq!((rows.len(), raw.requests().len()), (1, 1), "{rows:?}");
    rows[0].clone()
}

/// An answer whose body is chunked and begins like this.
fn chunked(start: &str) -> Step {
    Step::send(format!("{OK}transfer-encoding: chunked\r\n\r\n{start}"))
}

#[tokio::test]
async fn hr_01_a_b_c_d_e_nothing_that_drips_is_waited_for_beyond_the_deadline() {
    // All at once, since each takes as long as the shortest deadline.
    let rows = join_all([
        attempt_of(vec![chunked(""), Step::drip("1\r\nx\r\n")]),
        attempt_of(vec![
            Step::send(format!("{OK}content-length: 1000000000\r\n\r\n")),
            Step::drip("x"),
        ]),
        attempt_of(vec![chunked(""), Step::drip("0")]),
        attempt_of(vec![chunked("1;x="), Step::drip("y")]),
        attempt_of(vec![chunked("0\r\nx-trailer: "), Step::drip("y")]),
        attempt_of(vec![Step::send(OK), Step::drip("x-more: 1\r\n")]),
    ])
    .await;
    let (head, bodies) = rows.split_last().unwrap();
    for row in bodies {
        assert_eq!((&row["status"], &row["responseStatusCode"]), (&json!(0), &json!(200)), "{row}");
        assert!(row["cut"].is_string(), "{row}");
    }
    for row in &bodies[..2] {
        assert_eq!(row["cut"], "deadline", "{row}");
        assert!(row["responseDurationMs"].as_u64().unwrap() >= 4_900, "{row}");
    }
    // c: the head was never whole.
    assert_eq!((&head["status"], &head["responseStatusCode"]), (&json!(2), &json!(0)), "{head}");
    assert_eq!((&head["errorKind"], &head["delaySetBy"]), (&json!("timeout"), &json!("backoff")));
    assert!(head["responseDurationMs"].as_u64().unwrap() >= 4_900, "{head}");
}

#[tokio::test]
async fn hr_03_nothing_packed_is_asked_for_and_nothing_is_unpacked() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    // Not even what it says it is; unpacking it would fail.
    receiver.script(|_, _| Reply {
        body: vec![0x1F; 1 << 20],
        ..Reply::status(200).header("content-encoding", "gzip, gzip")
    });
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({})).await;
    let row = server.wait_attempts("a", &id, 1).await.remove(0);
    assert_eq!((&row["status"], &row["cut"]), (&json!(0), &json!("cap")));
    assert!(row["response"].as_str().unwrap().len() <= 16 << 10);
    assert!(receiver.hits()[0].headers.get("accept-encoding").is_none());
    let packed = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3];
    let headers = [("content-encoding", "gzip")];
    let refused = server.send("POST", "/api/v1/app/a/msg", &headers, packed.to_vec()).await;
    assert!((400..500).contains(&refused.status), "{}", refused.text());
}

#[tokio::test]
async fn hr_04_leftovers_of_an_answer_answer_nothing() {
    let leftovers = [
        "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nHTTP/",
        "HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n5\r\nHTTP/\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n",
    ];
    for answer in leftovers {
        let server = Server::start().await;
        let raw = Raw::start(move |_| vec![Step::send(answer)]).await;
        server.app_with("a", &raw.url("/"), json!({"ordered": true})).await;
        let ids = server.messages("a", 3).await;
        server.wait_delivered("a", &ids).await;
        for id in &ids {
            assert_eq!(server.attempts("a", id).await.len(), 1, "{answer}");
        }
        assert_eq!(raw.requests().len(), 3, "{answer}");
    }
}

/// Bytes that are no text, or text that a database may refuse.
const ODD: [&[u8]; 7] = [
    b"\xFF\xFE\xFD",
    b"\0",
    b"\xE9t\xE9",
    b"o\0k\0",
    b"{\"a\":\"\\u0000\"}",
    b"\xED\xA0\x80",
    b"\xF0\x9F\x90",
];

#[tokio::test]
async fn hr_05_any_bytes_in_a_body_leave_it_delivered_once() {
    let server = Server::start().await;
    let receiver = Receiver::scripted(|_, hit| {
        let place: usize = hit.path[1..].parse().unwrap();
        let body = match ODD.get(place) {
            Some(odd) => odd.to_vec(),
            // A character across the bound of what is kept.
            None => [vec![b'x'; (16 << 10) - 1], "é".into()].concat(),
        };
        Reply { body, ..Reply::status(200) }
    })
    .await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    for n in 0..=ODD.len() {
        let endpoint = json!({"url": receiver.url(&format!("/{n}"))});
        server.post("/app/a/endpoint", &endpoint).await.expect(201);
    }
    let id = server.message("a", json!({})).await;
    let rows = server.wait_attempts("a", &id, ODD.len() + 1).await;
    assert!(rows.iter().all(|row| row["status"] == 0), "{rows:?}");
    let long = rows.iter().find(|row| row["response"].as_str().unwrap().starts_with('x')).unwrap();
    assert!(!long["response"].as_str().unwrap().contains('\u{FFFD}'), "cut between characters");
    // Whatever is left to be sent would be sent by then.
    assert_eq!(server.metric("peyk_queue_depth").await, 0.0);
    assert_eq!(receiver.hits().len(), ODD.len() + 1);
}

#[tokio::test]
async fn hr_05_any_bytes_in_a_head_leave_it_delivered_once() {
    for odd in ODD.iter().filter(|odd| !odd.contains(&0)) {
        let head =
            [b"HTTP/1.1 200 ", *odd, b"\r\nx-odd: ", *odd, b"\r\ncontent-length: 2\r\n\r\nok"];
        let row = attempt_of(vec![Step::send(head.concat())]).await;
        assert_eq!((&row["status"], &row["response"]), (&json!(0), &json!("ok")), "{odd:?} {row}");
    }
    // NUL may stand in no head: that it is no answer is an ordinary failure.
    let head = Bytes::from_static(b"HTTP/1.1 200 O\0K\r\ncontent-length: 2\r\n\r\nok");
    let row = attempt_of(vec![Step::Send(head)]).await;
    assert!(row["status"] == 0 || row["delaySetBy"] == "backoff", "{row}");
}

#[tokio::test]
async fn hr_06_every_2xx_is_a_success_whatever_its_body() {
    let server = Server::start().await;
    let bodies = ["", "ok", "{\"a\":", "null"];
    let receiver = Receiver::scripted(move |_, hit| {
        let (status, body) = hit.path[1..].split_once('/').unwrap();
        let body = bodies[body.parse::<usize>().unwrap()].into();
        let reply = Reply { body, ..Reply::status(status.parse().unwrap()) };
        reply.header("content-type", "application/json")
    })
    .await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let mut count = 0;
    for status in [200, 201, 202, 204, 205, 206, 299] {
        for body in 0..bodies.len() {
            let endpoint = json!({"url": receiver.url(&format!("/{status}/{body}"))});
            server.post("/app/a/endpoint", &endpoint).await.expect(201);
            count += 1;
        }
    }
    let id = server.message("a", json!({})).await;
    let rows = server.wait_attempts("a", &id, count).await;
    assert!(rows.iter().all(|row| row["status"] == 0 && row["number"] == 1), "{rows:?}");
    assert_eq!(receiver.hits().len(), count);
}

#[tokio::test]
async fn hr_08_gone_disables_at_once_and_holds_the_rest() {
    let settings = [("PEYK_WINDOW__START", "1"), ("PEYK_WINDOW__MAX", "1")];
    let server = Server::with(&settings).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(410)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.force("a", "open").await;
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(server.message("a", json!({"n": n})).await);
    }
    server.force("a", "auto").await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    assert_eq!((&dead["reason"], &dead["msgId"]), (&json!("gone"), &json!(ids[0])));
    let endpoint = server.get("/app/a/endpoint/e").await.expect(200);
    assert_eq!(endpoint["disabled"], true);
    assert_eq!(server.breaker("a").await["waiting"], 2, "held, not dead");
    assert_eq!(receiver.hits().len(), 1);
    receiver.script(|_, _| Reply::status(200));
    server.patch("/app/a/endpoint/e", &json!({"disabled": false})).await.expect(200);
    let hits = receiver.wait_for(3).await;
    assert_eq!((hits[1].n(), hits[2].n()), (1, 2), "oldest first");
    server.wait_delivered("a", &ids[1..]).await;
    assert_eq!(server.dead_letters("a").await.len(), 1);
}

#[tokio::test]
async fn an_attempt_says_what_was_wrong_with_its_answer() {
    let answer = |status: &str| format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n");
    for (head, said) in [
        (answer("200 OK"), None),
        (answer("304 Not Modified"), Some("takes no message")),
        (answer("300 Multiple Choices"), Some("does not say where to")),
        (
            format!("{}location: https://new.example/x?token=1\r\n", answer("302 Found")),
            Some("points to https://new.example:443; redirects are not followed: update the URL"),
        ),
        (answer("404 Not Found"), Some("the receiver answered 404")),
        (answer("642 Odd"), Some("answered 642, which is not a valid HTTP status")),
    ] {
        let row = attempt_of(vec![Step::send(format!("{head}\r\n"))]).await;
        match (said, row["error"].as_str()) {
            (None, None) => {}
            (Some(said), Some(error)) => assert!(error.contains(said), "{error}"),
            _ => panic!("{row}"),
        }
    }
}

#[tokio::test]
async fn hr_08_missing_is_an_ordinary_refusal() {
    let server = Server::start().await;
    let receiver = Receiver::scripted(|number, _| Reply::status([404, 200][number.min(1)])).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.message("a", json!({"n": 0})).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    assert_eq!((&dead["reason"], &dead["attempts"]), (&json!("rejected"), &json!(1)));
    assert_eq!(server.get("/app/a/endpoint/e").await.expect(200)["disabled"], false);
    let id = server.message("a", json!({"n": 1})).await;
    server.wait_delivered("a", &[id]).await;
}
