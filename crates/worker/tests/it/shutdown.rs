//! How a worker ends.

use std::time::Duration;

use resilience::{Sleeper, TokioSleeper};
use tokio::sync::oneshot;
use worker::{Counts, Handled, MemoryQueue, QueueAdmin, Worker};

use crate::support::{LONG, one, put, told};

#[tokio::test(start_paused = true)]
async fn what_is_in_hand_is_finished() {
    let queue = MemoryQueue::bounded(10).unwrap();
    for id in ["a", "b", "c"] {
        put(&queue, id).await;
    }
    let (stop, stopped) = oneshot::channel::<()>();
    let (begun, mut is_begun) = tokio::sync::mpsc::unbounded_channel();
    let worker = Worker::builder(queue.clone())
        .handler(move |_| {
            begun.send(()).unwrap();
            async {
                TokioSleeper::new().sleep(Duration::from_secs(20)).await;
                Handled::done()
            }
        })
        .concurrency(2)
        .shutdown(async { drop(stopped.await) })
        .build()
        .unwrap();
    let run = tokio::spawn(worker.run());
    is_begun.recv().await.unwrap();
    is_begun.recv().await.unwrap();
    stop.send(()).unwrap();
    let summary = run.await.unwrap();
    assert_eq!((summary.completed, summary.returned), (2, 0));
    assert_eq!(queue.counts().await.unwrap(), Counts { ready: 1, ..Counts::default() });
}

/// DU-12: an attempt that a shutdown cuts off is not counted, however often that happens.
#[tokio::test(start_paused = true)]
async fn du_12_what_does_not_finish_in_time_is_given_back_uncounted() {
    let queue = MemoryQueue::bounded(10).unwrap();
    put(&queue, "m").await;
    for _ in 0..5 {
        let (stop, stopped) = oneshot::channel::<()>();
        let (begun, mut is_begun) = tokio::sync::mpsc::unbounded_channel();
        let worker = Worker::builder(queue.clone())
            .handler(move |_| {
                begun.send(()).unwrap();
                std::future::pending::<Handled>()
            })
            .grace(Duration::from_secs(5))
            .retry(resilience::RetryPolicy::fixed(LONG).max_calls(2).build().unwrap())
            .shutdown(async { drop(stopped.await) })
            .build()
            .unwrap();
        let run = tokio::spawn(worker.run());
        is_begun.recv().await.unwrap();
        stop.send(()).unwrap();
        let summary = run.await.unwrap();
        assert_eq!((summary.returned, summary.dead_lettered), (1, 0));
    }
    assert_eq!(one(&queue, LONG).await.attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_during_the_shutdown_is_given_back() {
    let queue = MemoryQueue::bounded(10).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let (observer, mut ends) = told();
    let worker = Worker::builder(queue.clone())
        .handler(|_| async { Handled::done() })
        .wait(Duration::from_secs(20))
        .observer(observer)
        .shutdown(async { drop(stopped.await) })
        .build()
        .unwrap();
    let run = tokio::spawn(worker.run());
    TokioSleeper::new().sleep(Duration::from_secs(1)).await;
    stop.send(()).unwrap();
    TokioSleeper::new().sleep(Duration::from_secs(1)).await;
    put(&queue, "late").await;
    assert_eq!(ends.recv().await.unwrap().2, "Returned");
    assert_eq!(run.await.unwrap().returned, 1);
    assert_eq!(one(&queue, LONG).await.attempt, 1);
}
