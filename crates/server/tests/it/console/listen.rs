//! `peyk listen`: deliveries are printed and forwarded, and nothing is left behind.
//!
//! Never: a target that sees what the server did not sign.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::run::{command, peyk};
use crate::support::{Receiver, Reply, Server, until};

/// One that listens.
struct Listening {
    child: Child,
    out: BufReader<ChildStdout>,
    err: std::thread::JoinHandle<String>,
}

impl Listening {
    /// Starts one and waits until it says that it listens.
    fn start(server: &Server, target: &str, options: &[&str]) -> Self {
        let arguments = [&["listen", "--json", "--forward", target][..], options].concat();
        let mut command = command(server, &arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        err.read_line(&mut line).unwrap();
        assert!(line.starts_with("listening for"), "{line}");
        // Read to its end, so that it never waits for a reader.
        let err = std::thread::spawn(move || {
            let lines = err.lines().map(Result::unwrap);
            lines.collect::<Vec<_>>().join("\n")
        });
        Self { child, out, err }
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|fault| panic!("{fault}: {line}"))
    }

    /// Asks it to end, as Ctrl-C does.
    fn end(mut self) -> i32 {
        let id = self.child.id().to_string();
        let sent = std::process::Command::new("kill").args(["-INT", &id]).status().unwrap();
        assert!(sent.success());
        let status = self.child.wait().unwrap();
        assert_eq!(self.err.join().unwrap(), "");
        status.code().unwrap()
    }
}

async fn endpoints(server: &Server) -> Vec<Value> {
    server.get("/app/a/endpoint").await.expect(200)["data"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_forwarded_as_they_are_and_answered_as_the_target_answers() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let target = Receiver::scripted(|count, _| match count {
        0 => Reply::status(503),
        _ => Reply::status(200),
    })
    .await;
    let mut listening = Listening::start(&server, &target.url("/hooks?x=1"), &[]);
    let [made] = &endpoints(&server).await[..] else { panic!("one endpoint") };
    assert!(made["description"].as_str().unwrap().starts_with("Temporary"), "{made}");
    let id = server.message("a", json!({"n": 7})).await;
    let hits = target.wait_for(2).await;
    let (first, second) = (listening.line(), listening.line());
    assert_eq!((&first["status"], &second["status"]), (&json!(503), &json!(200)));
    assert_eq!((&first["attempt"], &second["attempt"]), (&json!(1), &json!(2)));
    assert_eq!((&first["id"], &first["eventType"]), (&json!(id), &json!("test.event")));
    let path = format!("/app/a/endpoint/{}/secret", made["id"].as_str().unwrap());
    let secret = server.get(&path).await.expect(200)["key"].as_str().unwrap().to_owned();
    let verifier = webhook::WebhookVerifier::standard().secret(&secret).unwrap().build().unwrap();
    for hit in &hits {
        assert_eq!((&hit.path[..], &hit.body[..]), ("/hooks?x=1", &br#"{"n":7}"#[..]));
        let pairs = hit.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        verifier.verify(pairs, &hit.body, hit.at.as_secs()).unwrap();
    }
    let rows = server.wait_attempts("a", &id, 2).await;
    assert_eq!(
        (&rows[0]["responseStatusCode"], &rows[0]["response"]),
        (&json!(503), &json!("said 503"))
    );
    assert_eq!(listening.end(), 0);
    assert_eq!(endpoints(&server).await, Vec::<Value>::new());
    assert_eq!(target.hits().len(), 2, "the test was not forwarded");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_signed_is_not_forwarded() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let target = Receiver::start().await;
    let mut listening = Listening::start(&server, &target.url("/"), &["--app", "a"]);
    let url = endpoints(&server).await[0]["url"].as_str().unwrap().to_owned();
    // The same server delivers it, signed with the secret of another endpoint.
    server.post("/app", &json!({"name": "b", "uid": "b"})).await.expect(201);
    server.post("/app/b/endpoint", &json!({"url": url})).await.expect(201);
    server.message("b", json!({})).await;
    let line = listening.line();
    assert_eq!(line["status"], 401);
    assert!(line["error"].as_str().unwrap().starts_with("not forwarded"), "{line}");
    assert_eq!(listening.end(), 0);
    assert_eq!(target.hits().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_is_not_there_is_tried_again_by_the_server() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let mut listening = Listening::start(&server, "http://127.0.0.1:1/", &["--app", "a"]);
    server.message("a", json!({})).await;
    for attempt in 1..=2 {
        let line = listening.line();
        assert_eq!((&line["status"], &line["attempt"]), (&json!(502), &json!(attempt)));
        assert!(line["error"].as_str().unwrap().contains("127.0.0.1:1"), "{line}");
    }
    assert_eq!(listening.end(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_run_left_is_taken_away_by_the_next() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let target = Receiver::start().await;
    server.app_with("other", &target.url("/"), json!({})).await;
    let own = json!({"url": target.url("/"), "uid": "own"});
    server.post("/app/a/endpoint", &own).await.expect(201);
    let mut killed = Listening::start(&server, &target.url("/"), &["--app", "a"]);
    let beside = Listening::start(&server, &target.url("/"), &["--app", "a"]);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert_eq!(endpoints(&server).await.len(), 3);
    let next = Listening::start(&server, &target.url("/"), &["--app", "a"]);
    // Its own, that of the one beside, and the one that is no listener's.
    assert_eq!(endpoints(&server).await.len(), 3);
    assert_eq!((next.end(), beside.end()), (0, 0));
    let [left] = &endpoints(&server).await[..] else { panic!("one endpoint") };
    assert_eq!(left["uid"], "own");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_may_not_send_here_is_told_what_to_set() {
    let mut server = Server::start().await;
    server.stop();
    server.unset("PEYK_ALLOWED_TARGETS");
    server.start_again();
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let ended = peyk(&server, &["listen", "--forward", "http://127.0.0.1:1/"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    assert!(ended.err.contains("PEYK_ALLOWED_TARGETS=127.0.0.0/8"), "{}", ended.err);
    until("no endpoint", || async { endpoints(&server).await.is_empty().then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_application_is_named_unless_there_is_one_only() {
    let server = Server::start().await;
    let listen = ["listen", "--forward", "http://127.0.0.1:1/"];
    let ended = peyk(&server, &listen);
    assert_eq!((ended.code, ended.err.contains("peyk app create")), (2, true), "{}", ended.err);
    for uid in ["a", "b"] {
        server.post("/app", &json!({"name": uid, "uid": uid})).await.expect(201);
    }
    let ended = peyk(&server, &listen);
    assert_eq!((ended.code, ended.err.contains("--app")), (2, true), "{}", ended.err);
    let ended = peyk(&server, &[&listen[..], &["--app", "a", "--events", "no.such"]].concat());
    assert_eq!((ended.code, ended.err.contains("no.such")), (1, true), "{}", ended.err);
}
