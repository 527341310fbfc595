//! The storage gives way: full, read-only, or somebody else's.
//!
//! What cannot be committed is answered 503 and never sent; what was acknowledged is sent, by the
//! same process, once there is room again.
//! Never: a 202 for what is not on disk, or a byte written to a file that is not ours.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::support::server::command;
use crate::support::{Gate, Receiver, Reply, Server, until};

/// Runs a command of the system; whether it is there and did it.
fn system(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

/// What was posted: ids of what was acknowledged, numbers of what was refused.
#[derive(Default)]
struct Posted {
    acknowledged: Vec<String>,
    refused: Vec<u64>,
    next: u64,
}

impl Posted {
    /// Posts one message of some size; whether it was acknowledged.
    async fn post(&mut self, server: &Server) -> bool {
        let n = self.next;
        self.next += 1;
        let message = json!({"eventType": "t", "payload": {"n": n, "filling": "x".repeat(8_000)}});
        let answer = server.post("/app/a/msg", &message).await;
        if answer.status == 202 {
            self.acknowledged.push(answer.expect(202)["id"].as_str().unwrap().to_owned());
            return true;
        }
        assert_eq!(answer.expect(503)["code"], "storage_unavailable");
        self.refused.push(n);
        false
    }

    /// Posts until the health of the server tells of the fault.
    async fn health_tells(&mut self, server: &Server) {
        // Room comes back when the database tidies up its log, until its file has no room either.
        for _ in 0..500 {
            self.until_refused(server).await;
            let health = server.get("/health").await;
            server.get("/health/ping").await.expect(204);
            if health.status == 503 {
                let health = health.json();
                assert_eq!(health["database"]["status"], "error");
                assert!(health["database"]["reason"].is_string(), "{health}");
                assert_eq!(health["queue"], json!({"status": "ok"}));
                return;
            }
            assert_eq!(health.status, 200);
        }
        panic!("nothing can be stored, and health does not tell");
    }

    /// Waits until the health of the server is good again, with nothing that is posted.
    async fn health_recovers(server: &Server) {
        until("good health", || async {
            let health = server.get("/health").await;
            (health.status == 200)
                .then(|| assert_eq!(health.json()["database"], json!({"status": "ok"})))
        })
        .await;
    }

    /// Posts until nothing more is taken, and a few times more.
    async fn until_refused(&mut self, server: &Server) {
        for _ in 0..5_000 {
            if !self.post(server).await {
                break;
            }
        }
        for _ in 0..20 {
            self.post(server).await;
        }
        assert!(self.refused.len() > 1, "the storage never gave way");
    }

    /// Waits until posts are taken again, and checks what arrived.
    async fn recovered(&mut self, server: &Server, receiver: &Receiver) {
        for _ in 0..5_000 {
            if self.post(server).await {
                break;
            }
            server.get("/health/ping").await.expect(204);
        }
        server.wait_delivered("a", &self.acknowledged).await;
        for hit in receiver.hits() {
            let id = hit.header("webhook-id");
            assert!(self.acknowledged.iter().any(|known| known == id), "{id} was refused");
            assert!(!self.refused.contains(&hit.n()));
        }
        Self::health_recovers(server).await;
    }
}

async fn begin(server: &Server, receiver: &Receiver) -> Posted {
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let mut posted = Posted::default();
    for _ in 0..5 {
        assert!(posted.post(server).await);
    }
    posted
}

/// How large the largest file of the database is.
fn largest(data: &Path) -> u64 {
    let files = std::fs::read_dir(data).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).max().unwrap()
}

#[tokio::test]
async fn du_20_a_full_disk_refuses_posts_loses_nothing_and_recovers_by_itself() {
    if !system("prlimit", &["--version"]) {
        println!("skipped: there is no `prlimit` to limit the size of files with");
        return;
    }
    // A write beyond the limit is an error then, and not the end of the process.
    let server = Server::after("trap '' XFSZ", &[]).await;
    let receiver = Receiver::start().await;
    let mut posted = begin(&server, &receiver).await;
    let limit = |bytes: &str| {
        let id = server.id().to_string();
        assert!(system("prlimit", &["--pid", &id, &format!("--fsize={bytes}")]));
    };
    for _ in 0..2 {
        limit(&format!("{}:", largest(&server.dir().join("data")) + (128 << 10)));
        posted.health_tells(&server).await;
        server.get("/app/a/msg").await.expect(200);
        assert!(server.metric("peyk_commits_total{result=\"failed\"}").await > 0.0);
        limit("unlimited:");
        Posted::health_recovers(&server).await;
        posted.recovered(&server, &receiver).await;
    }
}

