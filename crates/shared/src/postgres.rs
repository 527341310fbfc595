//! Breakers in PostgreSQL, a row for each.
//!
//! Every step is one statement that calls a function of the schema, by the server's clock. Changes
//! are told under `peyk_breaker`; [`PgBreakerStore::listen`] hears of them. Statements are sent
//! without preparing them, so that poolers in transaction mode work.
//! Never: a row locked between two statements; a delete that nobody asked for.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use deadpool_postgres::{Client, Pool};
use resilience::Forced;
use resilience::shared::{
    Admit, BreakerStore, Changes, InstanceId, Report, SharedRules, StoreError, Transition, View,
    Watch,
};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{AsyncMessage, Config, Row, Socket};

use crate::words::{admit, forced_name, forced_of, micros, phase_of, transition, vote_name};

const ADMIT: &str = "SELECT what, generation, number FROM peyk_breaker_admit($1, $2, $3)";
const RELEASE: &str = "SELECT peyk_breaker_release($1, $2)";
const OPENED: &str = "SELECT moved, cause, generation FROM peyk_breaker_opened($1, $2, $3, $4, $5)";
const CALLS: &str = "SELECT moved, cause, generation FROM peyk_breaker_calls($1, $2, $3, $4, $5)";
const PROBE: &str = "SELECT moved, cause, generation FROM peyk_breaker_probe($1, $2, $3, $4, $5)";
const VIEW: &str =
    "SELECT phase, generation, forced, retry_in, failures, fresh FROM peyk_breaker_view($1)";
const FORCE: &str = "SELECT peyk_breaker_force($1, $2)";
const PRUNE: &str = "DELETE FROM peyk_breaker WHERE forced = '' AND used < peyk_breaker_now() - $1";

/// A longer key may be told of without its end.
const KEY_CHARS_TOLD: usize = 1_000;

type Params<'a> = [(&'a (dyn ToSql + Sync), Type)];

/// Breakers in the table `peyk_breaker`.
#[derive(Clone, Debug)]
pub struct PgBreakerStore {
    pool: Pool,
    changes: Changes,
}

impl PgBreakerStore {
    /// The table and the functions, for those who run their own migrations. May be run again.
    pub const SCHEMA: &str = include_str!("postgres/schema.sql");

    /// Over a pool of connections.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self { pool, changes: Changes::new() }
    }

    /// Creates what is missing of [`Self::SCHEMA`]. Any number of processes may do so at once.
    pub async fn create_schema(&self) -> Result<(), StoreError> {
        self.client().await?.batch_execute(Self::SCHEMA).await.map_err(StoreError::new)
    }

    /// Deletes breakers that nobody has asked about for `idle` and that are not forced, and returns
    /// how many. Nothing else removes them.
    pub async fn prune(&self, idle: Duration) -> Result<u64, StoreError> {
        let client = self.client().await?;
        client.execute_typed(PRUNE, &[(&micros(idle), Type::INT8)]).await.map_err(StoreError::new)
    }

    /// Hears of changes on a connection of its own, which must lead to the server itself and not to
    /// a pooler in transaction mode, and passes them on to the breakers of this store and of its
    /// clones. Returns when the connection ends: call it again after a while.
    ///
    /// ```no_run
    /// # async fn run(store: shared::PgBreakerStore) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use resilience::RetryPolicy;
    /// use tokio_postgres::{Config, NoTls};
    ///
    /// let server: Config = "host=127.0.0.1 user=app".parse()?;
    /// let again = RetryPolicy::full_jitter(Duration::from_millis(500))
    ///     .cap(Duration::from_secs(10))
    ///     .max_calls(u32::MAX)
    ///     .build()?;
    /// tokio::spawn(async move { again.run(|| store.listen(&server, NoTls)).await });
    /// # Ok(())
    /// # }
    /// ```
    pub async fn listen<T>(&self, server: &Config, tls: T) -> Result<Infallible, StoreError>
    where
        T: MakeTlsConnect<Socket>,
    {
        let (client, mut connection) = server.connect(tls).await.map_err(StoreError::new)?;
        let mut asking = Some(pin!(client.batch_execute("LISTEN peyk_breaker")));
        loop {
            // Both at once: the connection is what carries the statement.
            let message = poll_fn(|context| {
                if self.listens(&mut asking, context)? {
                    asking = None;
                }
                connection.poll_message(context).map(|message| match message {
                    Some(message) => message.map_err(StoreError::new),
                    None => Err(StoreError::new("the connection has ended")),
                })
            });
            if let AsyncMessage::Notification(told) = message.await? {
                self.pass_on(told.payload());
            }
        }
    }

    /// Whether the server has just now begun to tell; what changed before may have been missed.
    fn listens<F>(
        &self,
        asking: &mut Option<Pin<&mut F>>,
        context: &mut Context<'_>,
    ) -> Result<bool, StoreError>
    where
        F: Future<Output = Result<(), tokio_postgres::Error>>,
    {
        let Some(Poll::Ready(answer)) = asking.as_mut().map(|asking| asking.as_mut().poll(context))
        else {
            return Ok(false);
        };
        answer.map_err(StoreError::new)?;
        self.changes.tell_all();
        Ok(true)
    }

    /// `KEY GENERATION WHAT`, where a long key is cut off.
    fn pass_on(&self, told: &str) {
        match told.rsplitn(3, ' ').last() {
            Some(key) if key.chars().count() < KEY_CHARS_TOLD => self.changes.tell(key),
            _ => self.changes.tell_all(),
        }
    }

    async fn client(&self) -> Result<Client, StoreError> {
        self.pool.get().await.map_err(StoreError::new)
    }

    /// Runs a statement that gives one row.
    async fn row(&self, statement: &str, params: &Params<'_>) -> Result<Row, StoreError> {
        let rows = self.client().await?.query_typed(statement, params).await;
        let row = rows.map_err(StoreError::new)?.into_iter().next();
        row.ok_or_else(|| StoreError::new("no row"))
    }
}

