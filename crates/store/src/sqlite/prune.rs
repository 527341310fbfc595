//! Retention, in SQLite: a reader picks what is due, the writer takes a piece of it away.
//!
//! What needs a payload or a message is found by indexes, but rows that were never moved only by a
//! look at each endpoint: that is the reader's part, and it stays true, since such rows never come
//! back. The writer looks again at the rest, in the transaction that deletes.
//! Never: hold up the writer for a search, or read a table from its beginning for each piece.

mod apply;
mod plan;

use std::sync::Arc;

use resilience::Timestamp;

use super::SqliteStore;
use crate::Reply;
use crate::prune::{Cursor, Prune, Pruned, Retention};

/// Everything that is read or deleted by a piece, lists and waiting rows aside.
#[cfg(test)]
pub(super) const STATEMENTS: [&str; 14] = [
    plan::ANSWERS,
    plan::PERIOD,
    plan::NAMED,
    plan::CLOSED,
    plan::MESSAGES,
    plan::NEEDED,
    plan::UNCOUNTED,
    apply::DELETE_ANSWER,
    apply::DISCARD,
    apply::CLEAR,
    apply::ATTEMPTS_OF,
    apply::DELETE_ATTEMPT,
    apply::DELETE_CLOSED,
    apply::DELETE_MESSAGE,
];

impl Prune for SqliteStore {
    fn prune(&self, now: Timestamp, keep: Retention, from: Cursor) -> Reply<'static, Pruned> {
        let shared = Arc::clone(&self.shared);
        let planned = self.readers.read({
            let shared = Arc::clone(&shared);
            move |conn| plan::plan(conn, &shared, (now, &keep), from)
        });
        Box::pin(async move {
            let plan = planned.await?;
            if plan.uncounted {
                // What goes is counted first.
                shared.door.change(|tx| tx.count_some()).await?;
                return Ok(Pruned { reached: from, more: true, ..Pruned::default() });
            }
            if plan.work.is_empty() {
                let Some(reached) = plan.reached else {
                    return Ok(Pruned { reached: from, ..Pruned::default() });
                };
                return Ok(Pruned { reached, more: true, ..Pruned::default() });
            }
            shared.door.change(move |tx| tx.prune(plan, from)).await
        })
    }
}