/// A small file system in memory; unmounted with it.
struct Small(PathBuf);

impl Small {
    /// Needs rights that most users do not have.
    fn mount(path: &Path) -> Option<Self> {
        std::fs::create_dir(path).unwrap();
        let shown = path.to_str().unwrap();
        system("mount", &["-t", "tmpfs", "-o", "size=4m", "tmpfs", shown])
            .then(|| Self(path.to_owned()))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        system("umount", &["-l", self.0.to_str().unwrap()]);
    }
}

#[tokio::test]
async fn a_full_file_system_is_survived_also_with_a_kill() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount(&scratch.path().join("small")) else {
        println!("skipped: only root may mount a small file system");
        return;
    };
    let data = small.0.join("data");
    let mut server = Server::with(&[("PEYK_DATA_DIR", data.to_str().unwrap())]).await;
    let receiver = Receiver::start().await;
    let mut posted = begin(&server, &receiver).await;
    posted.until_refused(&server).await;
    // Somebody makes room.
    let shown = small.0.to_str().unwrap();
    assert!(system("mount", &["-o", "remount,size=16m", shown]));
    posted.recovered(&server, &receiver).await;
    // Somebody else fills it, and the process dies in the middle of that.
    let filler = small.0.join("filler");
    let _full = std::fs::write(&filler, vec![0; 32 << 20]);
    posted.until_refused(&server).await;
    server.kill();
    std::fs::remove_file(&filler).unwrap();
    server.start_again();
    posted.recovered(&server, &receiver).await;

    assert_eq!(server.stop(), Some(0));
    assert!(system("mount", &["-o", "remount,ro", shown]));
    let output = server.command(&["serve"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.to_lowercase().contains("read-only"), "{said}");
    assert!(system("mount", &["-o", "remount,rw", shown]));
}

/// Files that nobody may write to, until this is dropped.
struct Frozen(Vec<PathBuf>);

impl Frozen {
    fn freeze(data: &Path, names: &[&str]) -> Option<Self> {
        let files = names.iter().map(|name| data.join(name)).collect();
        let frozen = Self(files);
        let all = frozen.0.iter().all(|file| system("chattr", &["+i", file.to_str().unwrap()]));
        // Some file systems take the mark and do not mind it.
        let minded = File::options().append(true).open(&frozen.0[0]).is_err();
        (all && minded).then_some(frozen)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for file in &self.0 {
            system("chattr", &["-i", file.to_str().unwrap()]);
        }
    }
}

#[tokio::test]
async fn a_database_that_becomes_read_only_refuses_posts_and_recovers_by_itself() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    let mut posted = begin(&server, &receiver).await;
    let data = server.dir().join("data");
    let Some(frozen) = Frozen::freeze(&data, &["peyk.db", "peyk.db-wal"]) else {
        println!("skipped: files cannot be made immutable here");
        return;
    };
    posted.health_tells(&server).await;
    let change = server.patch("/app/a/endpoint/e", &json!({"description": "d"})).await;
    assert_eq!(change.expect(503)["code"], "storage_unavailable");
    drop(frozen);
    Posted::health_recovers(&server).await;
    posted.recovered(&server, &receiver).await;
    server.patch("/app/a/endpoint/e", &json!({"description": "d"})).await.expect(200);
}

/// How often the log says so.
fn said(log: &str, text: &str) -> usize {
    log.matches(text).count()
}

