//! Queue consumers: a [`Worker`] takes messages from a [`Queue`], runs a handler, and settles each
//! message by what came of it: done, again later, or set aside as a dead letter.
//!
//! A retry is a message that the queue holds back, never a task that sleeps. A broker is adapted by
//! implementing [`Queue`]; [`MemoryQueue`] and, with the feature `redis`, `RedisQueue` are here.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use worker::resilience::RetryPolicy;
//! use worker::{MemoryQueue, Message, NewMessage, QueueAdmin, Worker};
//!
//! let queue = MemoryQueue::bounded(1_000)?;
//! queue.enqueue(NewMessage::new("invoice 17")).await?;
//! let (done, all_done) = tokio::sync::oneshot::channel::<()>();
//! let done = std::sync::Mutex::new(Some(done));
//!
//! let worker = Worker::builder(queue)
//!     .handler(move |message: Message| {
//!         let done = done.lock().ok().and_then(|mut done| done.take());
//!         async move {
//!             println!("attempt {} of {:?}", message.attempt, message.body);
//!             drop(done);
//!             Ok::<_, std::io::Error>(())
//!         }
//!     })
//!     .retry(RetryPolicy::full_jitter(Duration::from_secs(2)).max_calls(10).build()?)
//!     .concurrency(4)
//!     .shutdown(async { drop(all_done.await) })
//!     .build()?;
//! let summary = worker.run().await;
//! assert_eq!(summary.completed, 1);
//! # Ok(())
//! # }
//! ```
//!
//! Never: exactly once. A process can die between an effect and its record, so handlers must bear
//! to see a message twice.

mod builder;
mod dynamic;
mod error;
mod handled;
mod memory;
mod message;
mod observer;
mod queue;
#[cfg(feature = "redis")]
mod redis;
mod run;
mod verdict;

pub use resilience;

#[cfg(feature = "redis")]
pub use crate::redis::RedisQueue;
pub use builder::{Worker, WorkerBuilder};
pub use dynamic::DynQueue;
pub use error::{BoxError, QueueError};
pub use handled::Handled;
pub use memory::MemoryQueue;
pub use message::{DeadLetter, History, LeaseToken, Message, NewMessage};
pub use observer::{Settled, Settlement, WorkerObserver};
pub use queue::{Counts, Queue, QueueAdmin, Receive};
pub use resilience::ConfigError;
pub use run::Summary;
