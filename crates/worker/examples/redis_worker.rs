//! A worker on a queue in Redis, with a breaker, that ends in order at Ctrl-C.
//!
//! ```sh
//! redis-server --port 6399 --appendonly yes &
//! cargo run -p peyk-worker --features redis --example redis_worker -- redis://127.0.0.1:6399/
//! ```
//!
//! It puts in twenty messages of its own. Start it in two terminals, kill one, and watch the other
//! take over what was in hand after the lease.
//! Never: an effect that may not happen twice; a worker sees a message at least once.

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use resilience::{CircuitBreaker, OpenFor, RetryPolicy, Trip};
use worker::{
    Handled, Message, NewMessage, QueueAdmin, RedisQueue, Settled, Worker, WorkerObserver,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: redis_worker redis://HOST:PORT/")?;
    let patience = Some(Duration::from_secs(5));
    let settings = ConnectionManagerConfig::new()
        .set_connection_timeout(patience)
        .set_response_timeout(patience);
    let client = redis::Client::open(url)?;
    let connection = ConnectionManager::new_with_config(client, settings).await?;
    let queue = RedisQueue::new(connection, "invoices");
    for number in 1..=20 {
        queue.enqueue(NewMessage::new(format!("invoice {number}"))).await?;
    }

    let breaker = CircuitBreaker::builder("ledger")
        .trip(Trip::consecutive(5))
        .open_for(OpenFor::fixed(Duration::from_secs(5)))
        .build()?;
    let retry = RetryPolicy::full_jitter(Duration::from_millis(500))
        .cap(Duration::from_secs(10))
        .max_calls(4)
        .build()?;
    let worker = Worker::builder(queue.clone())
        .handler(book)
        .retry(retry)
        .breaker(breaker)
        .concurrency(4)
        .lease(Duration::from_secs(10))
        .observer(Printer)
        .shutdown(async { drop(tokio::signal::ctrl_c().await) })
        .build()?;
    eprintln!("working; Ctrl-C ends it in order");
    let summary = worker.run().await;
    eprintln!("{summary:?}; left: {:?}", queue.counts().await?);
    for letter in queue.dead_letters(0, 10).await? {
        eprintln!("{letter:?}");
    }
    Ok(())
}

/// Every fifth call fails, and invoice 13 is one that no retry mends.
async fn book(message: Message) -> Handled {
    static CALLS: AtomicU32 = AtomicU32::new(1);
    if &message.body[..] == b"invoice 13" {
        return Handled::reject("unlucky", "nobody books that number");
    }
    if CALLS.fetch_add(1, Ordering::Relaxed).is_multiple_of(5) {
        return Handled::retry("the ledger is busy");
    }
    Handled::done()
}

/// Writes how every attempt ended.
struct Printer;

impl WorkerObserver for Printer {
    fn on_settled(&self, settled: &Settled<'_>) {
        let Settled { message, settlement, .. } = settled;
        eprintln!("{} attempt {}: {settlement:?}", message.id, message.attempt);
    }
}
