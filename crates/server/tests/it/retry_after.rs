//! What a receiver asks for in `Retry-After` is done where it may be asked for, within bounds, and
//! the attempt says which term set the delay.
//!
//! Never: a send before the time that was asked for, or at once because the header cannot be read.

use std::time::Duration;

use resilience::{Clock as _, SystemClock, Timestamp};
use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Server, time};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// A date in one of its three shapes.
fn date(at: Timestamp, shape: &str) -> String {
    let at = jiff::Timestamp::from_second(at.as_secs()).unwrap();
    jiff::fmt::strtime::format(shape, at).unwrap()
}

const SHAPES: [&str; 3] =
    ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];

/// An application with an endpoint at each of these paths; gives the paths and ids.
async fn endpoints(server: &Server, receiver: &Receiver, count: usize) -> Vec<String> {
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let mut ids = Vec::new();
    for n in 0..count {
        let endpoint = json!({"url": receiver.url(&format!("/{n}"))});
        let made = server.post("/app/a/endpoint", &endpoint).await.expect(201);
        ids.push(made["id"].as_str().unwrap().to_owned());
    }
    ids
}

/// The attempts of a message to an endpoint, oldest first.
fn of<'a>(rows: &'a [Value], endpoint: &str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row["endpointId"] == endpoint).collect()
}

/// One failed answer with this header to each of `values`, then 200; the attempts by endpoint.
async fn answers(status: u16, values: &[&str], settings: &[(&str, &str)]) -> Vec<Vec<Value>> {
    let server = Server::with(settings).await;
    let said: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
    let receiver = Receiver::scripted(move |_, hit| {
        let place: usize = hit.path[1..].parse().unwrap();
        let first = hit.header("webhook-attempt") == "1";
        let reply = Reply::status(if first { status } else { 200 });
        let lines = said[place].split('|').filter(|_| first);
        lines.fold(reply, |reply, line| reply.header("retry-after", line))
    })
    .await;
    let ids = endpoints(&server, &receiver, values.len()).await;
    let id = server.message("a", json!({})).await;
    receiver.wait_for(values.len()).await;
    let rows = server.wait_attempts("a", &id, values.len()).await;
    let far = of(&rows, &ids[0])[0]["delaySetBy"] != "backoff";
    let count = values.len() * if far { 1 } else { 2 };
    let rows = server.wait_attempts("a", &id, count).await;
    assert_eq!(rows.len(), receiver.hits().len());
    ids.iter().map(|id| of(&rows, id).into_iter().cloned().collect()).collect()
}

#[tokio::test]
async fn ra_01_a_date_in_any_shape_is_waited_for() {
    let server = Server::start().await;
    // The next second but three, so that at least three whole ones pass.
    let asked = SystemClock.now().plus(Duration::from_secs(4));
    let receiver = Receiver::scripted(move |_, hit| {
        let place: usize = hit.path[1..].parse().unwrap();
        if hit.header("webhook-attempt") != "1" {
            return Reply::status(200);
        }
        Reply::status(503).header("retry-after", date(asked, SHAPES[place]))
    })
    .await;
    let ids = endpoints(&server, &receiver, SHAPES.len()).await;
    let id = server.message("a", json!({})).await;
    let hits = receiver.wait_for(6).await;
    let asked = Timestamp::from_secs(asked.as_secs());
    for hit in &hits[3..] {
        assert_eq!(hit.header("webhook-attempt"), "2");
        assert!(hit.at >= asked, "{} came {:?} early", hit.path, asked.since(hit.at));
    }
    let rows = server.wait_attempts("a", &id, 6).await;
    for id in &ids {
        let first = of(&rows, id)[0];
        assert_eq!(first["delaySetBy"], "retry_after");
        let next = time(&first["nextAttemptAt"]);
        assert!(next >= asked && next <= asked.plus(Duration::from_secs(2)), "{first}");
    }
}

#[tokio::test]
async fn ra_01_two_minutes_are_two_minutes() {
    let asked = SystemClock.now().plus(Duration::from_secs(120));
    let dates: Vec<String> = SHAPES.iter().map(|shape| date(asked, shape)).collect();
    let dates: Vec<&str> = dates.iter().map(String::as_str).collect();
    for rows in answers(503, &dates, &[]).await {
        let next = time(&rows[0]["nextAttemptAt"]);
        let asked = Timestamp::from_secs(asked.as_secs());
        assert!(next >= asked && next <= asked.plus(Duration::from_secs(2)), "{rows:?}");
    }
}

#[tokio::test]
async fn ra_02_what_cannot_be_read_leaves_the_backoff() {
    let values = ["soon", "", "1,5", "0x10", "  ", "∞", "5 seconds", "soon|later"];
    for rows in answers(429, &values, &[]).await {
        assert_eq!((&rows[0]["delaySetBy"], &rows[1]["status"]), (&json!("backoff"), &json!(0)));
        let asked = time(&rows[0]["timestamp"]).plus(Duration::from_millis(50));
        assert!(time(&rows[0]["nextAttemptAt"]) >= asked && time(&rows[1]["timestamp"]) >= asked);
    }
}

