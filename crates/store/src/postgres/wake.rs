//! What others serve or keep copies of is told to them in the transaction that writes it.
//!
//! A row goes to one node, or to whoever owns a partition when it is read, as the database has it:
//! what a node believes to own may have gone meanwhile. Reading deletes, under the lock of the
//! reader's own row, so that a node that was declared dead takes nothing away from its heir; there
//! is no cursor, and what is committed late is read late.
//! Never: hand a row over here that another node serves.

use domain::delivery::Pending;
use domain::ids::{AppKey, EndpointKey, MessageKey};
use domain::nodes::{Chore, Partition, Partitions};
use futures_util::future::try_join;
use resilience::Forced;
use tokio_postgres::Row;

use super::columns::{Columns, Script};
use super::conn::{Conn, all, run};
use super::fault::Fault;
use super::node::{CHANNEL, JOIN_LOCK, Me, NOTIFY};
use super::rows::{At, code_at, get, maybe_time, message_key, narrow_at, small};
use super::tx::Tx;
use crate::StoreError;
use crate::commits::{Commits, Elsewhere};
use crate::nodes::Order;
use crate::stored::codes::Code as _;
use crate::stored::fault::unreadable;

// What a row tells.
/// Pending rows of an endpoint.
const PENDING: i16 = 0;
/// A pending row is gone: message, due time, trigger, attempts that counted.
const WITHDRAWN: i16 = 1;
/// An application, or one endpoint of it, changed.
const CHANGED: i16 = 2;
/// Something else of which copies are kept changed.
const COPIES: i16 = 3;
/// Somebody decided about a lane: how, and for one kind a message.
const ORDERED: i16 = 4;
/// There is work for whoever does a chore.
const CHORE: i16 = 5;

const TELL_ALL: &str = "INSERT INTO wake (node, what, app, endpoint)
     SELECT node.id, w.what, w.app, w.endpoint
     FROM unnest($2::smallint[], $3::bigint[], $4::bigint[]) AS w (what, app, endpoint) CROSS JOIN node
     WHERE node.id <> $1";
const READ_OWN: &str = "WITH me AS (SELECT id FROM node WHERE id = $1 FOR KEY SHARE)
     DELETE FROM wake WHERE node = $1 AND EXISTS (SELECT 1 FROM me)
     RETURNING place, what, app, endpoint, message, at, code, count";
const READ_OWNED: &str = "WITH me AS (SELECT id FROM node WHERE id = $1 FOR KEY SHARE)
     DELETE FROM wake WHERE partition = ANY($2) AND EXISTS (SELECT 1 FROM me)
       AND EXISTS (SELECT 1 FROM partition WHERE partition.id = wake.partition AND owner = $1)
     RETURNING place, what, app, endpoint, message, at, code, count";

/// The end of a notification that is for all nodes.
const ALL: char = '*';

/// What a transaction has to tell, for one partition each.
#[derive(Default)]
pub(super) struct Told {
    partitions: Vec<i16>,
    what: Vec<i16>,
    endpoints: Vec<Option<i64>>,
    messages: Vec<Option<i64>>,
    at: Vec<Option<At>>,
    codes: Vec<Option<i16>>,
    counts: Vec<Option<i64>>,
    set: Partitions,
}

impl Told {
    /// Whether there is nothing to tell.
    pub(super) fn is_empty(&self) -> bool {
        self.what.is_empty()
    }

    /// What listeners are told.
    pub(super) fn notice(&self) -> String {
        notice(self.set, false)
    }

    /// The rows that tell it.
    pub(super) fn columns<'v>(&self) -> Columns<'v> {
        Columns::default()
            .each("partition", "smallint", self.partitions.clone())
            .each("what", "smallint", self.what.clone())
            .each("endpoint", "bigint", self.endpoints.clone())
            .each("message", "bigint", self.messages.clone())
            .each("at", "timestamptz", self.at.clone())
            .each("code", "smallint", self.codes.clone())
            .each("count", "bigint", self.counts.clone())
    }

    fn add(&mut self, partition: Partition, what: i16, endpoint: Option<EndpointKey>) {
        self.partitions.push(i16::try_from(partition.0).unwrap_or(0));
        self.what.push(what);
        self.endpoints.push(endpoint.map(|key| key.0));
        self.messages.push(None);
        self.at.push(None);
        self.codes.push(None);
        self.counts.push(None);
        self.set.insert(partition);
    }

