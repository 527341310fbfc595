//! This node among others: its row, the lock on it, who owns which partition.
//!
//! A node's death is final. Whoever writes holds a lock on its own row until the end of the
//! transaction; whoever declares a node dead deletes the row, waits for that lock in doing so, and
//! from then on nothing of the dead node is written.
//! Never: decide who owns what or who is dead; `domain::nodes` does.

use domain::limits::{NODES_MAX, PARTITIONS};
use domain::nodes::{NodeId, Partition, Partitions};
use resilience::{FromOs, Timestamp};

use super::conn::{Conn, Params, all, exists, one, run, value};
use super::fault::{Fault, unavailable};
use super::rows::{At, get, time_at};
use crate::StoreError;
use crate::nodes::PeerAddress;

/// Joining, and telling all nodes, in turn: whoever is told of later sees who has joined.
pub(super) const JOIN_LOCK: i64 = 0x7065_796B_0000_0003;
/// The channel of notifications.
pub(super) const CHANNEL: &str = "peyk";
/// Who owns what, or who is there, has changed.
pub(super) const MOVED: &str = "moved";

const JOIN: &str = "INSERT INTO node (id, slot, works, is_asked, address, fingerprint, heartbeat)
     SELECT $1, free.slot, $2, $4, $5, $6, clock_timestamp() FROM generate_series(0, $3) AS free (slot)
     WHERE NOT EXISTS (SELECT 1 FROM node WHERE node.slot = free.slot) ORDER BY free.slot LIMIT 1 RETURNING slot";
const BEAT: &str = "UPDATE node SET heartbeat = clock_timestamp() WHERE id = $1";
const ALIVE: &str = "SELECT 1 FROM node WHERE id = $1 FOR KEY SHARE";
const TIME: &str = "SELECT clock_timestamp()";
const MEMBERS: &str =
    "SELECT id, works, is_asked, heartbeat, address, fingerprint FROM node ORDER BY id";
const OWNERS: &str = "SELECT owner FROM partition ORDER BY id";
const TAKE: &str = "WITH me AS (SELECT id FROM node WHERE id = $1 FOR KEY SHARE)
     UPDATE partition SET owner = $1
     WHERE partition.id = ANY($2) AND owner IS NULL AND EXISTS (SELECT 1 FROM me) RETURNING partition.id";
const BURY: &str = "DELETE FROM node WHERE id = $1 AND heartbeat = $2";
const GONE: &str = "DELETE FROM node WHERE id = $1";
const FREE: &str = "UPDATE partition SET owner = NULL
     WHERE owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM node WHERE node.id = partition.owner)";
const UNHEARD: &str = "DELETE FROM wake
     WHERE node IS NOT NULL AND NOT EXISTS (SELECT 1 FROM node WHERE node.id = wake.node)";
pub(super) const NOTIFY: &str = "SELECT pg_notify($1, $2)";
pub(super) const RELEASE: &str =
    "UPDATE partition SET owner = NULL WHERE owner = $1 AND id = ANY($2)";

/// Which node this process is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Me {
    pub(super) id: NodeId,
    /// Stands in the keys that it draws.
    pub(super) slot: u8,
}

/// A node as its row says.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: NodeId,
    pub(super) works: bool,
    /// It answers the API.
    pub(super) is_asked: bool,
    /// When it last said that it lives, by the database's clock, which may have been set since:
    /// good for nothing but to see whether it has said so again.
    pub(super) heartbeat: Timestamp,
    /// Where it takes posts from others.
    pub(super) address: Option<PeerAddress>,
}

/// What a node says of itself when it joins.
#[derive(Clone, Debug)]
pub(super) struct Joining {
    /// It serves endpoints.
    pub(super) works: bool,
    /// It answers the API.
    pub(super) is_asked: bool,
    /// Where it takes posts from others.
    pub(super) address: Option<PeerAddress>,
}

/// What was read of all nodes.
pub(super) struct Seen {
    pub(super) nodes: Vec<Row>,
    pub(super) owners: Vec<Option<NodeId>>,
}

impl Me {
    /// Joins as a new node. One that was started here before, whose process is known to have
    /// ended, goes at once.
    pub(super) async fn join(
        conn: &Conn,
        joining: &Joining,
        former: Option<NodeId>,
    ) -> Result<Self, Fault> {
        if let Some(former) = former {
            run(conn, GONE, &[&former.0]).await?;
            clear(conn).await?;
        }
        let mut random = [0; 8];
        FromOs::fill(&mut random).map_err(|_| unavailable("the system gives no random bytes"))?;
        let id = NodeId(i64::from_le_bytes(random));
        conn.batch_execute("BEGIN").await?;
        let joined = joined(conn, id, joining).await;
        let end = if joined.is_ok() { "COMMIT" } else { "ROLLBACK" };
        conn.batch_execute(end).await?;
        let slot = joined?.ok_or_else(|| {
            StoreError::Unavailable(format!("{NODES_MAX} nodes use the database: stop one"))
        })?;
        Ok(Self { id, slot: u8::try_from(slot).unwrap_or(0) })
    }

