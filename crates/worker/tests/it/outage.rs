//! Redis stops, crashes and comes back under a worker that goes on.

use std::sync::Arc;

use testparts::Redis;
use tokio::sync::Semaphore;
use worker::{Handled, NewMessage, Queue, QueueAdmin, QueueError, Worker, WorkerObserver};

use crate::support::{in_redis, ms, one, put, told};

const ON_DISK: [(&str, &str); 2] = [("appendonly", "yes"), ("appendfsync", "always")];

/// Says that the queue failed.
struct Heard(Arc<Semaphore>);

impl WorkerObserver for Heard {
    fn on_queue_error(&self, _: &'static str, _: &QueueError) {
        self.0.add_permits(1);
    }
}

/// Puts a message in, as often as it takes while connections are broken.
async fn put_after_all(queue: &impl QueueAdmin, id: &str) {
    while queue.enqueue(NewMessage::new("x").id(id)).await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_goes_on_when_redis_is_back() {
    let mut redis = Redis::start_with(&ON_DISK);
    let queue = in_redis(&redis.url()).await;
    let (observer, mut ends) = told();
    let failed = Arc::new(Semaphore::new(0));
    let worker = Worker::builder(in_redis(&redis.url()).await)
        .handler(|_| async { Handled::done() })
        .wait(ms(50))
        .observer(observer)
        .observer(Heard(Arc::clone(&failed)))
        .build()
        .unwrap();
    let run = tokio::spawn(worker.run());
    put(&queue, "before").await;
    assert_eq!(ends.recv().await.unwrap().0, "before");
    redis.stop();
    failed.acquire_many(2).await.unwrap().forget();
    assert!(!run.is_finished());
    redis.restart();
    put_after_all(&queue, "after").await;
    assert_eq!(ends.recv().await.unwrap(), ("after".to_owned(), 1, "Completed".to_owned()));
    run.abort();
}

/// The handler's end falls into the outage: it is settled when Redis is back, and not run again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_during_the_outage_is_settled_after_it() {
    let mut redis = Redis::start_with(&ON_DISK);
    let queue = in_redis(&redis.url()).await;
    let (observer, mut ends) = told();
    let (begun, mut is_begun) = tokio::sync::mpsc::unbounded_channel();
    let failed = Arc::new(Semaphore::new(0));
    let gate = Arc::new(Semaphore::new(0));
    let open = Arc::clone(&gate);
    let worker = Worker::builder(in_redis(&redis.url()).await)
        .handler(move |_| {
            begun.send(()).unwrap();
            let open = Arc::clone(&open);
            async move {
                open.acquire().await.unwrap().forget();
                Handled::done()
            }
        })
        .observer(observer)
        .observer(Heard(Arc::clone(&failed)))
        .build()
        .unwrap();
    let run = tokio::spawn(worker.run());
    put(&queue, "m").await;
    is_begun.recv().await.unwrap();
    redis.stop();
    gate.add_permits(1);
    failed.acquire().await.unwrap().forget();
    redis.restart();
    assert_eq!(ends.recv().await.unwrap(), ("m".to_owned(), 1, "Completed".to_owned()));
    let queue = in_redis(&redis.url()).await;
    assert_eq!(queue.counts().await.unwrap(), worker::Counts::default());
    run.abort();
}

/// DU-13, DU-15: what was scheduled, leased and ready is there after a crash of the server, and
/// what fell due meanwhile comes without anybody's help.
#[tokio::test]
async fn du_13_du_15_a_crash_of_redis_loses_nothing_on_disk() {
    let mut redis = Redis::start_with(&ON_DISK);
    let queue = in_redis(&redis.url()).await;
    put(&queue, "scheduled").await;
    let got = one(&queue, ms(60_000)).await;
    let due = got.received_at.plus(ms(300));
    queue.schedule_at(&got.token, due, 1, &got.history).await.unwrap();
    put(&queue, "leased").await;
    let leased = one(&queue, ms(300)).await;
    put(&queue, "ready").await;
    redis.kill();
    redis.restart();
    let queue = in_redis(&redis.url()).await;
    let mut back = Vec::new();
    for _ in 0..3 {
        let got = one(&queue, ms(60_000)).await;
        assert!(&*got.id != "scheduled" || got.received_at >= due);
        back.push((got.id.to_string(), got.attempt));
    }
    back.sort();
    let expected = [("leased", 2), ("ready", 1), ("scheduled", 2)];
    assert_eq!(back, expected.map(|(id, attempt)| (id.to_owned(), attempt)));
    assert!(matches!(queue.complete(&leased.token).await, Err(QueueError::Stale)));
}