#[tokio::test]
async fn ra_02_of_two_lines_the_longer_counts() {
    for rows in answers(429, &["5|60", "60|5", "60|soon"], &[]).await {
        assert_eq!(rows[0]["delaySetBy"], "retry_after");
        let wait = time(&rows[0]["nextAttemptAt"]).since(time(&rows[0]["timestamp"]));
        assert!(wait >= Duration::from_secs(60), "{wait:?}");
    }
}

#[tokio::test]
async fn ra_03_negative_and_past_values_are_tried_again_by_the_backoff() {
    let past = "Wed, 21 Oct 2015 07:28:00 GMT";
    for (status, value) in [(429, "-5"), (503, "-5"), (503, past), (429, past)] {
        let rows = answers(status, &[value], &[]).await.remove(0);
        assert_eq!((&rows[0]["delaySetBy"], &rows[1]["status"]), (&json!("backoff"), &json!(0)));
        let due = time(&rows[0]["timestamp"]).plus(Duration::from_millis(50));
        assert!(time(&rows[1]["timestamp"]) >= due, "never below the own delay");
    }
}

/// Values beyond every bound.
fn huge() -> Vec<String> {
    let mut values: Vec<String> =
        ["86400", "31536000", "4294967296", "9223372036854775807"].map(str::to_owned).to_vec();
    values.push("18446744073709551616".to_owned());
    values.push("9".repeat(400));
    values.push("Fri, 31 Dec 9999 23:59:59 GMT".to_owned());
    values
}

#[tokio::test]
async fn ra_05_a_huge_value_ends_at_the_cap() {
    let values = huge();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let cap = Duration::from_secs(2 * 3_600);
    for rows in answers(503, &values, &[("PEYK_RETRY__RETRY_AFTER_MAX", "2h")]).await {
        assert_eq!((rows.len(), &rows[0]["delaySetBy"]), (1, &json!("retry_after")));
        let wait = time(&rows[0]["nextAttemptAt"]).since(time(&rows[0]["timestamp"]));
        assert!(wait >= cap && wait < cap + Duration::from_secs(60), "{wait:?}");
    }
}

#[tokio::test]
async fn ra_05_a_huge_value_ends_at_the_age_limit() {
    let values = huge();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    for rows in answers(503, &values, &[]).await {
        assert_eq!((rows.len(), &rows[0]["delaySetBy"]), (1, &json!("age_limit")));
        let wait = time(&rows[0]["nextAttemptAt"]).since(time(&rows[0]["timestamp"]));
        assert!(wait <= DAY && wait > DAY - Duration::from_secs(60), "{wait:?}");
    }
}

#[tokio::test]
async fn ra_08_fractions_and_float_words_are_no_seconds() {
    for rows in answers(429, &["1.5", "0.2", "1e309", "nan", "inf", "+5"], &[]).await {
        assert_eq!((&rows[0]["delaySetBy"], &rows[1]["status"]), (&json!("backoff"), &json!(0)));
    }
}

/// Status, what becomes of the delivery, and whether the hint holds the lane.
const MATRIX: [(u16, &str, bool); 11] = [
    (200, "delivered", false),
    (202, "delivered", false),
    (301, "rejected", false),
    (404, "rejected", false),
    (408, "again", false),
    (410, "gone", false),
    (429, "again", true),
    (500, "again", false),
    (502, "again", false),
    (503, "again", true),
    (504, "again", false),
];

#[tokio::test]
async fn ra_09_the_hint_counts_where_there_is_a_retry_and_nowhere_else() {
    let server = Server::start().await;
    let receiver = Receiver::scripted(|_, hit| {
        Reply::status(hit.path[1..].parse().unwrap()).header("retry-after", "60")
    })
    .await;
    for (status, outcome, holds) in MATRIX {
        let app = format!("a{status}");
        server.app_with(&app, &receiver.url(&format!("/{status}")), json!({})).await;
        let id = server.message(&app, json!({"n": 1})).await;
        let row = server.wait_attempts(&app, &id, 1).await.remove(0);
        assert_eq!(row["responseStatusCode"], status);
        if outcome == "again" {
            assert_eq!(row["delaySetBy"], "retry_after", "{status}");
            let wait = time(&row["nextAttemptAt"]).since(time(&row["timestamp"]));
            assert!(wait >= Duration::from_secs(60), "{status}: {wait:?}");
            let second = server.message(&app, json!({"n": 2})).await;
            if holds {
                assert_eq!(server.breaker(&app).await["waiting"], 2, "{status}");
            } else {
                server.wait_attempts(&app, &second, 1).await;
            }
        } else {
            assert!(row["nextAttemptAt"].is_null() && row["delaySetBy"].is_null(), "{row}");
            let dead = server.wait_dead(&app, usize::from(outcome != "delivered")).await;
            assert!(dead.iter().all(|letter| letter["reason"] == outcome), "{dead:?}");
        }
    }
    for (status, outcome, holds) in MATRIX {
        let path = format!("/{status}");
        let hits = receiver.hits().iter().filter(|hit| hit.path == path).count();
        assert_eq!(hits, 1 + usize::from(outcome == "again" && !holds), "{status}");
    }
}