    fn detail<T>(column: &mut [Option<T>], value: T) {
        if let Some(last) = column.last_mut() {
            *last = Some(value);
        }
    }

    fn withdrawn(&mut self, row: &Pending) {
        self.add(Partition::of(row.endpoint), WITHDRAWN, Some(row.endpoint));
        Self::detail(&mut self.messages, row.message.0.cast_signed());
        Self::detail(&mut self.at, At(row.due_at));
        Self::detail(&mut self.codes, small(row.trigger.code()));
        Self::detail(&mut self.counts, i64::from(row.budget_used));
    }

    fn ordered(&mut self, endpoint: EndpointKey, order: Order) {
        self.add(Partition::of(endpoint), ORDERED, Some(endpoint));
        let code = match order {
            Order::Forced(None) => 0,
            Order::Forced(Some(Forced::Open)) => 1,
            Order::Forced(Some(Forced::Closed)) => 2,
            Order::Suspended => 3,
            Order::LetOne(message) => {
                Self::detail(&mut self.messages, message.0.cast_signed());
                4
            }
        };
        Self::detail(&mut self.codes, code);
    }
}

impl Tx {
    /// Writes what others must know of the running batch, and keeps of it what is handed over here.
    pub(super) async fn tell_others(&mut self) -> Result<(), Fault> {
        let told = self.for_owners();
        let all = self.for_all();
        if !told.what.is_empty() {
            let mut script = Script::default();
            let sql = script.insert("wake", told.columns());
            run(self.conn(), &sql, &script.values()).await?;
        }
        if !all.is_empty() {
            let what: Vec<i16> = all.iter().map(|one| one.0).collect();
            let apps: Vec<Option<i64>> = all.iter().map(|one| one.1).collect();
            let endpoints: Vec<Option<i64>> = all.iter().map(|one| one.2).collect();
            let me = self.me().id.0;
            // Whoever joins waits for this transaction, or is seen by it.
            let lock = "SELECT pg_advisory_xact_lock_shared($1)";
            run(self.conn(), lock, &[&JOIN_LOCK]).await?;
            run(self.conn(), TELL_ALL, &[&me, &what, &apps, &endpoints]).await?;
        }
        if told.what.is_empty() && all.is_empty() {
            return Ok(());
        }
        let what = notice(told.set, !all.is_empty());
        run(self.conn(), NOTIFY, &[&CHANNEL, &what]).await.map(drop)
    }

    /// Takes out of the batch what other nodes serve.
    pub(super) fn for_owners(&mut self) -> Told {
        let (share, mut told) = (self.share(), Told::default());
        let mut endpoints: Vec<EndpointKey> = Vec::new();
        self.batch.fresh.retain(|fresh| {
            let own = share.owns(fresh.pending.endpoint);
            if !own {
                endpoints.push(fresh.pending.endpoint);
            }
            own
        });
        endpoints.sort_unstable();
        endpoints.dedup();
        for endpoint in endpoints {
            told.add(Partition::of(endpoint), PENDING, Some(endpoint));
        }
        self.batch.withdrawn.retain(|row| {
            let own = share.owns(row.endpoint);
            if !own {
                told.withdrawn(row);
            }
            own
        });
        for (endpoint, order) in std::mem::take(&mut self.batch.orders) {
            told.ordered(endpoint, order);
        }
        let mut chores = Vec::new();
        if self.batch.noted > 0 {
            chores.extend([Chore::Announce, Chore::Mail]);
        }
        if self.batch.started > 0 || self.batch.recovered > 0 {
            chores.push(Chore::Tasks);
        }
        for chore in chores.into_iter().filter(|chore| !share.does(*chore)) {
            told.add(chore.partition(), CHORE, None);
        }
        told
    }

    /// What every other node is told: what, application, endpoint.
    fn for_all(&self) -> Vec<(i16, Option<i64>, Option<i64>)> {
        let changed = self.batch.changed.iter();
        let mut all: Vec<_> = changed
            .map(|(app, endpoint)| (CHANGED, Some(app.0), endpoint.map(|key| key.0)))
            .collect();
        all.sort_unstable();
        all.dedup();
        all.extend((self.batch.copies > 0).then_some((COPIES, None, None)));
        all
    }
}

