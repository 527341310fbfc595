//! One data directory, one server; and what the other commands say.
//!
//! Never: more than one line on standard error.

use std::process::Output;

use crate::support::Server;
use crate::support::server::command;

#[track_caller]
fn one_line(output: &Output, status: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    said
}

#[tokio::test]
async fn a_second_serve_ends_at_once() {
    let server = Server::start().await;
    let second = command(server.dir(), &["serve"]).output().unwrap();
    let said = one_line(&second, 1);
    assert!(said.contains("another peyk uses the data directory"), "{said}");
    assert_eq!(server.get("/health/ping").await.status, 204, "the first goes on");
}

#[tokio::test]
async fn a_second_serve_on_the_same_database_ends_at_once() {
    let server = Server::start().await;
    let other = tempfile::tempdir().unwrap();
    let database = format!("sqlite://{}/data/peyk.db", server.dir().display());
    let mut second = command(other.path(), &["serve"]);
    let second = second.env("PEYK_DATABASE_URL", database).output().unwrap();
    let said = one_line(&second, 1);
    assert!(said.contains("another peyk uses the database"), "{said}");
}

#[test]
fn a_bad_setting_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for (name, value, expected) in [
        ("PEYK_LISTEN_ADRESS", "127.0.0.1:0", "PEYK_LISTEN_ADRESS is not a setting"),
        ("PEYK_DATABASE_URL", "mysql://h/d", "must be sqlite://<path> or postgres://"),
        ("PEYK_LOG__LEVEL", "loud", "PEYK_LOG__LEVEL must be one of off, error, warn, info, debug"),
        ("PEYK_WINDOW__MAX", "2", "`window.start`, left at its default, must be from 1 to 2"),
        ("PEYK_RETRY__BASE", "soon", "PEYK_RETRY__BASE must be a whole number with a unit"),
    ] {
        for arguments in [["serve"], ["check-config"], ["token"]] {
            let output = command(dir.path(), &arguments).env(name, value).output().unwrap();
            let said = one_line(&output, 2);
            assert!(said.contains(expected), "{said}");
        }
    }
    std::fs::write(dir.path().join("peyk.toml"), "[retry]\nbse = \"1s\"\n").unwrap();
    let output = command(dir.path(), &["check-config"]).output().unwrap();
    assert!(one_line(&output, 2).contains("`retry.bse` in peyk.toml"));
    let output = command(dir.path(), &["serve", "--config", "none.toml"]).output().unwrap();
    assert!(one_line(&output, 2).contains("cannot read none.toml"));
    for arguments in [&["fly"][..], &["token", "--app"]] {
        let output = command(dir.path(), arguments).output().unwrap();
        let said = one_line(&output, 2);
        assert!(said.contains("see `peyk --help`"), "{said}");
        assert_eq!(said.matches("help").count(), 1, "one hint is enough: {said}");
    }
    let output = command(dir.path(), &["token", "--org", "org_0"]).output().unwrap();
    assert!(one_line(&output, 2).contains("--org must have 27 characters after org_, not 1"));
}

#[test]
fn a_token_is_not_made_under_a_secret_that_no_server_has() {
    let dir = tempfile::tempdir().unwrap();
    let output = command(dir.path(), &["token"]).output().unwrap();
    let said = one_line(&output, 1);
    for expected in ["data/jwt_secret", "peyk serve", "--config", "PEYK_DATA_DIR"] {
        assert!(said.contains(expected), "{said}");
    }
    assert!(!dir.path().join("data").exists(), "nothing is made");
    let mut with_secret = command(dir.path(), &["token"]);
    let output = with_secret.env("PEYK_JWT_SECRET", "a secret of some length").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_good_setting_is_good() {
    let dir = tempfile::tempdir().unwrap();
    let output = command(dir.path(), &["check-config"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!dir.path().join("data").exists(), "nothing is made");
    let output = command(dir.path(), &["--help"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}
