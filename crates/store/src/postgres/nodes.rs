//! Nodes, in PostgreSQL: what this one owns, and what it tells another about a lane.
//!
//! Never: give a partition away before what was recorded of it is committed.

use std::sync::Arc;

use domain::ids::EndpointKey;
use domain::nodes::Partitions;

use super::PostgresStore;
use super::conn::{Conn, all, run};
use super::node::{MOVED, RELEASE, notify};
use super::rows::{LANE, lane};
use crate::Reply;
use crate::ledger::LaneState;
use crate::nodes::{Among, Edit, Nodes, Order, Share};

/// Whoever reads a row of the directory and writes it changed.
const EDIT_LOCK: i64 = 0x7065_796B_0000_0004;

impl Nodes for PostgresStore {
    fn share(&self) -> Arc<Share> {
        Arc::clone(&self.shared.share)
    }

    fn among(&self) -> Option<Among> {
        Some(Among { me: self.shared.me.id, peers: self.shared.peers.subscribe() })
    }

    fn lane_states_of(&self, endpoints: Vec<EndpointKey>) -> Reply<'_, Vec<LaneState>> {
        self.read(move |conn| async move {
            let keys: Vec<i64> = endpoints.iter().map(|key| key.0).collect();
            let sql = format!("SELECT {LANE} FROM lane_state WHERE endpoint = ANY($1)");
            all(&conn, &sql, &[&keys], lane).await
        })
    }

    fn release(&self, partitions: Partitions) -> Reply<'static, ()> {
        // One writer writes in order: what was recorded before is committed before.
        self.shared.door.change(move |tx| {
            Box::pin(async move {
                let all: Vec<i16> =
                    partitions.iter().filter_map(|it| i16::try_from(it.0).ok()).collect();
                let me = tx.me().id.0;
                tx.write(RELEASE, &[&me, &all]).await?;
                notify(tx.conn(), MOVED).await
            })
        })
    }

    fn order(&self, endpoint: EndpointKey, order: Order) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| {
            Box::pin(async move {
                tx.batch.orders.push((endpoint, order));
                Ok(())
            })
        })
    }

    fn edit(&self) -> Reply<'_, Edit> {
        self.read(|conn| async move {
            // In a transaction, which the server ends if nothing is said in it for long.
            conn.batch_execute("BEGIN").await?;
            let held = Held(Some(conn));
            if let Some(conn) = &held.0 {
                run(conn, "SELECT pg_advisory_xact_lock($1)", &[&EDIT_LOCK]).await?;
            }
            Ok(Box::new(held) as Edit)
        })
    }
}

/// A connection with the lock of an edit.
struct Held(Option<Conn>);

impl Drop for Held {
    fn drop(&mut self) {
        let Some(conn) = self.0.take() else { return };
        tokio::spawn(async move {
            if conn.batch_execute("ROLLBACK").await.is_err() {
                conn.end();
            }
        });
    }
}
