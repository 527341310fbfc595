//! What every queue guarantees: one suite, for memory and Redis.

use std::collections::BTreeSet;
use std::time::Duration;

use testparts::Redis;
use worker::{Counts, History, MemoryQueue, NewMessage, Queue, QueueAdmin, QueueError, Receive};

use crate::support::{LONG, all, in_redis, ms, one, put};

async fn suite(queue: &(impl QueueAdmin + Clone)) {
    what_is_put_in_comes_out(queue).await;
    done_is_gone(queue).await;
    a_lapsed_lease_redelivers_and_fences(queue).await;
    a_heartbeat_keeps_it(queue).await;
    a_scheduled_message_comes_when_due(queue).await;
    what_is_given_back_comes_at_once(queue).await;
    dead_letters_are_kept(queue).await;
    ids_are_unique_while_they_are_there(queue).await;
    no_two_consumers_get_one_message(queue).await;
    assert_eq!(queue.counts().await.unwrap(), Counts::default(), "nothing is left");
}

#[tokio::test(start_paused = true)]
async fn memory_passes() {
    suite(&MemoryQueue::bounded(1_000).unwrap()).await;
}

#[tokio::test]
async fn redis_passes() {
    let redis = Redis::start();
    suite(&in_redis(&redis.url()).await).await;
}

async fn what_is_put_in_comes_out(queue: &impl QueueAdmin) {
    let message = NewMessage::new(vec![0, 255, 13, 10])
        .attribute("kind", "invoice")
        .attribute("a:fence", "7")
        .correlation("order 17");
    let id = queue.enqueue(message.clone()).await.unwrap().unwrap();
    let later = message.delay(ms(150));
    queue.enqueue(later).await.unwrap().unwrap();
    let got = one(queue, LONG).await;
    assert_eq!((&*got.id, got.attempt), (&*id, 1));
    assert_eq!(&got.body[..], [0, 255, 13, 10]);
    assert_eq!(got.attributes["kind"], "invoice");
    assert_eq!(got.attributes["a:fence"], "7");
    assert_eq!(got.correlation.as_deref(), Some("order 17"));
    assert!(got.received_at >= got.enqueued_at);
    let begun = Some(got.received_at);
    assert_eq!(got.history, History { begun, ..History::default() });
    queue.complete(&got.token).await.unwrap();
    let late = one(queue, LONG).await;
    assert!(late.received_at.since(late.enqueued_at) >= ms(150), "held back");
    queue.complete(&late.token).await.unwrap();
}

async fn done_is_gone(queue: &impl QueueAdmin) {
    put(queue, "done").await;
    let got = one(queue, LONG).await;
    assert_eq!(queue.counts().await.unwrap(), Counts { leased: 1, ..Counts::default() });
    queue.complete(&got.token).await.unwrap();
    assert!(matches!(queue.complete(&got.token).await, Err(QueueError::Stale)));
    assert!(all(queue, LONG).await.is_empty());
}

/// DU-05: whoever has lost the lease changes nothing any more.
async fn a_lapsed_lease_redelivers_and_fences(queue: &impl QueueAdmin) {
    put(queue, "lapses").await;
    let first = one(queue, ms(60)).await;
    let second = one(queue, LONG).await;
    assert_eq!((&*second.id, second.attempt), ("lapses", 2));
    assert!(second.received_at.since(first.received_at) >= ms(60));
    assert_eq!(second.history.begun, Some(first.received_at), "though nobody told of the first");
    assert!(second.token.fence() > first.token.fence());
    let late = &first.token;
    let history = History::default();
    let due = first.received_at;
    assert!(matches!(queue.complete(late).await, Err(QueueError::Stale)));
    assert!(matches!(queue.extend(late, LONG).await, Err(QueueError::Stale)));
    assert!(matches!(queue.schedule_at(late, due, 1, &history).await, Err(QueueError::Stale)));
    assert!(matches!(queue.dead_letter(late, 2, "x", "y").await, Err(QueueError::Stale)));
    queue.complete(&second.token).await.unwrap();
}

async fn a_heartbeat_keeps_it(queue: &impl QueueAdmin) {
    put(queue, "kept").await;
    let got = one(queue, ms(300)).await;
    queue.extend(&got.token, LONG).await.unwrap();
    let ask = Receive { max: 1, wait: ms(500), lease: LONG };
    assert!(queue.receive(ask).await.unwrap().is_empty(), "the lease was prolonged");
    queue.complete(&got.token).await.unwrap();
}

async fn a_scheduled_message_comes_when_due(queue: &impl QueueAdmin) {
    put(queue, "later").await;
    put(queue, "sooner").await;
    for wait in [200, 100] {
        let got = one(queue, LONG).await;
        let history = History {
            begun: Some(got.received_at),
            last_wait: ms(wait),
            last_error: Some(format!("error {wait}")),
        };
        let due = got.received_at.plus(ms(wait));
        queue.schedule_at(&got.token, due, got.attempt, &history).await.unwrap();
        assert!(matches!(queue.complete(&got.token).await, Err(QueueError::Stale)));
    }
    assert_eq!(queue.counts().await.unwrap(), Counts { scheduled: 2, ..Counts::default() });
    for (id, wait) in [("sooner", 100), ("later", 200)] {
        let got = one(queue, LONG).await;
        assert_eq!((&*got.id, got.attempt), (id, 2));
        let begun = got.history.begun.unwrap();
        assert!(got.received_at.since(begun) >= ms(wait), "not before it is due");
        assert_eq!(got.history.last_wait, ms(wait));
        assert_eq!(got.history.last_error.as_deref(), Some(&*format!("error {wait}")));
        queue.complete(&got.token).await.unwrap();
    }
}

