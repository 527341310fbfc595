//! Times: one clock, UTC, whatever zone the machine is in, and one reading for one attempt.
//!
//! That a clock steps or jumps is simulated with the engine; a real process cannot be made to see
//! it. Sessions of a database with a zone of their own are left to that database.
//! Never: a time without its zone taken for one with it.

use std::time::Duration;

use resilience::{Clock as _, SystemClock, Timestamp};
use serde_json::{Value, json};

use crate::support::{Gate, Receiver, Reply, Server, time};

#[tokio::test]
async fn tm_03_the_last_send_is_made_at_the_age_limit() {
    let settings = [
        ("PEYK_RETRY__AGE_MAX", "1s"),
        ("PEYK_RETRY__BASE", "400ms"),
        ("PEYK_RETRY__ATTEMPTS_MAX", "100"),
    ];
    let server = Server::with(&settings).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(503)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({"n": 1})).await;
    let accepted = time(&server.get(&format!("/app/a/msg/{id}")).await.expect(200)["timestamp"]);
    let dead = server.wait_dead("a", 1).await.remove(0);
    assert_eq!(dead["reason"], "expired");
    let rows = server.attempts("a", &id).await;
    let (last, before) = rows.split_last().unwrap();
    let limit = accepted.plus(Duration::from_secs(1));
    let cut = before.last().unwrap();
    assert_eq!(cut["delaySetBy"], "age_limit", "{cut}");
    assert_eq!(time(&cut["nextAttemptAt"]), limit);
    assert!(time(&last["timestamp"]) >= limit, "not before it");
    assert!(before.iter().all(|row| time(&row["timestamp"]) < limit), "{before:?}");
    assert_eq!(dead["attempts"], rows.len());
}

/// What a server says of one failed and one later attempt, and what it takes as a time.
async fn in_zone(zone: &str) {
    let server = Server::with(&[("TZ", zone)]).await;
    let begun = SystemClock.now();
    let asked = begun.plus(Duration::from_secs(7_200));
    let date = jiff::Timestamp::from_second(asked.as_secs()).unwrap();
    let date = jiff::fmt::strtime::format("%a, %d %b %Y %H:%M:%S GMT", date).unwrap();
    let receiver =
        Receiver::scripted(move |_, _| Reply::status(503).header("retry-after", &*date)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({"n": 1})).await;
    let row = server.wait_attempts("a", &id, 1).await.remove(0);
    let message = server.get(&format!("/app/a/msg/{id}")).await.expect(200);
    let endpoint = server.get("/app/a/endpoint/e").await.expect(200);
    let ended = SystemClock.now();
    for shown in [&message["timestamp"], &row["timestamp"], &endpoint["createdAt"]] {
        let shown = time(shown);
        assert!(begun <= shown && shown <= ended, "{zone}: {shown:?}");
    }
    let next = time(&row["nextAttemptAt"]);
    let asked = Timestamp::from_secs(asked.as_secs());
    assert!(next >= asked && next <= asked.plus(Duration::from_secs(5)), "{zone}: {next:?}");
    let sent: i64 = receiver.hits()[0].header("webhook-timestamp").parse().unwrap();
    assert!((begun.as_secs()..=ended.as_secs()).contains(&sent), "{zone}: {sent}");
    filters(&server, &message["timestamp"]).await;
}

/// The same moment in several spellings finds the same; what names no moment is refused.
async fn filters(server: &Server, at: &Value) {
    let at: jiff::Timestamp = at.as_str().unwrap().parse().unwrap();
    let later = at.checked_add(jiff::SignedDuration::from_secs(1)).unwrap();
    let offset = |hours: i8, sign: &str, minutes: i64| {
        let seconds = i64::from(hours) * 3_600 + minutes * 60;
        let seconds = if sign == "-" { -seconds } else { seconds };
        let local = later.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap();
        local.to_string().replace('Z', &format!("{sign}{hours:02}:{minutes:02}"))
    };
    for text in [later.to_string(), offset(5, "+", 30), offset(3, "-", 30), offset(14, "+", 0)] {
        let text = text.replace('+', "%2B");
        let list = server.get(&format!("/app/a/msg?before={text}")).await.expect(200);
        assert_eq!(list["data"].as_array().unwrap().len(), 1, "{text}");
        let list = server.get(&format!("/app/a/msg?after={text}")).await.expect(200);
        assert_eq!(list["data"].as_array().unwrap().len(), 0, "{text}");
    }
    for text in ["2026-08-27T11:12:53", "2026-08-27", "10000-01-01T00:00:00Z", "1756293173000"] {
        server.get(&format!("/app/a/msg?before={text}")).await.expect(422);
    }
    let leap = server.get("/app/a/msg?after=2016-12-31T23:59:60Z").await;
    assert!(leap.status == 200 || leap.status == 422, "{}", leap.text());
}

