//! What a worker does with a message, over the queue in memory and a clock that is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use resilience::CircuitBreaker;
use resilience::{
    Clock, HalfOpen, OpenFor, Retry, RetryPolicy, Sleeper, State, TokioSleeper, Trip, Vote,
};
use tokio::sync::{Semaphore, mpsc, oneshot};
use worker::{
    Counts, Handled, MemoryQueue, Message, NewMessage, Queue, QueueAdmin, Settled, Worker,
    WorkerObserver,
};

use crate::support::{LONG, all, ms, one, put, told};

fn retry(calls: u32) -> Retry {
    RetryPolicy::fixed(Duration::from_secs(10)).max_calls(calls).build().unwrap()
}

async fn later(span: Duration) {
    TokioSleeper::new().sleep(span).await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_in_the_queue_until_it_is_due() {
    let queue = MemoryQueue::bounded(10).unwrap();
    put(&queue, "m").await;
    let (observer, mut ends) = told();
    let clock = TokioSleeper::new();
    let begun = clock.now();
    let worker = Worker::builder(queue.clone())
        .handler(|message: Message| async move {
            if message.attempt < 3 { Err("not yet") } else { Ok(()) }
        })
        .retry(retry(5))
        .observer(observer)
        .build()
        .unwrap();
    tokio::spawn(worker.run());
    let first = ends.recv().await.unwrap();
    assert_eq!(first, ("m".to_owned(), 1, r#"Scheduled { delay: 10s, error: "not yet" }"#.into()));
    assert_eq!(queue.counts().await.unwrap(), Counts { scheduled: 1, ..Counts::default() });
    assert_eq!(ends.recv().await.unwrap().1, 2);
    assert_eq!(ends.recv().await.unwrap().2, "Completed");
    let took = clock.now().since(begun);
    assert!((ms(20_000)..ms(20_100)).contains(&took), "{took:?}");
    assert_eq!(queue.counts().await.unwrap(), Counts::default());
}

#[tokio::test(start_paused = true)]
async fn panics_are_tried_again_and_in_the_end_set_aside() {
    let queue = MemoryQueue::bounded(10).unwrap();
    put(&queue, "m").await;
    let (observer, mut ends) = told();
    let worker = Worker::builder(queue.clone())
        .handler(|message: Message| async move {
            assert!(message.attempt > 100, "always");
            Handled::done()
        })
        .retry(retry(3))
        .observer(observer)
        .build()
        .unwrap();
    tokio::spawn(worker.run());
    for attempt in 1..=3 {
        assert_eq!(ends.recv().await.unwrap().1, attempt);
    }
    let letters = queue.dead_letters(0, 10).await.unwrap();
    assert_eq!((&*letters[0].reason, letters[0].attempts), ("attempts_exhausted", 3));
    let text = &letters[0].description;
    assert!(text.contains("attempt 3 of at most 3") && text.contains("panicked: always"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_result_is_classified_as_told() {
    struct Throttled;
    impl From<Throttled> for worker::BoxError {
        fn from(_: Throttled) -> Self {
            "throttled".into()
        }
    }
    let queue = MemoryQueue::bounded(10).unwrap();
    put(&queue, "throttled").await;
    put(&queue, "bad").await;
    let (observer, mut ends) = told();
    let worker = Worker::builder(queue.clone())
        .handler(|message: Message| async move {
            if &*message.id == "bad" { Ok(()) } else { Err(Throttled) }
        })
        .classify(|result| match result {
            Ok(()) => Handled::reject("bad_schema", "no amount"),
            Err(error) => Handled::retry(error).after(Duration::from_secs(40)).vote(Vote::Ignore),
        })
        .observer(observer)
        .build()
        .unwrap();
    tokio::spawn(worker.run());
    let (_, _, what) = ends.recv().await.unwrap();
    assert!(what.starts_with("Scheduled { delay: 4"), "as asked, and a little: {what}");
    ends.recv().await.unwrap();
    let letters = queue.dead_letters(0, 10).await.unwrap();
    assert_eq!((&*letters[0].id, &*letters[0].reason), ("bad", "bad_schema"));
    assert!(letters[0].description.ends_with("last error: no amount"));
}

/// While the breaker is open nothing is received, and no attempt is used up; half-open, one is.
#[tokio::test(start_paused = true)]
async fn an_open_breaker_leaves_the_queue_alone() {
    let queue = MemoryQueue::bounded(100).unwrap();
    for n in 0..10 {
        put(&queue, &format!("m{n}")).await;
    }
    let breaker = CircuitBreaker::builder("b")
        .trip(Trip::consecutive(2))
        .open_for(OpenFor::fixed(Duration::from_secs(60)))
        .half_open(HalfOpen::probes(1))
        .clock(TokioSleeper::new())
        .build()
        .unwrap();
    let (observer, mut ends) = told();
    let good = Arc::new(AtomicU32::new(0));
    let is_good = Arc::clone(&good);
    let worker = Worker::builder(queue.clone())
        .handler(move |_| {
            let good = is_good.load(Ordering::SeqCst) == 1;
            async move { if good { Ok(()) } else { Err("down") } }
        })
        .retry(RetryPolicy::fixed(Duration::from_secs(600)).max_calls(5).build().unwrap())
        .breaker(breaker.clone())
        .concurrency(2)
        .observer(observer)
        .build()
        .unwrap();
    tokio::spawn(worker.run());
    for _ in 0..2 {
        ends.recv().await.unwrap();
    }
    assert!(matches!(breaker.state(), State::Open { .. }));
    later(Duration::from_secs(30)).await;
    let counts = queue.counts().await.unwrap();
    assert_eq!((counts.ready, counts.scheduled, counts.leased), (8, 2, 0), "left alone");
    // The probe fails: exactly one message more was received.
    ends.recv().await.unwrap();
    later(Duration::from_secs(30)).await;
    assert_eq!(queue.counts().await.unwrap().ready, 7);
    assert!(ends.try_recv().is_err());
    good.store(1, Ordering::SeqCst);
    for _ in 0..7 {
        let (_, attempt, what) = ends.recv().await.unwrap();
        assert_eq!((attempt, &*what), (1, "Completed"), "no attempt was used up");
    }
}

/// It opens while the queue is waiting for a message: the one that comes is given back unhandled.
#[tokio::test(start_paused = true)]
async fn a_message_received_as_the_breaker_opens_is_given_back() {
    let queue = MemoryQueue::bounded(100).unwrap();
    let breaker = CircuitBreaker::builder("b").clock(TokioSleeper::new()).build().unwrap();
    let (observer, mut ends) = told();
    let worker = Worker::builder(queue.clone())
        .handler(|_| async { Ok::<_, &str>(()) })
        .breaker(breaker.clone())
        .wait(Duration::from_secs(20))
        .observer(observer)
        .build()
        .unwrap();
    tokio::spawn(worker.run());
    later(ms(100)).await;
    breaker.handle().force_open();
    put(&queue, "m").await;
    assert_eq!(ends.recv().await.unwrap(), ("m".to_owned(), 1, "Returned".to_owned()));
    assert_eq!(queue.counts().await.unwrap(), Counts { ready: 1, ..Counts::default() });
    breaker.handle().force_closed();
    assert_eq!(ends.recv().await.unwrap(), ("m".to_owned(), 1, "Completed".to_owned()));
}

/// DU-04: the lease is prolonged while the handler runs.
#[tokio::test(start_paused = true)]
async fn du_04_a_slow_handler_keeps_its_message() {
    let queue = MemoryQueue::bounded(10).unwrap();
    put(&queue, "slow").await;
    let (observer, mut ends) = told();
    let worker = Worker::builder(queue.clone())
        .handler(|_| async {
            later(Duration::from_secs(100)).await;
            Handled::done()
        })
        .lease(Duration::from_secs(3))
        .observer(observer)
        .build()
        .unwrap();
    tokio::spawn(worker.run());
    later(Duration::from_secs(50)).await;
    assert!(all(&queue, LONG).await.is_empty());
    assert_eq!(ends.recv().await.unwrap(), ("slow".to_owned(), 1, "Completed".to_owned()));
}

/// Ends when it is dropped.
struct Guard(Option<oneshot::Sender<()>>);

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

/// DU-05: whoever has lost the lease stops, and its result changes nothing.
#[tokio::test(start_paused = true)]
async fn du_05_a_handler_whose_lease_is_lost_is_dropped() {
    let queue = MemoryQueue::bounded(10).unwrap();
    put(&queue, "m").await;
    let (observer, mut ends) = told();
    let (tokens, mut token) = mpsc::unbounded_channel();
    let (dropped, is_dropped) = oneshot::channel();
    let guard = std::sync::Mutex::new(Some(Guard(Some(dropped))));
    let worker = Worker::builder(queue.clone())
        .handler(move |message: Message| {
            let guard = guard.lock().unwrap().take();
            tokens.send(message.token).unwrap();
            async move {
                let _held = guard;
                std::future::pending::<Handled>().await
            }
        })
        .lease(Duration::from_secs(3))
        .observer(observer)
        .build()
        .unwrap();
    tokio::spawn(worker.run());
    // Another settles it, as after a lease that lapsed in a long pause of the process.
    let token = token.recv().await.unwrap();
    queue.complete(&token).await.unwrap();
    assert!(is_dropped.await.is_err(), "the handler is gone");
    assert_eq!(ends.recv().await.unwrap().2, "LeaseLost");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_never_ends_is_ended() {
    let queue = MemoryQueue::bounded(10).unwrap();
    put(&queue, "m").await;
    let (observer, mut ends) = told();
    let worker = Worker::builder(queue.clone())
        .handler(|_| std::future::pending::<Handled>())
        .handler_timeout(Duration::from_secs(7))
        .retry(retry(2))
        .observer(observer)
        .build()
        .unwrap();
    tokio::spawn(worker.run());
    let (_, attempt, what) = ends.recv().await.unwrap();
    assert_eq!(attempt, 1);
    assert!(what.contains("longer than 7s"), "{what}");
    assert!(ends.recv().await.unwrap().2.contains("attempts_exhausted"));
}

/// DU-10: a message that kills whoever takes it is bounded by the receipts that the queue counted.
#[tokio::test(start_paused = true)]
async fn du_10_a_message_that_killed_its_consumers_is_set_aside_unseen() {
    let queue = MemoryQueue::bounded(10).unwrap();
    put(&queue, "poison").await;
    for _ in 0..3 {
        one(&queue, ms(100)).await;
    }
    let (observer, mut ends) = told();
    let worker = Worker::builder(queue.clone())
        .handler(|_| async { Handled::done() })
        .retry(retry(3))
        .observer(observer)
        .build()
        .unwrap();
    tokio::spawn(worker.run());
    assert_eq!(ends.recv().await.unwrap().1, 4);
    assert_eq!(queue.dead_letters(0, 1).await.unwrap()[0].reason, "crashed");
}

#[tokio::test(start_paused = true)]
async fn no_more_run_at_once_than_allowed_and_none_waits_under_a_lease() {
    let queue = MemoryQueue::bounded(100).unwrap();
    for n in 0..20 {
        put(&queue, &format!("m{n}")).await;
    }
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let gate = Arc::new(Semaphore::new(0));
    let (now, peak, open) = (Arc::clone(&running), Arc::clone(&most), Arc::clone(&gate));
    let (observer, mut ends) = told();
    let worker = Worker::builder(queue.clone())
        .handler(move |_| {
            let (now, peak, open) = (Arc::clone(&now), Arc::clone(&peak), Arc::clone(&open));
            async move {
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                open.acquire().await.unwrap().forget();
                now.fetch_sub(1, Ordering::SeqCst);
                Handled::done()
            }
        })
        .concurrency(4)
        .observer(observer)
        .build()
        .unwrap();
    tokio::spawn(worker.run());
    later(ms(100)).await;
    let counts = queue.counts().await.unwrap();
    assert_eq!((counts.leased, counts.ready), (4, 16));
    gate.add_permits(20);
    for _ in 0..20 {
        ends.recv().await.unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 4);
}

struct Rude;

impl WorkerObserver for Rude {
    fn on_started(&self, _: &Message) {
        panic!("rude");
    }

    fn on_settled(&self, _: &Settled<'_>) {
        panic!("rude");
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_changes_nothing() {
    let queue = MemoryQueue::bounded(10).unwrap();
    queue.enqueue(NewMessage::new("m")).await.unwrap();
    let (observer, mut ends) = told();
    let worker = Worker::builder(queue.clone())
        .handler(|_| async { Handled::done() })
        .observer(Rude)
        .observer(observer)
        .build()
        .unwrap();
    tokio::spawn(worker.run());
    assert_eq!(ends.recv().await.unwrap().2, "Completed");
}

#[tokio::test(start_paused = true)]
async fn a_queue_may_be_chosen_at_run_time() {
    let memory = MemoryQueue::bounded(10).unwrap();
    put(&memory, "m").await;
    let queue: Arc<dyn worker::DynQueue> = Arc::new(memory);
    let got = one(&queue, LONG).await;
    queue.extend(&got.token, LONG).await.unwrap();
    queue.complete(&got.token).await.unwrap();
    assert!(Worker::builder(queue).handler(|_| async { Handled::done() }).build().is_ok());
}

#[test]
fn the_broken_option_is_named() {
    let builder = || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _inside = runtime.enter();
        Worker::builder(MemoryQueue::bounded(1).unwrap()).handler(|_| async { Handled::done() })
    };
    let second = Duration::from_secs(1);
    let rows = [
        (builder().concurrency(0), "concurrency"),
        (builder().lease(second).heartbeat(second), "heartbeat"),
        (builder().lease(Duration::ZERO), "lease"),
        (builder().lease(ms(9)), "lease"),
        (builder().heartbeat(Duration::ZERO), "heartbeat"),
        (builder().heartbeat(Duration::MAX), "heartbeat"),
        (builder().concurrency(usize::MAX), "concurrency"),
        (builder().wait(Duration::ZERO), "wait"),
        (builder().handler_timeout(Duration::ZERO), "handler_timeout"),
        (builder().queue_timeout(Duration::ZERO), "queue_timeout"),
    ];
    for (builder, field) in rows {
        assert_eq!(builder.build().unwrap_err().option, field);
    }
    assert_eq!(
        Worker::builder(MemoryQueue::bounded(1).unwrap()).build().unwrap_err().option,
        "handler"
    );
    assert_eq!(MemoryQueue::with(0, TokioSleeper::new()).unwrap_err().option, "messages_max");
    let whole = builder().lease(Duration::MAX).wait(Duration::MAX).grace(Duration::ZERO);
    let whole = whole.handler_timeout(Duration::MAX).queue_timeout(Duration::MAX);
    assert!(whole.build().is_ok());
}
