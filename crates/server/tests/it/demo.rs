//! The demo begins to tell its story, on directories and ports of its own, and leaves none behind.
//!
//! Never: wait for its end.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::support::server::PEYK;

#[test]
fn the_demo_delivers_and_tries_again_and_clears_up_when_it_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let mut demo = Command::new(PEYK)
        .arg("demo")
        .current_dir(dir.path())
        .env_clear()
        .env("TMPDIR", dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let seen: Vec<_> = lines
        .map(|line| line.unwrap())
        .scan(false, |is_over, line| {
            let go_on = !*is_over;
            *is_over = line.contains("send 3: 200");
            go_on.then_some(line)
        })
        .collect();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "its directory");
    let id = demo.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(demo.wait().unwrap().success());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left of it");
    let seen = seen.join("\n");
    let told = "endpoint flaky  takes demo.flaky";
    for expected in ["Peyk listens on http://127.0.0.1:", told, "delivered", "failed, again in"] {
        assert!(seen.contains(expected), "{seen}");
    }
}