#[tokio::test]
async fn tm_05_the_zone_of_the_machine_changes_nothing() {
    for zone in ["Pacific/Kiritimati", "America/St_Johns", "UTC", "no/zone", "<+14>-14"] {
        in_zone(zone).await;
    }
}

#[tokio::test]
async fn tm_05_what_was_written_in_one_zone_is_due_in_another() {
    let mut server =
        Server::with(&[("TZ", "Pacific/Kiritimati"), ("PEYK_RETRY__BASE", "1s")]).await;
    let receiver = Receiver::scripted(|number, _| Reply::status([503, 200][number.min(1)])).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({"n": 1})).await;
    let first = server.wait_attempts("a", &id, 1).await.remove(0);
    server.kill();
    server.set("TZ", "America/St_Johns");
    server.start_again();
    // An hour more or less would be past the patience of this test, or no wait at all.
    let hits = receiver.wait_for(2).await;
    assert!(hits[1].at >= time(&first["nextAttemptAt"]));
    let rows = server.wait_attempts("a", &id, 2).await;
    assert_eq!(rows[0], first);
}

#[tokio::test]
async fn tm_06_header_row_and_order_come_from_one_reading() {
    let server = Server::with(&[("PEYK_ATTEMPT__DEADLINE", "30s")]).await;
    let gate = Gate::shut();
    let held = gate.clone();
    // The first send ends long after others that began later.
    let receiver = Receiver::scripted(move |number, _| match number {
        0 => Reply::status(200).held(&held),
        // One only: each failure halves the window, and the first send takes its place in it.
        1 => Reply::status(503),
        _ => Reply::status(200),
    })
    .await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let mut ids = vec![server.message("a", json!({"n": 0})).await];
    receiver.wait_for(1).await;
    ids.extend(server.messages("a", 30).await);
    server.wait_delivered("a", &ids[1..]).await;
    gate.open();
    server.wait_delivered("a", &ids).await;

    let list = server.get("/app/a/attempt/endpoint/e?limit=250").await.expect(200);
    let rows = list["data"].as_array().unwrap();
    assert_eq!(rows.len(), receiver.hits().len());
    for hit in receiver.hits() {
        let (id, number) = (hit.header("webhook-id"), hit.header("webhook-attempt"));
        let number: u64 = number.parse().unwrap();
        let of = |row: &&Value| row["msgId"] == id && row["number"] == number;
        let row = rows.iter().find(of).unwrap();
        let seconds = time(&row["timestamp"]).as_secs().to_string();
        assert_eq!(hit.header("webhook-timestamp"), seconds, "{row}");
        assert!(time(&row["timestamp"]) <= hit.at);
    }
    // Attempts of one delivery lie in the order of their times and numbers.
    for id in &ids {
        let rows = server.attempts("a", id).await;
        assert!(rows.is_sorted_by_key(|row| (time(&row["timestamp"]), row["number"].as_u64())));
    }
    // A list is walked by the ids it shows, each row once, in steps of any size.
    let mut walked = Vec::new();
    let mut query = String::from("limit=7");
    loop {
        let page = server.get(&format!("/app/a/attempt/endpoint/e?{query}")).await.expect(200);
        walked.extend(page["data"].as_array().unwrap().iter().cloned());
        if page["done"] == true {
            break;
        }
        query = format!("limit=7&iterator={}", page["iterator"].as_str().unwrap());
    }
    assert_eq!(&walked, rows);
    let shown = |row: &Value| row["id"].as_str().unwrap().to_owned();
    assert!(rows.is_sorted_by(|a, b| shown(a) > shown(b)), "newest first, by id");
}

#[tokio::test]
async fn tm_06_messages_lie_in_the_order_of_their_times_and_ids() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example", json!({"disabled": true})).await;
    server.messages("a", 200).await;
    let list = server.get("/app/a/msg?limit=250").await.expect(200);
    let rows = list["data"].as_array().unwrap();
    assert_eq!(rows.len(), 200);
    assert!(rows.is_sorted_by(|a, b| a["id"].as_str() > b["id"].as_str()));
    assert!(rows.is_sorted_by(|a, b| time(&a["timestamp"]) >= time(&b["timestamp"])));
}
