//! A queue in Redis: a list of what is ready, sorted sets of what is scheduled, leased and dead, a
//! hash for each message.
//!
//! Every step is one script, by the server's clock, so that a message is always in exactly one
//! place. Scripts are sent again when the server has forgotten them. Needs Redis 5 or newer.
//! Never: a guarantee beyond the server's persistence: without `appendonly` a restart loses all
//! messages, with `appendfsync everysec` the last second, and a failover the last writes.

mod fields;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::{ConnectionLike, ConnectionManager};
use ::redis::{FromRedisValue, Script, ScriptInvocation};
use resilience::{ConfigError, Timestamp};
use tokio::time::{Instant, sleep};

use self::fields::{Fields, micros, of_history, of_new};
use crate::error::QueueError;
use crate::message::{DeadLetter, History, LeaseToken, Message, NewMessage};
use crate::queue::{Counts, Queue, QueueAdmin, Receive};

/// The source of a script, after what all of them share.
macro_rules! step {
    ($name:literal) => {
        Script::new(concat!(include_str!("redis/load.lua"), include_str!($name)))
    };
}

/// How often an idle queue is asked, unless told otherwise.
const POLL: Duration = Duration::from_millis(100);
/// Asked more often than that, an idle queue would keep its server busy.
const POLL_MIN: Duration = Duration::from_millis(1);

/// A queue in Redis. Consumers and producers share it by the same server, prefix and name.
#[derive(Clone)]
pub struct RedisQueue<C = ConnectionManager> {
    connection: C,
    prefix: String,
    name: String,
    poll: Duration,
    scripts: Arc<Scripts>,
}

struct Scripts {
    receive: Script,
    complete: Script,
    schedule: Script,
    bury: Script,
    extend: Script,
    enqueue: Script,
    counts: Script,
    letters: Script,
    replay: Script,
    discard: Script,
}

impl<C> RedisQueue<C> {
    /// The queue of this name, over a connection that reconnects by itself, such as a
    /// [`ConnectionManager`].
    pub fn new(connection: C, name: impl Into<String>) -> Self {
        let scripts = Scripts {
            receive: step!("redis/receive.lua"),
            complete: step!("redis/complete.lua"),
            schedule: step!("redis/schedule.lua"),
            bury: step!("redis/bury.lua"),
            extend: step!("redis/extend.lua"),
            enqueue: step!("redis/enqueue.lua"),
            counts: step!("redis/counts.lua"),
            letters: step!("redis/letters.lua"),
            replay: step!("redis/replay.lua"),
            discard: step!("redis/discard.lua"),
        };
        let (prefix, name) = ("queue".to_owned(), name.into());
        Self { connection, prefix, name, poll: POLL, scripts: Arc::new(scripts) }
    }

    /// What the names of its keys begin with; `queue` if never called.
    #[must_use]
    pub fn prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// How often the server is asked while there is no message, at least 1 ms; every 100 ms if
    /// never called. A message that was put in meanwhile waits for so long at most.
    pub fn poll_every(mut self, poll: Duration) -> Result<Self, ConfigError> {
        ConfigError::unless(poll >= POLL_MIN, "poll_every", "must be at least 1 ms")?;
        self.poll = poll;
        Ok(self)
    }

    /// A step on this queue. Its name stands in braces: in a cluster everything of one queue is on
    /// one node.
    fn on<'a>(&self, script: &'a Script) -> ScriptInvocation<'a> {
        let base = format!("{}:{{{}}}", self.prefix, self.name);
        let mut step = script.key(format!("{base}:ready"));
        for part in ["scheduled", "leased", "dead", "fence"] {
            step.key(format!("{base}:{part}"));
        }
        step.arg(format!("{base}:m:"));
        step
    }

    fn held<'a>(&self, script: &'a Script, token: &LeaseToken) -> ScriptInvocation<'a> {
        let mut step = self.on(script);
        step.arg(token.message()).arg(token.proof());
        step
    }
}

type Kept = Vec<(String, HashMap<String, Vec<u8>>)>;

