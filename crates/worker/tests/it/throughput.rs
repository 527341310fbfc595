//! Many messages, many consumers: each handled, and none twice unless somebody dies.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use testparts::Redis;
use tokio::sync::Notify;
use worker::{Counts, Handled, MemoryQueue, Message, NewMessage, QueueAdmin, Worker};

use crate::support::in_redis;

const MESSAGES: usize = 10_000;

type Seen = Arc<Mutex<HashMap<String, u32>>>;

async fn each_exactly_once(consumers: Vec<impl QueueAdmin + Clone>) {
    let queue = consumers[0].clone();
    let putters = (0..20).map(|part| {
        let queue = queue.clone();
        tokio::spawn(async move {
            for n in 0..MESSAGES / 20 {
                let message = NewMessage::new("x").id(format!("{part}-{n}"));
                queue.enqueue(message).await.unwrap().unwrap();
            }
        })
    });
    for putter in putters.collect::<Vec<_>>() {
        putter.await.unwrap();
    }
    let (seen, done) = (Seen::default(), Arc::new(Notify::new()));
    let workers = consumers.into_iter().map(|queue| {
        let (seen, done, told) = (Arc::clone(&seen), Arc::clone(&done), Arc::clone(&done));
        let worker = Worker::builder(queue)
            .handler(move |message: Message| {
                let mut seen = seen.lock().unwrap();
                *seen.entry(message.id.to_string()).or_default() += 1;
                if seen.len() == MESSAGES {
                    // All four wait already: they are polled before anything is handled.
                    done.notify_waiters();
                }
                async { Handled::done() }
            })
            .concurrency(16)
            .shutdown(async move { told.notified().await })
            .build()
            .unwrap();
        tokio::spawn(worker.run())
    });
    let mut completed = 0;
    for worker in workers.collect::<Vec<_>>() {
        completed += worker.await.unwrap().completed;
    }
    assert_eq!(completed, MESSAGES as u64);
    assert_eq!(queue.counts().await.unwrap(), Counts::default());
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), MESSAGES);
    assert!(seen.values().all(|times| *times == 1));
}

#[tokio::test]
async fn four_consumers_in_memory_handle_each_of_10_000_once() {
    let queue = MemoryQueue::bounded(MESSAGES).unwrap();
    each_exactly_once((0..4).map(|_| queue.clone()).collect()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_consumers_in_redis_handle_each_of_10_000_once() {
    let redis = Redis::start();
    let mut consumers = Vec::new();
    for _ in 0..4 {
        consumers.push(in_redis(&redis.url()).await);
    }
    each_exactly_once(consumers).await;
}