#[tokio::test]
async fn on_a_database_that_cannot_be_written_nothing_is_sent_however_often_it_starts() {
    let mut server = Server::with(&[("PEYK_RETRY__BASE", "1s")]).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(503)).await;
    server.app_with("a", &receiver.url("/"), json!({"breaker": {"failures": 1000}})).await;
    let ids = server.messages("a", 5).await;
    for id in &ids {
        server.wait_attempts("a", id, 1).await;
    }
    assert_eq!(server.stop(), Some(0));
    receiver.script(|_, _| Reply::status(200));
    let sent = receiver.hits().len();
    let Some(frozen) = Frozen::freeze(&server.dir().join("data"), &["peyk.db"]) else {
        println!("skipped: files cannot be made immutable here");
        return;
    };
    for _ in 0..2 {
        let before = server.log().len();
        server.start_again();
        until("all of them due", || async {
            let due = server.metric("peyk_queue_oldest_due_seconds").await;
            let paused = server.metric("peyk_sending_paused").await;
            (due > 2.0 && paused == 1.0).then_some(())
        })
        .await;
        assert_eq!(server.get("/health").await.status, 503);
        assert_eq!(receiver.hits().len(), sent, "nobody could write down that it was sent");
        let log = server.log()[before..].to_owned();
        assert_eq!(said(&log, "sending paused: results could not be stored"), 1, "{log}");
        assert_eq!(said(&log, "a chore of the store failed"), 1, "{log}");
        assert_eq!(said(&log, "nothing is committed"), 0, "{log}");
        assert!(log.lines().count() < 15, "{log}");
        assert_eq!(server.stop(), Some(0));
    }
    drop(frozen);
    server.start_again();
    server.wait_delivered("a", &ids).await;
    assert_eq!(receiver.hits().len(), sent + 5);
}

#[tokio::test]
async fn results_that_cannot_be_stored_pause_sending_and_are_told_of_at_the_end() {
    let mut server = Server::with(&[("PEYK_ATTEMPT__DEADLINE", "30s")]).await;
    let gate = Gate::shut();
    let held = gate.clone();
    let receiver = Receiver::scripted(move |_, _| Reply::status(200).held(&held)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let ids = server.messages("a", 30).await;
    receiver.wait_for(4).await;
    let data = server.dir().join("data");
    let Some(frozen) = Frozen::freeze(&data, &["peyk.db", "peyk.db-wal"]) else {
        println!("skipped: files cannot be made immutable here");
        return;
    };
    gate.open();
    until("a pause", || async {
        let paused = server.metric("peyk_sending_paused").await;
        (paused == 1.0 && server.metric("peyk_sends_in_flight").await == 0.0).then_some(())
    })
    .await;
    let sent = receiver.hits().len();
    assert!(sent < 30, "what was out, and what began as its results came in");
    assert_eq!(server.stop(), Some(0));
    assert_eq!(receiver.hits().len(), sent);
    let log = server.log();
    let last = log.lines().find(|line| line.contains("stopped with results")).unwrap();
    assert!(last.contains(&format!("results={sent}")), "{last}");
    assert!(last.contains(&format!("delivered={sent}")), "{last}");
    drop(frozen);
    server.start_again();
    server.wait_delivered("a", &ids).await;
    assert_eq!(receiver.hits().len(), sent + 30);
}

#[tokio::test]
async fn a_foreign_file_is_refused_in_a_sentence_and_left_as_it_is() {
    let mut server = Server::start().await;
    server.app_with("a", "https://h.example", json!({})).await;
    assert_eq!(server.stop(), Some(0));
    let path = server.dir().join("data/peyk.db");
    let own = std::fs::read(&path).unwrap();
    // Another program's mark in the header of a good database; a later version; text; a torn file.
    let mut other = own.clone();
    other[68..72].copy_from_slice(b"Othr");
    let mut newer = own.clone();
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    let torn = [&own[..100], &[0xA5; 4_000]].concat();
    let text = b"a list of things to do, and no database".to_vec();
    let names = || {
        let files = std::fs::read_dir(server.dir().join("data")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("peyk.db")).collect::<std::collections::BTreeSet<_>>()
    };
    let before = names();
    // The good database keeps a log: whoever opens it puts one beside it.
    assert_eq!(own[18..20], [2, 2], "in the mode with a log");
    for (number, bytes) in [other, newer, text, torn].into_iter().enumerate() {
        std::fs::write(&path, &bytes).unwrap();
        let output = command(server.dir(), &["serve"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = said.trim_end().lines().last().unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(last.contains("left as it is") || last.contains("left as it was"), "{said}");
        assert!(std::fs::read(&path).unwrap() == bytes, "byte for byte");
        // The last is ours by its header, and is looked into.
        assert!(number == 3 || names() == before, "{:?}", names());
    }
    std::fs::write(&path, own).unwrap();
    server.start_again();
    server.get("/app/a/endpoint/e").await.expect(200);
}
