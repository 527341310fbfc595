//! The statements that run for every message, prepared once.
//!
//! Two for a message to one endpoint that is accepted, two when it is delivered.
//! Never: a statement that runs seldom; those are prepared when first used and cached.

use rusqlite::{Connection, Statement};

use crate::StoreError;

const INSERT_MESSAGE: &str =
    "INSERT INTO message (key, random, app, accepted_at, event_type, event_id, labels, content_type,
         retention_hours, edited_from, key_scope, key_body, payload)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT DO NOTHING";
const INSERT_PENDING: &str =
    "INSERT INTO pending (endpoint, due_at, message, manual, age_from, sends, budget_used, last_delay, moved)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING";
const DELETE_PENDING: &str = "DELETE FROM pending
     WHERE endpoint = ?1 AND due_at = ?2 AND message = ?3 AND manual = ?4 AND budget_used = ?5 AND age_from = ?6";
const INSERT_ATTEMPT: &str =
    "INSERT INTO attempt (key, random, message, endpoint, n, started_at, took, manual, resent, status, failure,
         retry_after, cut, next_due, next_term, text, body)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
     ON CONFLICT DO NOTHING";

/// The prepared statements.
pub(super) struct Hot<'c> {
    pub(super) begin: Statement<'c>,
    pub(super) commit: Statement<'c>,
    pub(super) insert_message: Statement<'c>,
    pub(super) insert_pending: Statement<'c>,
    pub(super) delete_pending: Statement<'c>,
    pub(super) insert_attempt: Statement<'c>,
}

impl<'c> Hot<'c> {
    pub(super) fn prepare(conn: &'c Connection) -> Result<Self, StoreError> {
        Ok(Self {
            begin: conn.prepare("BEGIN IMMEDIATE")?,
            commit: conn.prepare("COMMIT")?,
            insert_message: conn.prepare(INSERT_MESSAGE)?,
            insert_pending: conn.prepare(INSERT_PENDING)?,
            delete_pending: conn.prepare(DELETE_PENDING)?,
            insert_attempt: conn.prepare(INSERT_ATTEMPT)?,
        })
    }
}
