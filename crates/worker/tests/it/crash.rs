//! Worker processes that die in the middle of a message (SIGKILL, abort).

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStderr, Command, Stdio};

use resilience::RetryPolicy;
use testparts::Redis;
use worker::{Counts, Handled, Message, NewMessage, QueueAdmin, Worker};

use crate::support::{in_redis, ms, put, told};

/// A worker in a process of its own; what it says comes line by line.
struct Process {
    child: Child,
    said: Lines<BufReader<ChildStderr>>,
}

impl Process {
    fn start(url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "crash::a_worker"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(child.stdin.as_mut().unwrap(), "{url}").unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, said }
    }

    fn await_line(&mut self, begins: &str) -> String {
        let mut lines = self.said.by_ref().map_while(Result::ok);
        lines.find(|line| line.starts_with(begins)).unwrap()
    }

    fn kill(&mut self) {
        let _gone = self.child.kill();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The other process. A message hangs, kills its process, or is done, as its body says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "works for ever; started by the other tests of this file"]
async fn a_worker() {
    let mut url = String::new();
    std::io::stdin().read_line(&mut url).unwrap();
    let worker = Worker::builder(in_redis(url.trim()).await)
        .handler(|message: Message| async move {
            eprintln!("begun {} {}", message.id, message.attempt);
            match &message.body[..] {
                b"hang" => std::future::pending().await,
                b"abort" => std::process::abort(),
                _ => Handled::done(),
            }
        })
        .retry(RetryPolicy::fixed(ms(10)).max_calls(3).build().unwrap())
        .concurrency(4)
        .lease(ms(500))
        .build()
        .unwrap();
    worker.run().await;
}

/// DU-06: what a killed worker held is taken up within the lease, as attempt 2, and nothing is
/// lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn du_06_what_a_killed_worker_held_is_received_again() {
    let redis = Redis::start();
    let queue = in_redis(&redis.url()).await;
    let ids = ["a", "b", "c", "d"];
    for id in ids {
        queue.enqueue(NewMessage::new("hang").id(id)).await.unwrap();
    }
    let mut killed = Process::start(&redis.url());
    for _ in ids {
        assert!(killed.await_line("begun").ends_with(" 1"));
    }
    assert_eq!(queue.counts().await.unwrap(), Counts { leased: 4, ..Counts::default() });
    killed.kill();
    let (observer, mut ends) = told();
    let survivor = Worker::builder(queue.clone())
        .handler(|_| async { Handled::done() })
        .observer(observer)
        .build()
        .unwrap();
    let run = tokio::spawn(survivor.run());
    let mut seen = Vec::new();
    for _ in ids {
        let (id, attempt, what) = ends.recv().await.unwrap();
        assert_eq!((attempt, &*what), (2, "Completed"));
        seen.push(id);
    }
    seen.sort();
    assert_eq!(seen, ids);
    assert_eq!(queue.counts().await.unwrap(), Counts::default());
    run.abort();
}

/// DU-10: a message that aborts its process is set aside after as many as there are calls, and its
/// neighbours are done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn du_10_a_message_that_kills_processes_is_bounded() {
    let redis = Redis::start();
    let queue = in_redis(&redis.url()).await;
    queue.enqueue(NewMessage::new("abort").id("poison")).await.unwrap();
    for _ in 0..3 {
        let mut process = Process::start(&redis.url());
        process.await_line("begun poison");
        process.child.wait().unwrap();
    }
    for n in 0..20 {
        put(&queue, &format!("good{n}")).await;
    }
    // The fourth lives: it never begins the poison.
    let _fourth = Process::start(&redis.url());
    let mut counts = queue.counts().await.unwrap();
    while counts != (Counts { dead: 1, ..Counts::default() }) {
        // Each round waits for the server's answer; the last lease runs out meanwhile.
        counts = queue.counts().await.unwrap();
    }
    let letters = queue.dead_letters(0, 1).await.unwrap();
    assert_eq!(letters[0].attempts, 3, "as often as its handler was begun");
    assert_eq!((&*letters[0].id, &*letters[0].reason), ("poison", "crashed"));
    assert!(letters[0].description.contains("consumers died"), "{}", letters[0].description);
}
