//! Breakers in Redis, a hash for each.
//!
//! Every step is one script, by the server's clock. A breaker is gone a day after it was last told
//! of a call or looked at. Changes are published under `PREFIX:changes`;
//! [`RedisBreakerStore::listen`] hears of them. Needs Redis 5 or newer.
//! Never: a guarantee over a failover, which loses the last writes. What was open is written again
//! by the processes that know of it.

use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use ::redis::aio::{ConnectionLike, ConnectionManager};
use ::redis::{Client, FromRedisValue, Script, ScriptInvocation, Value, from_redis_value};
use futures_util::StreamExt as _;
use resilience::Forced;
use resilience::shared::{
    Admit, BreakerStore, Changes, InstanceId, Report, SharedRules, StoreError, Transition, View,
    Watch,
};

use crate::words::{admit, forced_name, forced_of, micros, phase_of, transition, vote_name};

const ADMIT: &str = concat!(
    include_str!("redis/closed.lua"),
    include_str!("redis/load.lua"),
    include_str!("redis/admit.lua")
);
const RELEASE: &str = concat!(include_str!("redis/load.lua"), include_str!("redis/release.lua"));
const REPORT: &str = concat!(include_str!("redis/load.lua"), include_str!("redis/report.lua"));
const SNAPSHOT: &str = concat!(include_str!("redis/load.lua"), include_str!("redis/snapshot.lua"));
const FORCE: &str = concat!(include_str!("redis/load.lua"), include_str!("redis/force.lua"));
const DAY: Duration = Duration::from_secs(86_400);

/// Breakers in Redis. Share them between processes by giving these the same server and prefix.
#[derive(Clone)]
pub struct RedisBreakerStore<C = ConnectionManager> {
    connection: C,
    prefix: String,
    admit: Script,
    release: Script,
    report: Script,
    snapshot: Script,
    force: Script,
    changes: Changes,
}

impl<C: ConnectionLike + Clone> RedisBreakerStore<C> {
    /// Over a connection that reconnects by itself, such as a [`ConnectionManager`].
    pub fn new(connection: C) -> Self {
        Self {
            connection,
            prefix: "breaker".to_owned(),
            admit: Script::new(ADMIT),
            release: Script::new(RELEASE),
            report: Script::new(REPORT),
            snapshot: Script::new(SNAPSHOT),
            force: Script::new(FORCE),
            changes: Changes::new(),
        }
    }

    /// What the names of its keys begin with; `breaker` if never called.
    #[must_use]
    pub fn prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// Hears of changes on a connection of its own and passes them on to the breakers of this store
    /// and of its clones. Returns when the connection ends: call it again after a while.
    ///
    /// ```no_run
    /// # async fn run(store: shared::RedisBreakerStore) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use resilience::RetryPolicy;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let again = RetryPolicy::full_jitter(Duration::from_millis(500))
    ///     .cap(Duration::from_secs(10))
    ///     .max_calls(u32::MAX)
    ///     .build()?;
    /// tokio::spawn(async move { again.run(|| store.listen(&client)).await });
    /// # Ok(())
    /// # }
    /// ```
    pub async fn listen(&self, client: &Client) -> Result<Infallible, StoreError> {
        let mut subscription = client.get_async_pubsub().await.map_err(StoreError::new)?;
        subscription.subscribe(self.channel()).await.map_err(StoreError::new)?;
        self.changes.tell_all();
        let mut messages = subscription.into_on_message();
        while let Some(message) = messages.next().await {
            let told: String = message.get_payload().map_err(StoreError::new)?;
            match self.key_in(&told) {
                Some(key) => self.changes.tell(key),
                None => self.changes.tell_all(),
            }
        }
        Err(StoreError::new("the subscription has ended"))
    }

    /// Where changes are published.
    fn channel(&self) -> String {
        format!("{}:changes", self.prefix)
    }

    /// The key of the breaker in `PREFIX:{KEY} GENERATION WHAT`.
    fn key_in<'a>(&self, told: &'a str) -> Option<&'a str> {
        let name = told.rsplitn(3, ' ').last()?;
        name.strip_prefix(&self.prefix)?.strip_prefix(":{")?.strip_suffix('}')
    }

    /// A script on the breaker of `key`, whose name holds it in braces: in a cluster everything of
    /// one breaker is on one node.
    fn on<'a>(&self, script: &'a Script, key: &str) -> ScriptInvocation<'a> {
        let mut step = script.key(format!("{}:{{{key}}}", self.prefix));
        step.arg(u64::try_from(DAY.as_millis()).unwrap_or(u64::MAX));
        step.arg(self.channel());
        step
    }

    async fn run<R: FromRedisValue>(&self, step: &ScriptInvocation<'_>) -> Result<R, StoreError> {
        step.invoke_async(&mut self.connection.clone()).await.map_err(StoreError::new)
    }
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> BreakerStore for RedisBreakerStore<C> {
    async fn admit(
        &self,
        key: &str,
        rules: &SharedRules,
        me: &InstanceId,
    ) -> Result<Admit, StoreError> {
        let mut step = self.on(&self.admit, key);
        step.arg(micros(rules.lease)).arg(me.as_str());
        let told: Value = self.run(&step).await?;
        if let Value::Int(generation) = told {
            return admit("closed", generation.try_into().map_err(StoreError::new)?, 0);
        }
        let (what, generation, number): (String, u64, u64) =
            from_redis_value(told).map_err(StoreError::new)?;
        admit(&what, generation, number)
    }

    async fn release(&self, key: &str, me: &InstanceId) -> Result<bool, StoreError> {
        let mut step = self.on(&self.release, key);
        step.arg(me.as_str());
        self.run(&step).await
    }

    async fn report(
        &self,
        key: &str,
        rules: &SharedRules,
        report: &Report,
    ) -> Result<Option<Transition>, StoreError> {
        let mut step = self.on(&self.report, key);
        step.arg(rules.failures).arg(micros(rules.open_for)).arg(micros(rules.open_for_max));
        step.arg(rules.close_after);
        match report {
            Report::Calls { generation, runs } => {
                step.arg(*generation).arg("calls");
                step.arg(runs.lead).arg(runs.longest).arg(runs.trail);
                step.arg(u8::from(runs.succeeded));
            }
            Report::Probe { generation, lease, vote } => {
                step.arg(*generation).arg("probe").arg(*lease).arg(vote_name(*vote));
            }
            Report::Opened { generation, open_for, left } => {
                step.arg(*generation).arg("opened").arg(micros(*open_for)).arg(micros(*left));
            }
        }
        let (to, cause, generation): (String, String, u64) = self.run(&step).await?;
        transition(&to, &cause, generation)
    }

    async fn snapshot(&self, key: &str) -> Result<View, StoreError> {
        let step = self.on(&self.snapshot, key);
        let told: (String, u64, String, u64, u32, bool) = self.run(&step).await?;
        let (phase, generation, forced, left, failures, fresh) = told;
        let (phase, forced) = (phase_of(&phase)?, forced_of(&forced)?);
        let retry_in = Duration::from_micros(left);
        Ok(View { phase, generation, forced, retry_in, failures, fresh })
    }

    async fn force(&self, key: &str, forced: Option<Forced>) -> Result<(), StoreError> {
        let mut step = self.on(&self.force, key);
        step.arg(forced_name(forced));
        self.run(&step).await
    }

    fn watch(&self, key: &str) -> Watch {
        self.changes.watch(key)
    }
}

impl<C> fmt::Debug for RedisBreakerStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBreakerStore").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}
