//! The process dies in the middle of its handler (SIGKILL), and another takes its place.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use receiver::{AfterCrash, IdempotencyLayer, IdempotencyStore, PgIdempotency, Running, ScopedKey};
use testparts::{Postgres, Redis};

use crate::support::{Server, app, pool, postgres, redis};

/// A receiver in a process of its own.
struct Receiver {
    child: Child,
    said: Lines<BufReader<ChildStderr>>,
    server: Server,
}

impl Receiver {
    /// Starts one over the store at `url`; with `hang` its handler never ends.
    fn start(url: &str, after_crash: AfterCrash, hang: bool) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "--nocapture", "crash::a_receiver"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        writeln!(stdin, "{url} {after_crash:?} {hang}").unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let port = await_line(&mut said, "port=").parse().unwrap();
        Self { child, said, server: Server::at(port) }
    }

    /// Posts, waits until the handler runs, and kills the process in the middle of it.
    async fn die_in_the_handler(mut self) {
        let post = self.server.posting("k", "body");
        let waiting = tokio::task::spawn_blocking(move || {
            await_line(&mut self.said, "entered");
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        });
        waiting.await.unwrap();
        assert!(post.await.is_err(), "nobody answered");
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The rest of the next line that begins with this.
fn await_line(said: &mut Lines<BufReader<ChildStderr>>, begins: &str) -> String {
    let mut lines = said.by_ref().map_while(Result::ok);
    lines.find_map(|line| Some(line.strip_prefix(begins)?.to_owned())).unwrap()
}

/// The other process: reads what to do, says its port, and serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "serves for ever; started by the other tests of this file"]
async fn a_receiver() {
    let mut told = String::new();
    std::io::stdin().read_line(&mut told).unwrap();
    let [url, after_crash, hang] = told.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{told}")
    };
    let after_crash = match after_crash {
        "Rerun" => AfterCrash::Rerun,
        _ => AfterCrash::Indeterminate,
    };
    if url.starts_with("redis:") {
        serve(redis(url).await, after_crash, hang == "true", None).await;
    } else {
        serve(postgres(url).await, after_crash, hang == "true", Some(url.to_owned())).await;
    }
}

async fn serve(
    store: impl IdempotencyStore,
    after_crash: AfterCrash,
    hang: bool,
    books_at: Option<String>,
) {
    let ms = Duration::from_millis;
    let layer = IdempotencyLayer::builder(store).after_crash(after_crash);
    let layer = layer.lease(ms(700)).heartbeat(ms(100)).store_timeout(ms(500)).build().unwrap();
    let handle = move |request: Request<Body>| {
        let books_at = books_at.clone();
        async move {
            let running = request.extensions().get::<Running>().unwrap().clone();
            match books_at {
                Some(url) => book(&url, &running, hang).await,
                None => pause(hang).await,
            }
            Response::new(Body::from("handled"))
        }
    };
    let server = Server::start(app(layer, handle)).await;
    eprintln!("port={}", server.port);
    std::future::pending::<()>().await;
}

async fn pause(hang: bool) {
    eprintln!("entered");
    if hang {
        std::future::pending::<()>().await;
    }
}

/// Effect and record in one transaction; hangs, if it does, just before the commit.
async fn book(url: &str, running: &Running, hang: bool) {
    let mut client = pool(url).get().await.unwrap();
    let tx = client.transaction().await.unwrap();
    tx.execute("INSERT INTO payment DEFAULT VALUES", &[]).await.unwrap();
    let response = Response::new(Bytes::from("handled"));
    PgIdempotency::in_tx(&tx).complete(running, &response).await.unwrap();
    pause(hang).await;
    tx.commit().await.unwrap();
}

/// ID-02: the key is free again when the lease has lapsed, within a second here.
#[tokio::test]
async fn id_02_redis_reruns_what_a_crash_cut_off() {
    let parts = Redis::start();
    Receiver::start(&parts.url(), AfterCrash::Rerun, true).die_in_the_handler().await;
    let next = Receiver::start(&parts.url(), AfterCrash::Rerun, false);
    let reply = next.server.post_until("k", |reply| reply.status == StatusCode::OK).await;
    assert_eq!((reply.text().as_str(), reply.is_replay()), ("handled", false));
}

#[tokio::test]
async fn an_indeterminate_outcome_waits_for_somebody() {
    let parts = Redis::start();
    Receiver::start(&parts.url(), AfterCrash::Indeterminate, true).die_in_the_handler().await;
    let next = Receiver::start(&parts.url(), AfterCrash::Indeterminate, false);
    let unknown = next.server.post_until("k", |r| r.text() != "request_in_progress").await;
    assert_eq!(
        (unknown.status, unknown.text().as_str()),
        (StatusCode::CONFLICT, "outcome_unknown")
    );
    let key = ScopedKey { scope: String::new(), key: "k".into() };
    assert!(redis(&parts.url()).await.forget(&key).await.unwrap());
    assert_eq!(next.server.post("k", "body").await.text(), "handled");
}

/// Killed between its effect and the commit: both are undone, and done once by the next.
#[tokio::test]
async fn id_02_postgres_books_once_over_a_crash() {
    let parts = Postgres::start();
    let url = parts.fresh_database();
    parts.sql(&url, "CREATE TABLE payment (id serial)");
    let payments = || parts.sql(&url, "SELECT count(*) FROM payment");
    Receiver::start(&url, AfterCrash::Rerun, true).die_in_the_handler().await;
    let next = Receiver::start(&url, AfterCrash::Rerun, false);
    let reply = next.server.post_until("k", |reply| reply.status == StatusCode::OK).await;
    assert_eq!((reply.text().as_str(), payments().as_str()), ("handled", "1"));
    assert!(next.server.post("k", "body").await.is_replay());
    assert_eq!(payments(), "1");
}
