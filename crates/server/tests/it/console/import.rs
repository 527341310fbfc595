//! `peyk import svix` from a real PostgreSQL.
//!
//! Never: a row of the source changed.

use serde_json::{Value, json};
use testparts::Postgres;

use super::run::{Ended, peyk};
use crate::support::{Receiver, Server};

/// HMAC secrets of repeated bytes, as their owner knows them.
fn whsec(hex: &str, count: usize) -> String {
    let byte = u8::from_str_radix(hex, 16).unwrap();
    let secret = webhook::HmacSecret::new(&vec![byte; count]).unwrap();
    webhook::Secret::Hmac(secret).to_private_text()
}

struct Svix {
    postgres: Postgres,
    url: String,
}

impl Svix {
    fn start() -> Self {
        let postgres = Postgres::start();
        let url = postgres.fresh_database();
        postgres.sql(&url, include_str!("svix.sql"));
        Self { postgres, url }
    }

    fn import(&self, server: &Server, options: &[&str]) -> Ended {
        let base = ["import", "svix", "--from", &self.url, "--org", "org_a"];
        peyk(server, &[&base[..], options].concat())
    }
}

/// The numbers in the line of a kind: made, same, different, refused.
fn counts(report: &str, kind: &str) -> Vec<u32> {
    let line =
        report.lines().find(|line| line.starts_with(kind)).unwrap_or_else(|| panic!("{report}"));
    line[kind.len()..].split_whitespace().map(|number| number.parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_there_is_comes_over_once() {
    let (svix, server) = (Svix::start(), Server::start().await);
    let dry = svix.import(&server, &["--dry-run"]);
    assert_eq!(dry.code, 1, "{}", dry.err);
    // Which schema the server takes only it knows.
    assert_eq!(counts(&dry.out, "endpoints"), [3, 0, 0, 2], "{}", dry.out);
    assert_eq!(server.get("/app").await.expect(200)["data"], json!([]));
    assert!(!server.dir().join("svix-mapping.csv").exists());

    let first = svix.import(&server, &[]);
    assert_eq!(first.code, 1, "an event type and three endpoints are refused: {}", first.err);
    for (kind, expected) in
        [("event types", [3, 0, 0, 1]), ("applications", [2, 0, 0, 0]), ("endpoints", [2, 0, 0, 3])]
    {
        assert_eq!(counts(&first.out, kind), expected, "{}", first.out);
    }
    for said in [
        "endpoint ep_4 refused: it filters",
        "endpoint ep_5 refused: the key",
        "never.seen",
        "ep_8 refused: event type invoice.bad: is refused",
    ] {
        assert!(first.out.contains(said), "{said}: {}", first.out);
    }
    let app = server.get("/app/acme").await.expect(200);
    assert_eq!((&app["name"], &app["rateLimit"]), (&json!("Acme"), &json!(50)));
    assert_eq!(app["metadata"], json!({"plan": "gold"}));
    let endpoint = server.get("/app/acme/endpoint/first").await.expect(200);
    for (name, value) in [
        ("url", json!("http://example.com/hook")),
        ("description", json!("First")),
        ("filterTypes", json!(["invoice.old", "invoice.paid", "never.seen"])),
        ("version", json!(3)),
        ("rateLimit", json!(7)),
        ("disabled", json!(true)),
        ("channels", json!(["one"])),
        ("metadata", json!({"team": "a"})),
    ] {
        assert_eq!(endpoint[name], value, "{name}");
    }
    let headers = server.get("/app/acme/endpoint/first/headers").await.expect(200);
    assert_eq!(headers["headers"].as_object().unwrap().len(), 1, "{headers}");
    assert_eq!(headers["sensitive"].as_array().unwrap().len(), 1, "{headers}");
    let other = server.get("/app/svix-app_2/endpoint/svix-ep_2/secret").await.expect(200);
    assert_eq!(other["key"], whsec("44", 30));
    let paid = server.get("/event-type/invoice.paid").await.text();
    assert!(paid.contains(r#""multipleOf": 1.0e2"#), "as it is spelled: {paid}");
    for (name, archived) in [("invoice.paid", false), ("invoice.old", true), ("never.seen", true)] {
        let found = server.get(&format!("/event-type/{name}")).await.expect(200);
        assert_eq!(found["archived"], archived, "{name}");
    }
    assert_eq!(server.get("/event-type/other.type").await.status, 404);
    let mapping = std::fs::read_to_string(server.dir().join("svix-mapping.csv")).unwrap();
    let id = endpoint["id"].as_str().unwrap();
    assert!(mapping.contains(&format!("endpoint,ep_1,{id},first\n")), "{mapping}");
    assert_eq!(mapping.lines().count(), 5, "{mapping}");

    let second = svix.import(&server, &[]);
    for (kind, expected) in
        [("event types", [0, 2, 0, 1]), ("applications", [0, 2, 0, 0]), ("endpoints", [0, 2, 0, 3])]
    {
        assert_eq!(counts(&second.out, kind), expected, "{}", second.out);
    }
    assert!(second.out.contains("nothing was changed"), "{}", second.out);
    let again = std::fs::read_to_string(server.dir().join("svix-mapping.csv")).unwrap();
    assert_eq!(again, mapping);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_secret_signs_on_for_the_time_that_it_has() {
    let (svix, server, receiver) = (Svix::start(), Server::start().await, Receiver::start().await);
    let change = format!(
        "UPDATE endpoint SET disabled = false, channels = NULL, url = '{}' WHERE id = 'ep_1'",
        receiver.url("/")
    );
    svix.postgres.sql(&svix.url, &change);
    svix.import(&server, &[]);
    let body = json!({"eventType": "invoice.paid", "payload": {}});
    server.post("/app/acme/msg", &body).await.expect(202);
    let hit = &receiver.wait_for(1).await[0];
    // The one in force, and the one that was not over; not the one that was.
    assert_eq!(hit.header("webhook-signature").split(' ').count(), 2);
    for (secret, signs) in
        [(whsec("11", 24), true), (whsec("33", 24), true), (whsec("22", 24), false)]
    {
        let verifier = webhook::WebhookVerifier::standard().secret(&secret).unwrap();
        let pairs = hit.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let verified = verifier.build().unwrap().verify(pairs, &hit.body, hit.at.as_secs());
        assert_eq!(verified.is_ok(), signs, "{secret}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sealed_secrets_are_opened_with_the_main_secret() {
    let (svix, server) = (Svix::start(), Server::start().await);
    // Of 24 bytes `aa`, under "main secret", by another implementation.
    let sealed = "81000102030405060708090a0b0c0d0e0f10111213141516178ef65f9cdeecad73e5a76dd42476e17e0d999efb91b2bf0f02fbeacd090d51eee7d5abc5f66383cd";
    let change = format!("UPDATE endpoint SET key = decode('{sealed}', 'hex') WHERE id = 'ep_2'");
    svix.postgres.sql(&svix.url, &change);
    let closed = svix.import(&server, &[]);
    assert!(closed.out.contains("ep_2 refused: the secret is encrypted"), "{}", closed.out);
    let wrong = svix.import(&server, &["--main-secret", "other"]);
    assert!(wrong.out.contains("ep_2 refused: --main-secret"), "{}", wrong.out);
    let open = svix.import(&server, &["--main-secret", "main secret"]);
    assert_eq!(counts(&open.out, "endpoints"), [1, 1, 0, 3], "{}", open.out);
    let key = server.get("/app/svix-app_2/endpoint/svix-ep_2/secret").await.expect(200);
    assert_eq!(key["key"], whsec("aa", 24));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_since_is_left_alone_and_named() {
    let (svix, server) = (Svix::start(), Server::start().await);
    svix.import(&server, &[]);
    let path = "/app/acme/endpoint/first";
    server.patch(path, &json!({"description": "Mine", "rateLimit": 9})).await.expect(200);
    server.post(&format!("{path}/secret/rotate"), &json!({})).await.expect(200);
    server.patch("/app/acme", &json!({"name": "Mine"})).await.expect(200);
    let ended = svix.import(&server, &["--json"]);
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    let said = |name: &str| {
        let looks = report["looks"].as_array().unwrap();
        looks.iter().find(|look| look["name"] == name).unwrap()["said"].as_str().unwrap().to_owned()
    };
    assert!(said("ep_1").contains("description, rateLimit, secret"), "{report}");
    assert!(said("app_1").contains("name"), "{report}");
    let kept = server.get(path).await.expect(200);
    assert_eq!(kept["description"], "Mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_row_that_cannot_be_taken_over_keeps_no_other_back() {
    let (svix, server) = (Svix::start(), Server::start().await);
    svix.postgres.sql(
        &svix.url,
        r#"INSERT INTO application (id, org_id, uid, name, rate_limit, deleted) VALUES
             ('app_5', 'org_a', '..', 'Dots', NULL, false);
           INSERT INTO endpoint (id, app_id, key, url, uid, event_types_ids, headers) VALUES
             ('ep_10', 'app_2', decode(repeat('88', 24), 'hex'), 'https://example.com/', '.', NULL, NULL),
             ('ep_11', 'app_5', decode(repeat('88', 24), 'hex'), 'https://example.com/', NULL, NULL, NULL),
             ('ep_12', 'app_2', decode(repeat('88', 24), 'hex'), 'https://example.com/', NULL, '["..", "a"]', NULL),
             ('ep_13', 'app_2', decode(repeat('88', 24), 'hex'), 'https://example.com/', NULL, NULL, '{"X": 5}'),
             ('ep_14', 'app_2', decode(repeat('88', 24), 'hex'), 'ftp://example.com/', NULL, '["never.x"]', NULL),
             ('ep_15', 'app_2', decode(repeat('88', 24), 'hex'), 'https://u:p%3A@example.com/', NULL, '["never.y"]',
              '{"Host": "other.example", "X-Own": "1"}');
           UPDATE applicationmetadata SET data = '{"plan": 5}';"#,
    );
    let report = svix.import(&server, &[]);
    assert_eq!(report.code, 1, "{}", report.err);
    assert_eq!(counts(&report.out, "event types"), [4, 0, 0, 1], "{}", report.out);
    assert_eq!(counts(&report.out, "applications"), [2, 0, 0, 1], "{}", report.out);
    assert_eq!(counts(&report.out, "endpoints"), [3, 0, 0, 8], "{}", report.out);
    for said in [
        "application app_5 refused: `..` is no id",
        "endpoint ep_10 refused: `.` is no id",
        "endpoint ep_11 refused: its application is refused",
        "endpoint ep_12 refused: event type ..:",
        "endpoint ep_13 refused: a column holds something else",
        "endpoint ep_14 refused: url",
        "endpoint ep_15: the user in its URL is an authorization header now",
        "endpoint ep_15: its header Host is left out",
        "application app_1: its metadata plan is no text",
        "event type never.y: an endpoint names it",
    ] {
        assert!(report.out.contains(said), "{said}: {}", report.out);
    }
    assert!(!report.out.contains("never.x"), "{}", report.out);
    server.get("/event-type/never.x").await.expect(404);
    server.get("/event-type/a").await.expect(404);
    assert_eq!(server.get("/app/acme").await.expect(200)["metadata"], json!({"plan": "5"}));
    let path = "/app/svix-app_2/endpoint/svix-ep_15";
    assert_eq!(server.get(path).await.expect(200)["url"], "https://example.com/");
    let headers = server.get(&format!("{path}/headers")).await.expect(200);
    assert_eq!(headers["headers"], json!({"X-Own": "1"}));
    assert_eq!(headers["sensitive"], json!(["Authorization"]));
    let mapping = std::fs::read_to_string(server.dir().join("svix-mapping.csv")).unwrap();
    assert_eq!(mapping.lines().count(), 6, "{mapping}");
    let second = svix.import(&server, &[]);
    assert_eq!(counts(&second.out, "endpoints"), [0, 3, 0, 8], "{}", second.out);
    assert_eq!(counts(&second.out, "applications"), [0, 2, 0, 1], "{}", second.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_schema_will_do_and_what_is_none_is_said() {
    let (svix, server) = (Svix::start(), Server::start().await);
    let older = "ALTER TABLE endpoint DROP COLUMN filter, DROP COLUMN headers; \
        ALTER TABLE eventtype DROP COLUMN feature_flag, DROP COLUMN deprecated, \
        DROP COLUMN retry_schedule; DROP TABLE applicationmetadata, endpointmetadata";
    svix.postgres.sql(&svix.url, older);
    let report = svix.import(&server, &[]).out;
    assert_eq!(counts(&report, "endpoints"), [3, 0, 0, 2], "{report}");
    let from = |url: &str, options: &[&str]| {
        peyk(&server, &[&["import", "svix", "--from", url][..], options].concat())
    };
    for (ended, code, said) in [
        (from(&svix.url, &[]), 2, "--org must say which of: org_a, org_b"),
        (from(&svix.url, &["--org", "org_c"]), 2, "--org must be one of"),
        (from(&svix.postgres.fresh_database(), &[]), 1, "no Svix server's"),
        (from("mysql://x", &[]), 2, "--from must be a URL"),
        (from("postgres://postgres@127.0.0.1:1/x", &[]), 3, "cannot connect"),
    ] {
        assert_eq!(ended.code, code, "{}", ended.err);
        assert!(ended.err.contains(said), "{said}: {}", ended.err);
    }
}