    /// Says that it lives; `false` when it was declared dead.
    pub(super) async fn beat(self, conn: &Conn) -> Result<bool, Fault> {
        Ok(run(conn, BEAT, &[&self.id.0]).await? == 1)
    }

    /// Locks its row for the running transaction; `false` when it was declared dead.
    pub(super) async fn lock(self, conn: &Conn) -> Result<bool, Fault> {
        exists(conn, ALIVE, &[&self.id.0]).await
    }

    /// Takes partitions that nobody owns; which of them it got.
    pub(super) async fn take(self, conn: &Conn, places: &[usize]) -> Result<Partitions, Fault> {
        let wanted: Vec<i16> = places.iter().filter_map(|it| i16::try_from(*it).ok()).collect();
        let read = |row: &tokio_postgres::Row| {
            Ok(Partition(u16::try_from(get::<i16>(row, 0)?).unwrap_or(0)))
        };
        let taken = all(conn, TAKE, &[&self.id.0, &wanted], read).await?;
        Ok(taken.into_iter().collect())
    }

    /// Leaves: what it owned is nobody's.
    pub(super) async fn leave(self, conn: &Conn) -> Result<(), Fault> {
        run(conn, GONE, &[&self.id.0]).await?;
        clear(conn).await
    }
}

async fn joined(
    conn: &Conn,
    id: NodeId,
    Joining { works, is_asked, address }: &Joining,
) -> Result<Option<i16>, Fault> {
    run(conn, "SELECT pg_advisory_xact_lock($1)", &[&JOIN_LOCK]).await?;
    let last = i32::try_from(NODES_MAX - 1).unwrap_or(i32::MAX);
    let at = address.as_ref().map(|address| address.at.as_str());
    let fingerprint = address.as_ref().map(|address| &address.fingerprint[..]);
    let values: Params<'_> = &[&id.0, works, &last, is_asked, &at, &fingerprint];
    let slot = value::<i16>(conn, JOIN, values).await?;
    notify(conn, MOVED).await?;
    Ok(slot)
}

/// All nodes and all owners.
pub(super) async fn look(conn: &Conn) -> Result<Seen, Fault> {
    let nodes = all(conn, MEMBERS, &[], |row| {
        Ok(Row {
            id: NodeId(get(row, 0)?),
            works: get(row, 1)?,
            is_asked: get(row, 2)?,
            heartbeat: time_at(row, 3)?,
            address: address(row)?,
        })
    })
    .await?;
    let owners = all(conn, OWNERS, &[], |row| Ok(get::<Option<i64>>(row, 0)?.map(NodeId))).await?;
    if owners.len() != PARTITIONS {
        return Err(unavailable("the database has another number of partitions").into());
    }
    Ok(Seen { nodes, owners })
}

fn address(row: &tokio_postgres::Row) -> Result<Option<PeerAddress>, StoreError> {
    let Some(at) = get::<Option<String>>(row, 4)? else { return Ok(None) };
    let fingerprint = get::<Option<Vec<u8>>>(row, 5)?.unwrap_or_default();
    // Another version may write something else there: then it cannot be reached.
    Ok(fingerprint.try_into().ok().map(|fingerprint| PeerAddress { at, fingerprint }))
}

/// The time of the database.
pub(super) async fn time(conn: &Conn) -> Result<Option<Timestamp>, Fault> {
    one(conn, TIME, &[], |row| time_at(row, 0)).await
}

/// Declares a node dead that has said nothing since; whether it is gone by this.
pub(super) async fn bury(conn: &Conn, node: &Row) -> Result<bool, Fault> {
    let buried = run(conn, BURY, &[&node.id.0, &At(node.heartbeat)]).await? == 1;
    if buried {
        clear(conn).await?;
    }
    Ok(buried)
}

/// What nodes had that are gone is nobody's; a statement of its own, since it must see that they
/// are.
pub(super) async fn clear(conn: &Conn) -> Result<(), Fault> {
    run(conn, FREE, &[]).await?;
    run(conn, UNHEARD, &[]).await?;
    notify(conn, MOVED).await
}

/// Tells whoever listens.
pub(super) async fn notify(conn: &Conn, what: &str) -> Result<(), Fault> {
    let values: Params<'_> = &[&CHANNEL, &what];
    run(conn, NOTIFY, values).await.map(drop)
}