impl BreakerStore for PgBreakerStore {
    async fn admit(
        &self,
        key: &str,
        rules: &SharedRules,
        me: &InstanceId,
    ) -> Result<Admit, StoreError> {
        let params: &Params<'_> =
            &[(&key, Type::TEXT), (&micros(rules.lease), Type::INT8), (&me.as_str(), Type::TEXT)];
        let row = self.row(ADMIT, params).await?;
        admit(get(&row, 0)?, unsigned(&row, 1)?, unsigned(&row, 2)?)
    }

    async fn release(&self, key: &str, me: &InstanceId) -> Result<bool, StoreError> {
        let params: &Params<'_> = &[(&key, Type::TEXT), (&me.as_str(), Type::TEXT)];
        get(&self.row(RELEASE, params).await?, 0)
    }

    async fn report(
        &self,
        key: &str,
        rules: &SharedRules,
        report: &Report,
    ) -> Result<Option<Transition>, StoreError> {
        let rules = [
            i64::from(rules.failures),
            micros(rules.open_for),
            micros(rules.open_for_max),
            i64::from(rules.close_after),
        ];
        let rules = rules.as_slice();
        let (Report::Calls { generation, .. }
        | Report::Probe { generation, .. }
        | Report::Opened { generation, .. }) = *report;
        let generation = signed(generation);
        let begun: [(&(dyn ToSql + Sync), Type); 3] =
            [(&key, Type::TEXT), (&rules, Type::INT8_ARRAY), (&generation, Type::INT8)];
        let [key, rules, generation] = begun;
        let row = match *report {
            Report::Calls { runs, .. } => {
                let counts = [runs.lead, runs.longest, runs.trail].map(i64::from);
                let counts = (&counts.as_slice() as _, Type::INT8_ARRAY);
                let succeeded = (&runs.succeeded as _, Type::BOOL);
                self.row(CALLS, &[key, rules, generation, counts, succeeded]).await?
            }
            Report::Probe { lease, vote, .. } => {
                let (lease, vote) = (signed(lease), vote_name(vote));
                let (lease, vote) = ((&lease as _, Type::INT8), (&vote as _, Type::TEXT));
                self.row(PROBE, &[key, rules, generation, lease, vote]).await?
            }
            Report::Opened { open_for, left, .. } => {
                let (open_for, left) = (micros(open_for), micros(left));
                let (open_for, left) = ((&open_for as _, Type::INT8), (&left as _, Type::INT8));
                self.row(OPENED, &[key, rules, generation, open_for, left]).await?
            }
        };
        let (moved, cause): (&str, &str) = (get(&row, 0)?, get(&row, 1)?);
        transition(moved, cause, unsigned(&row, 2)?)
    }

    async fn snapshot(&self, key: &str) -> Result<View, StoreError> {
        let row = self.row(VIEW, &[(&key, Type::TEXT)]).await?;
        Ok(View {
            phase: phase_of(get(&row, 0)?)?,
            generation: unsigned(&row, 1)?,
            forced: forced_of(get(&row, 2)?)?,
            retry_in: Duration::from_micros(unsigned(&row, 3)?),
            failures: u32::try_from(unsigned(&row, 4)?).unwrap_or(u32::MAX),
            fresh: get(&row, 5)?,
        })
    }

    async fn force(&self, key: &str, forced: Option<Forced>) -> Result<(), StoreError> {
        let params: &Params<'_> = &[(&key, Type::TEXT), (&forced_name(forced), Type::TEXT)];
        self.row(FORCE, params).await.map(drop)
    }

    fn watch(&self, key: &str) -> Watch {
        self.changes.watch(key)
    }
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, StoreError> {
    row.try_get(column).map_err(StoreError::new)
}

fn unsigned(row: &Row, column: usize) -> Result<u64, StoreError> {
    u64::try_from(get::<i64>(row, column)?).map_err(StoreError::new)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