async fn what_is_given_back_comes_at_once(queue: &impl QueueAdmin) {
    put(queue, "back").await;
    let got = one(queue, LONG).await;
    let history = History::default();
    queue.schedule_at(&got.token, got.received_at, 0, &history).await.unwrap();
    let again = all(queue, LONG).await.pop().expect("at once");
    assert_eq!(again.attempt, 1, "the attempts are as told");
    assert_eq!(again.history.begun, Some(again.received_at), "and this is the first");
    queue.complete(&again.token).await.unwrap();
}

async fn dead_letters_are_kept(queue: &impl QueueAdmin) {
    for id in ["dead1", "dead2"] {
        put(queue, id).await;
        let got = one(queue, LONG).await;
        queue.dead_letter(&got.token, 7, "broken", "the whole story").await.unwrap();
    }
    let letters = queue.dead_letters(0, 10).await.unwrap();
    let [first, second] = &letters[..] else { panic!("{letters:?}") };
    assert_eq!((&*first.id, &*second.id), ("dead1", "dead2"), "the oldest first");
    assert_eq!(&first.body[..], b"dead1");
    assert_eq!((&*first.reason, &*first.description), ("broken", "the whole story"));
    assert_eq!(first.attempts, 7, "as told");
    assert!(first.died_at >= first.enqueued_at);
    assert_eq!(&*queue.dead_letters(1, 10).await.unwrap()[0].id, "dead2");
    assert!(queue.dead_letters(0, 0).await.unwrap().is_empty());
    assert_eq!(queue.dead_letters(0, usize::MAX).await.unwrap().len(), 2, "all");
    assert_eq!(queue.dead_letters(1, usize::MAX).await.unwrap().len(), 1);
    assert!(queue.dead_letters(usize::MAX, usize::MAX).await.unwrap().is_empty());
    assert_eq!(queue.counts().await.unwrap(), Counts { dead: 2, ..Counts::default() });
    assert!(queue.replay("dead1").await.unwrap());
    assert!(!queue.replay("dead1").await.unwrap());
    let again = one(queue, LONG).await;
    assert_eq!((&*again.id, again.attempt), ("dead1", 1));
    queue.complete(&again.token).await.unwrap();
    assert!(queue.discard("dead2").await.unwrap());
    assert!(!queue.discard("dead2").await.unwrap());
}

async fn ids_are_unique_while_they_are_there(queue: &impl QueueAdmin) {
    put(queue, "once").await;
    assert_eq!(queue.enqueue(NewMessage::new("x").id("once")).await.unwrap(), None);
    let got = one(queue, LONG).await;
    assert_eq!(queue.enqueue(NewMessage::new("x").id("once")).await.unwrap(), None);
    queue.complete(&got.token).await.unwrap();
    put(queue, "once").await;
    let again = one(queue, LONG).await;
    assert_ne!(again.token, got.token, "a new life has a new token");
    queue.complete(&again.token).await.unwrap();
}

async fn no_two_consumers_get_one_message(queue: &(impl QueueAdmin + Clone)) {
    for n in 0..100 {
        put(queue, &format!("n{n}")).await;
    }
    let consumers: Vec<_> = (0..8)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let mut ids = Vec::new();
                loop {
                    let ask = Receive { max: 7, wait: Duration::ZERO, lease: LONG };
                    let batch = queue.receive(ask).await.unwrap();
                    assert!(batch.len() <= 7);
                    if batch.is_empty() {
                        return ids;
                    }
                    for message in batch {
                        queue.complete(&message.token).await.unwrap();
                        ids.push(message.id.to_string());
                    }
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for consumer in consumers {
        all.extend(consumer.await.unwrap());
    }
    assert_eq!(all.len(), 100);
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>().len(), 100);
}

#[tokio::test(start_paused = true)]
async fn memory_is_bounded() {
    let queue = MemoryQueue::bounded(1).unwrap();
    put(&queue, "a").await;
    assert!(matches!(queue.enqueue(NewMessage::new("b")).await, Err(QueueError::Full)));
}

/// The server forgets its scripts when it restarts; a message is not lost over that.
#[tokio::test]
async fn redis_may_forget_its_scripts() {
    let redis = Redis::start();
    let queue = in_redis(&redis.url()).await;
    let connection = &mut crate::support::connection(&redis.url()).await;
    put(&queue, "m").await;
    redis::cmd("SCRIPT").arg("FLUSH").query_async::<()>(connection).await.unwrap();
    let got = one(&queue, LONG).await;
    redis::cmd("SCRIPT").arg("FLUSH").query_async::<()>(connection).await.unwrap();
    queue.complete(&got.token).await.unwrap();
}

#[tokio::test]
async fn all_keys_of_a_redis_queue_are_on_one_node_of_a_cluster() {
    let redis = Redis::start();
    let queue = in_redis(&redis.url()).await.prefix("jobs");
    for id in ["ready", "scheduled", "dead", "leased"] {
        put(&queue, id).await;
    }
    one(&queue, LONG).await;
    let got = one(&queue, LONG).await;
    let due = got.received_at.plus(LONG);
    queue.schedule_at(&got.token, due, 1, &History::default()).await.unwrap();
    let got = one(&queue, LONG).await;
    queue.dead_letter(&got.token, 1, "r", "d").await.unwrap();
    let connection = &mut crate::support::connection(&redis.url()).await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(connection).await.unwrap();
    assert!(keys.len() >= 8, "{keys:?}");
    assert!(keys.iter().all(|key| key.starts_with("jobs:{test}:")), "{keys:?}");
}
