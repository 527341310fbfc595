//! Queues, and what to ask of them.

use std::sync::Mutex;
use std::time::Duration;

use redis::Client;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use worker::{Message, Queue, QueueAdmin, Receive, RedisQueue, Settled, WorkerObserver};

use tokio::sync::mpsc;

/// Longer than anything takes here; only a test that fails waits for so long.
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) async fn connection(url: &str) -> ConnectionManager {
    let settings = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(Duration::from_secs(5)))
        .set_response_timeout(Some(Duration::from_secs(5)))
        .set_max_delay(ms(50));
    ConnectionManager::new_with_config(Client::open(url).unwrap(), settings).await.unwrap()
}

pub(crate) async fn in_redis(url: &str) -> RedisQueue {
    RedisQueue::new(connection(url).await, "test").poll_every(ms(10)).unwrap()
}

/// A message, waiting for it as long as need be.
pub(crate) async fn one(queue: &impl Queue, lease: Duration) -> Message {
    let ask = Receive { max: 1, wait: LONG, lease };
    queue.receive(ask).await.unwrap().pop().expect("a message comes")
}

/// What there is now.
pub(crate) async fn all(queue: &impl Queue, lease: Duration) -> Vec<Message> {
    queue.receive(Receive { max: 1_000, wait: Duration::ZERO, lease }).await.unwrap()
}

pub(crate) async fn put(queue: &impl QueueAdmin, id: &str) {
    let message = worker::NewMessage::new(id.to_owned()).id(id);
    assert_eq!(queue.enqueue(message).await.unwrap().as_deref(), Some(id));
}

/// Tells over a channel how each attempt ended: id, attempt, settlement.
pub(crate) struct Told(Mutex<mpsc::UnboundedSender<(String, u32, String)>>);

pub(crate) type Ends = mpsc::UnboundedReceiver<(String, u32, String)>;

pub(crate) fn told() -> (Told, Ends) {
    let (tell, ends) = mpsc::unbounded_channel();
    (Told(Mutex::new(tell)), ends)
}

impl WorkerObserver for Told {
    fn on_settled(&self, settled: &Settled<'_>) {
        let what = format!("{:?}", settled.settlement);
        let end = (settled.message.id.to_string(), settled.message.attempt, what);
        // The test may have heard enough.
        let _ = self.0.lock().unwrap().send(end);
    }
}