impl<C: ConnectionLike + Clone + Send + Sync + 'static> RedisQueue<C> {
    async fn run<R: FromRedisValue>(&self, step: &ScriptInvocation<'_>) -> Result<R, QueueError> {
        step.invoke_async(&mut self.connection.clone()).await.map_err(QueueError::unavailable)
    }

    /// Runs a step that answers 0 when the token is stale.
    async fn settle(&self, step: &ScriptInvocation<'_>) -> Result<(), QueueError> {
        if self.run(step).await? { Ok(()) } else { Err(QueueError::Stale) }
    }

    /// Takes what is ready now; else says when there may be something.
    async fn take(&self, ask: Receive) -> Result<(Vec<Message>, Option<Duration>), QueueError> {
        let mut step = self.on(&self.scripts.receive);
        step.arg(micros(ask.lease)).arg(ask.max.max(1));
        let (now, wait, kept): (i64, i64, Kept) = self.run(&step).await?;
        let now = Timestamp::from_micros(now);
        let messages = kept.into_iter().filter_map(|(id, fields)| {
            // Left to its lease, and to whoever wrote it; the others need not suffer.
            let message = Fields(fields).message(id, now);
            message.inspect_err(|error| tracing::error!(%error, "a message is skipped")).ok()
        });
        Ok((messages.collect(), u64::try_from(wait).ok().map(Duration::from_micros)))
    }
}

impl<C> fmt::Debug for RedisQueue<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisQueue")
            .field("prefix", &self.prefix)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Queue for RedisQueue<C> {
    async fn receive(&self, ask: Receive) -> Result<Vec<Message>, QueueError> {
        let begun = Instant::now();
        loop {
            let (messages, next) = self.take(ask).await?;
            let left = ask.wait.saturating_sub(begun.elapsed());
            if !messages.is_empty() || left.is_zero() {
                return Ok(messages);
            }
            // At least a little, or a message that falls due would be asked for without a pause.
            let due = next.unwrap_or(self.poll).max(POLL_MIN);
            sleep(due.min(self.poll).min(left)).await;
        }
    }

    async fn complete(&self, token: &LeaseToken) -> Result<(), QueueError> {
        self.settle(&self.held(&self.scripts.complete, token)).await
    }

    async fn schedule_at(
        &self,
        token: &LeaseToken,
        due: Timestamp,
        attempt: u32,
        history: &History,
    ) -> Result<(), QueueError> {
        let (begun, last_wait, last_error) = of_history(history);
        let mut step = self.held(&self.scripts.schedule, token);
        step.arg(due.as_micros()).arg(attempt).arg(begun).arg(last_wait).arg(last_error);
        self.settle(&step).await
    }

    async fn dead_letter(
        &self,
        token: &LeaseToken,
        attempts: u32,
        reason: &str,
        description: &str,
    ) -> Result<(), QueueError> {
        let mut step = self.held(&self.scripts.bury, token);
        self.settle(step.arg(attempts).arg(reason).arg(description)).await
    }

    async fn extend(&self, token: &LeaseToken, lease: Duration) -> Result<(), QueueError> {
        let mut step = self.held(&self.scripts.extend, token);
        self.settle(step.arg(micros(lease))).await
    }
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> QueueAdmin for RedisQueue<C> {
    async fn enqueue(&self, message: NewMessage) -> Result<Option<String>, QueueError> {
        let mut step = self.on(&self.scripts.enqueue);
        step.arg(message.id.as_deref().unwrap_or_default()).arg(micros(message.delay));
        for (name, value) in of_new(&message) {
            step.arg(name).arg(value);
        }
        let id: String = self.run(&step).await?;
        Ok(Some(id).filter(|id| !id.is_empty()))
    }

    async fn counts(&self) -> Result<Counts, QueueError> {
        let (ready, scheduled, leased, dead) = self.run(&self.on(&self.scripts.counts)).await?;
        Ok(Counts { ready, scheduled, leased, dead })
    }

    async fn dead_letters(&self, skip: usize, max: usize) -> Result<Vec<DeadLetter>, QueueError> {
        let Some(last) = skip.saturating_add(max).checked_sub(1).filter(|_| max > 0) else {
            return Ok(Vec::new());
        };
        // Places are signed in Redis.
        let place = |place: usize| i64::try_from(place).unwrap_or(i64::MAX);
        let mut step = self.on(&self.scripts.letters);
        let kept: Kept = self.run(step.arg(place(skip)).arg(place(last))).await?;
        kept.into_iter().map(|(id, fields)| Fields(fields).dead_letter(id)).collect()
    }

    async fn replay(&self, id: &str) -> Result<bool, QueueError> {
        self.run(self.on(&self.scripts.replay).arg(id)).await
    }

    async fn discard(&self, id: &str) -> Result<bool, QueueError> {
        self.run(self.on(&self.scripts.discard).arg(id)).await
    }
}