/// What listeners are told: partitions, and whether it is for everybody.
fn notice(partitions: Partitions, all: bool) -> String {
    let [a, b, c, d] = partitions.words();
    let end = if all { String::from(ALL) } else { String::new() };
    format!("{a:016x}{b:016x}{c:016x}{d:016x}{end}")
}

/// Whether a notification is for an owner of these.
pub(super) fn concerns(text: &str, owned: Partitions) -> bool {
    if text.ends_with(ALL) {
        return true;
    }
    let word = |place: usize| {
        let digits = text.get(place * 16..place * 16 + 16);
        digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(u64::MAX)
    };
    let told = Partitions::from_words([0, 1, 2, 3].map(word));
    told.without(owned) != told
}

/// One row, in the order in which they were written.
pub(super) struct Wake {
    place: i64,
    what: What,
}

enum What {
    Pending(EndpointKey),
    Withdrawn(Pending),
    Changed(AppKey, Option<EndpointKey>),
    Ordered(EndpointKey, Order),
    Copies,
    Chore,
}

/// Reads, and takes away, what there is for this node and for the owner of these partitions.
pub(super) async fn read(conn: &Conn, me: Me, owned: Partitions) -> Result<Vec<Wake>, Fault> {
    let owned: Vec<i16> =
        owned.iter().filter_map(|partition| i16::try_from(partition.0).ok()).collect();
    let (mut wakes, more) = try_join(
        all(conn, READ_OWN, &[&me.id.0], wake),
        all(conn, READ_OWNED, &[&me.id.0, &owned], wake),
    )
    .await?;
    wakes.extend(more);
    wakes.sort_by_key(|wake| wake.place);
    Ok(wakes)
}

fn wake(row: &Row) -> Result<Wake, StoreError> {
    let endpoint = || get::<Option<i64>>(row, 3)?.map(EndpointKey).ok_or_else(unreadable);
    let what = match get::<i16>(row, 1)? {
        PENDING => What::Pending(endpoint()?),
        WITHDRAWN => {
            let due_at = maybe_time(row, 5)?.ok_or_else(unreadable)?;
            What::Withdrawn(Pending {
                endpoint: endpoint()?,
                due_at,
                message: message_key(row, 4)?,
                age_from: due_at,
                sends: 0,
                budget_used: narrow_at(row, 7)?,
                last_delay: std::time::Duration::ZERO,
                trigger: code_at(row, 6)?,
            })
        }
        CHANGED => {
            let app = get::<Option<i64>>(row, 2)?.map(AppKey).ok_or_else(unreadable)?;
            What::Changed(app, get::<Option<i64>>(row, 3)?.map(EndpointKey))
        }
        ORDERED => What::Ordered(endpoint()?, order(get(row, 6)?, row)?),
        COPIES => What::Copies,
        CHORE => What::Chore,
        _ => return Err(unreadable()),
    };
    Ok(Wake { place: get(row, 0)?, what })
}

fn order(code: i16, row: &Row) -> Result<Order, StoreError> {
    Ok(match code {
        0 => Order::Forced(None),
        1 => Order::Forced(Some(Forced::Open)),
        2 => Order::Forced(Some(Forced::Closed)),
        3 => Order::Suspended,
        4 => Order::LetOne(MessageKey(get::<i64>(row, 4)?.cast_unsigned())),
        _ => return Err(unreadable()),
    })
}

/// Tells the engine of what was read.
pub(super) fn tell(commits: &dyn Commits, wakes: Vec<Wake>) {
    let (mut pending, mut withdrawn) = (Vec::new(), Vec::new());
    let (mut copies, mut chore) = (false, false);
    for Wake { what, .. } in wakes {
        match what {
            What::Pending(endpoint) => pending.push(endpoint),
            What::Withdrawn(row) => withdrawn.push(row),
            What::Changed(app, endpoint) => commits.directory_changed(app, endpoint),
            What::Ordered(endpoint, order) => {
                commits.elsewhere(Elsewhere::Ordered(endpoint, order));
            }
            What::Copies => copies = true,
            What::Chore => chore = true,
        }
    }
    if !pending.is_empty() {
        pending.sort_unstable();
        pending.dedup();
        commits.elsewhere(Elsewhere::Pending(pending));
    }
    if !withdrawn.is_empty() {
        commits.withdrawn(withdrawn);
    }
    if copies {
        commits.elsewhere(Elsewhere::Copies);
    }
    if chore {
        commits.elsewhere(Elsewhere::Chore);
    }
}
