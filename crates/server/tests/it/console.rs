//! The commands against a running server: tables, JSON, refusals, exit statuses.
//!
//! Never: a word to the server but through the binary.

mod import;
mod listen;
pub(crate) mod run;
mod tls;

use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Server, time, until};
use run::{Ended, peyk, peyk_with};

#[tokio::test(flavor = "multi_thread")]
async fn every_resource_goes_through_its_life() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    let at = |arguments: &[&str]| peyk(&server, arguments);
    // Without the white space that aligns.
    let words =
        |arguments: &[&str]| at(arguments).ok().split_whitespace().collect::<Vec<_>>().join(" ");
    let made = words(&["app", "create", "--name", "Acme", "--uid", "acme", "--metadata", "a=b=c"]);
    assert!(made.starts_with("id app_") && made.contains(" name Acme "), "{made}");
    assert!(made.contains(r#" metadata {"a":"b=c"} "#), "{made}");
    let updated = words(&["app", "update", "acme", "--name", "Acme 2", "--unset", "metadata"]);
    assert!(updated.contains("name Acme 2") && updated.contains("metadata {}"), "{updated}");
    at(&["event-type", "create", "invoice.paid"]).ok();
    let url = receiver.url("/in");
    let endpoint = ["endpoint", "create", "acme", "--uid", "e", "--url", &url];
    let options = ["--event-types", "invoice.paid", "--header", "X-Own: 1"];
    at(&[&endpoint[..], &options].concat()).ok();
    let secret = at(&["endpoint", "secret", "acme", "e"]).ok();
    assert!(secret.starts_with("whsec_") && secret.lines().count() == 1, "{secret}");
    let rotated = at(&["endpoint", "rotate-secret", "acme", "e", "--grace", "60"]).ok();
    assert!(rotated.starts_with("whsec_") && rotated != secret);
    at(&["endpoint", "headers", "acme", "e", "--set", "X-Two: 2", "--remove", "X-Own"]).ok();
    let headers = at(&["endpoint", "headers", "acme", "e"]).ok().to_lowercase();
    assert!(headers.contains("x-two") && !headers.contains("x-own"), "{headers}");
    let posted = ["message", "create", "acme", "--event-type", "invoice.paid"];
    let rest = ["--event-id", "inv-1", "--payload", r#"{"n": 1.0e2}"#];
    let message = words(&[&posted[..], &rest].concat());
    assert!(message.contains("eventType invoice.paid"), "{message}");
    let hit = &receiver.wait_for(1).await[0];
    assert_eq!((&hit.body[..], hit.header("x-two")), (&br#"{"n": 1.0e2}"#[..], "2"));
    until("an attempt", || async {
        let list = at(&["attempt", "list", "acme", "--message", "inv-1"]).ok();
        list.contains("success").then_some(())
    })
    .await;
    assert!(at(&["attempt", "list", "acme", "--endpoint", "e"]).ok().contains("success"));
    at(&["attempt", "resend", "acme", "inv-1", "e"]).ok();
    receiver.wait_for(2).await;
    let stats = at(&["endpoint", "stats", "acme", "e", "--since", "1h"]).ok();
    assert!(stats.contains("success"), "{stats}");
    let forced = at(&["endpoint", "force", "acme", "e", "open"]).ok();
    assert!(forced.contains("state") && forced.contains("open"), "{forced}");
    at(&["endpoint", "force", "acme", "e", "auto"]).ok();
    at(&["endpoint", "delete", "acme", "e", "--yes"]).ok();
    at(&["event-type", "delete", "invoice.paid", "-y"]).ok();
    assert!(at(&["event-type", "list", "--archived"]).ok().contains("invoice.paid"));
    at(&["event-type", "delete", "invoice.paid", "--expunge", "-y"]).ok();
    assert!(!at(&["event-type", "list", "--archived"]).ok().contains("invoice.paid"));
    at(&["app", "delete", "acme", "-y"]).ok();
    assert_eq!(at(&["app", "get", "acme"]).code, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_listed_and_put_back() {
    let server = Server::start().await;
    let receiver = Receiver::scripted(|_, _| Reply::status(400)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.message("a", json!({"n": 1})).await;
    let letter = server.wait_dead("a", 1).await[0]["id"].as_str().unwrap().to_owned();
    let listed = peyk(&server, &["dead-letter", "list"]).ok();
    assert!(listed.starts_with("ID ") && listed.contains(&letter), "{listed}");
    let counted = peyk(&server, &["dead-letter", "replay-many", "a", "--dry-run"]).ok();
    assert_eq!(counted, "count  1\n");
    let none = ["dead-letter", "replay-many", "a", "--reason", "gone", "--rate", "5"];
    let task = peyk(&server, &none).ok();
    assert!(task.starts_with("id ") && task.contains("qtask_"), "the task: {task}");
    peyk(&server, &["dead-letter", "replay", "a", &letter]).ok();
    receiver.wait_for(2).await;
    server.wait_dead("a", 1).await;
    let task = peyk(&server, &["endpoint", "recover", "a", "e", "--since", "1h", "--json"]);
    let task: Value = serde_json::from_str(&task.ok()).unwrap();
    receiver.wait_for(3).await;
    let id = task["id"].as_str().unwrap();
    assert!(peyk(&server, &["task", "list"]).ok().contains(id));
    assert!(peyk(&server, &["task", "get", id]).ok().contains("endpoint.recover"));
    server.wait_dead("a", 1).await;
    peyk(&server, &["dead-letter", "delete", "a", &letter, "--yes"]).ok();
    server.wait_dead("a", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_paged_and_json_is_the_servers() {
    let server = Server::start().await;
    for n in 0..5 {
        let app = json!({"name": format!("n{n}"), "uid": format!("u{n}")});
        server.post("/app", &app).await.expect(201);
    }
    let page = peyk(&server, &["app", "list", "--limit", "2"]);
    assert_eq!((page.code, page.out.lines().count()), (0, 3), "{}", page.out);
    let iterator = page.err.split_whitespace().find(|word| word.starts_with("app_"));
    let iterator = iterator.unwrap_or_else(|| panic!("{}", page.err)).trim_end_matches(',');
    let next = peyk(&server, &["app", "list", "--limit", "2", "--iterator", iterator]).ok();
    assert!(next.contains("u2") && next.contains("u3") && !next.contains("u1"), "{next}");
    let all = peyk(&server, &["app", "list", "--limit", "2", "--all"]).ok();
    assert_eq!((all.lines().count(), all.matches("NAME").count()), (6, 1), "{all}");
    let json = peyk(&server, &["app", "list", "--limit", "2", "--json"]).ok();
    assert_eq!(json.trim_end(), server.get("/app?limit=2").await.text());
    let lines = peyk(&server, &["app", "list", "--limit", "2", "--all", "--json"]).ok();
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 5);
    assert_eq!(rows[4]["uid"], "u4");
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_others_moves_no_cursor() {
    let server = Server::start().await;
    let app = json!({"name": "\u{1b}[2J\u{9b}31m\nx\u{202e}", "uid": "a"});
    server.post("/app", &app).await.expect(201);
    for arguments in [&["app", "list"][..], &["app", "get", "a"]] {
        let shown = peyk(&server, arguments).ok();
        assert!(shown.contains("\\u{1b}[2J\\u{9b}31m\\nx\\u{202e}"), "{shown:?}");
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{9b}'), "{shown:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_is_one_line_and_a_status() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let wrong = |arguments: &[&str], code: i32, said: &str| {
        let ended = peyk(&server, arguments);
        assert_eq!(ended.code, code, "{arguments:?}: {}", ended.err);
        assert!(ended.err.contains(said), "{arguments:?}: {}", ended.err);
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
        assert_eq!(ended.out, "");
    };
    wrong(&["app", "get", "nobody"], 1, "(not_found)");
    wrong(&["endpoint", "create", "a", "--url", "ftp://x"], 1, "url: ");
    wrong(&["app", "create", "--name", "b", "--token", "wrong"], 1, "PEYK_TOKEN");
    wrong(&["app", "delete", "a"], 2, "--yes");
    wrong(&["app", "get", ".."], 2, "`..`");
    wrong(&["app", "list", "--limit", "0"], 2, "--limit");
    wrong(&["message", "create", "a", "--event-type", "x", "--payload", "{"], 2, "--payload");
    wrong(&["app", "create", "--data", "@/nowhere"], 2, "/nowhere");
    wrong(&["endpoint", "recover", "a", "e"], 2, "--since");
    wrong(&["app", "list", "--server", "localhost"], 2, "--server");
    wrong(&["import", "svix", "--from", "mysql://u@h/svix"], 2, "PostgreSQL");
    wrong(&["app", "list", "--server", "http://127.0.0.1:1"], 3, "--server or PEYK_SERVER");
    let ended = peyk_with(&server, &["app", "list"], |command| {
        command.env_remove("PEYK_TOKEN");
    });
    assert_eq!((ended.code, ended.err.contains("no token")), (2, true), "{}", ended.err);
    // What is not Peyk is not taken for it.
    let other = Receiver::scripted(|_, _| Reply::status(404)).await;
    let (url, arguments) = (other.url(""), ["app", "list", "--server"]);
    let ended = peyk(&server, &[&arguments[..], &[url.as_str()]].concat());
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("not in the manner of Peyk"), "{}", ended.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_comes_from_a_file_or_standard_input_as_it_is_spelled() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let payload = "{\n  \"big\": 123456789012345678901234567890,\n  \"é\": \"\\u0041\"\n}";
    let file = server.dir().join("payload.json");
    std::fs::write(&file, payload).unwrap();
    let base = ["message", "create", "a", "--event-type", "t.x", "--payload"];
    peyk(&server, &[&base[..], &[&*format!("@{}", file.display())]].concat()).ok();
    let Ended { code, .. } = peyk_with(&server, &[&base[..], &["-"]].concat(), |command| {
        command.stdin(std::fs::File::open(&file).unwrap());
    });
    assert_eq!(code, 0);
    for hit in receiver.wait_for(2).await {
        assert_eq!(hit.body, payload);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_can_be_posted_for_later_and_lists_can_show_payloads() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example/", json!({})).await;
    let base = ["message", "create", "a", "--event-type", "t", "--payload", r#"{"n":1}"#];
    let posted = [&base[..], &["--deliver-at", "10m", "--json"]].concat();
    let made: Value = serde_json::from_str(&peyk(&server, &posted).ok()).unwrap();
    let wait = time(&made["deliverAt"]).since(time(&made["timestamp"]));
    assert!((590..=600).contains(&wait.as_secs()), "{made}");
    let table = peyk(&server, &["message", "list", "a", "--content"]).ok();
    assert!(table.contains("PAYLOAD") && table.contains(r#"{"n":1}"#), "{table}");
    assert!(!peyk(&server, &["message", "list", "a"]).ok().contains("PAYLOAD"));
    for bad in ["soon", "-10m"] {
        let at = format!("--deliver-at={bad}");
        let refused = peyk(&server, &[&base[..], &[&*at]].concat());
        assert_eq!((refused.code, refused.err.contains("from now")), (2, true), "{}", refused.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_explained_is_json_where_json_is_wanted() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example/", json!({"channels": ["c"]})).await;
    let id = server.message("a", json!({})).await;
    let explain = |rest: &[&str]| {
        let ended = peyk(&server, &[&["explain", "--json"], rest].concat());
        let said: Value = serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{ended:?}"));
        (ended.code, said)
    };
    let (code, said) = explain(&["--app", "a", &id, "e"]);
    assert_eq!((code, &said["code"]), (1, &json!("not_found")), "{said}");
    assert!(said["detail"].as_str().unwrap().contains("not routed"), "{said}");
    let (code, said) = explain(&["--app", "a", &id]);
    assert_eq!((code, &said["code"]), (0, &json!("not_routed")), "{said}");
    for unknown in [&["--app", "a", "msg_x"][..], &["--app", "x", &id], &["msg_x"]] {
        let (code, said) = explain(unknown);
        assert_eq!((code, said["detail"].is_string()), (1, true), "{said}");
    }
    let people = peyk(&server, &["explain", "--app", "a", &id, "e"]);
    assert_eq!((people.code, &*people.out), (1, ""));
    assert!(people.err.contains("not routed"), "{}", people.err);
}

/// A server is started where the commands find theirs, too.
#[tokio::test(flavor = "multi_thread")]
async fn the_commands_variables_are_no_settings() {
    let names = [("PEYK_SERVER", "http://127.0.0.1:1"), ("PEYK_TOKEN", "x")];
    let server = Server::with(&names).await;
    server.get("/app").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_are_set_tried_and_silenced() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    let at = |arguments: &[&str]| peyk(&server, arguments);
    let said = |ended: Ended| format!("{}{}", ended.out, ended.err);
    let url = receiver.url("/services/T0/wonderland");
    at(&["alert", "route", "set", "chat", "--channel", "slack", "--url", &url]).ok();
    let tried = at(&["alert", "test", "chat"]);
    assert_eq!(tried.code, 0, "{}", tried.err);
    assert!(said(tried).contains("slack answered 200"));
    receiver.script(|_, _| Reply::status(404));
    let refused = at(&["alert", "test", "chat"]);
    assert!(refused.code != 0 && refused.err.contains("slack answered 404"), "{}", refused.err);
    assert_ne!(at(&["alert", "test", "none"]).code, 0);
    let listed = at(&["alert", "route", "list"]).ok();
    assert!(listed.contains("chat") && !listed.contains("wonderland"), "{listed}");

    assert!(at(&["alert", "rule", "list"]).ok().contains("nothing_delivered"));
    at(&["alert", "rule", "update", "dead_letters", "--above", "7", "--routes", "chat"]).ok();
    let rule: Value =
        serde_json::from_str(&at(&["alert", "rule", "get", "dead_letters", "--json"]).ok())
            .unwrap();
    assert_eq!((&rule["above"], &rule["routes"]), (&json!(7), &json!(["chat"])));
    at(&["alert", "rule", "delete", "dead_letters", "--yes"]).ok();
    at(&["alert", "silence", "add", "2h", "--rule", "dead_letters", "--comment", "deploy"]).ok();
    let silences = at(&["alert", "silence", "list"]).ok();
    assert!(silences.contains("deploy"), "{silences}");
    let id = silences.split_whitespace().find(|word| word.starts_with("sil_")).unwrap();
    at(&["alert", "silence", "end", id, "-y"]).ok();
    assert!(at(&["alert", "list"]).ok().starts_with("ID "));
}
