//! Keys of lists: from the list itself as far as it is filled, from the table beyond.
//!
//! Never: a row; what is read by these keys is read elsewhere.

use domain::ids::{AppKey, EndpointKey, MessageKey};
use rusqlite::{Connection, params};

use super::arrears::{ATTEMPTS, MESSAGES, keys_of};
use super::queue::bound;
use super::rows::{all, order};
use super::scan::{Part, Span};
use crate::StoreError;
use crate::page::Direction;

/// Keys of messages of an application, from its list or from the table.
pub(super) fn message_keys(
    conn: &Connection,
    app: AppKey,
    (part, Span { low, high }): (Part, Span),
    (direction, limit): (Direction, usize),
) -> Result<Vec<i64>, StoreError> {
    if part == Part::Listed {
        return keys_of(conn, &MESSAGES, (app.0, low, high), direction, limit);
    }
    let sql = format!(
        "SELECT key FROM message WHERE app = ?1 AND key BETWEEN ?2 AND ?3 ORDER BY key {} LIMIT ?4",
        order(direction)
    );
    let values = [app.0, low, high, bound(limit)];
    all(&mut conn.prepare_cached(&sql)?.query(values)?, |row| Ok(row.get(0)?))
}

/// Whose attempts.
#[derive(Clone, Copy)]
pub(super) enum Whose {
    /// Of a message, to all endpoints or to one.
    Message(MessageKey, Option<EndpointKey>),
    Endpoint(EndpointKey),
}

impl Whose {
    /// The keys of their attempts.
    pub(super) fn keys(
        self,
        conn: &Connection,
        part: Part,
        Span { low, high }: Span,
        (direction, limit): (Direction, usize),
    ) -> Result<Vec<i64>, StoreError> {
        let (owner, endpoint, condition) = match (self, part) {
            (Self::Endpoint(endpoint), Part::Listed) => {
                let span = (endpoint.0, low, high);
                return keys_of(conn, &ATTEMPTS, span, direction, limit);
            }
            (Self::Endpoint(endpoint), Part::Tail) => {
                (endpoint.0, None, "NOT INDEXED WHERE endpoint = ?1 AND ?5 IS NULL")
            }
            (Self::Message(message, None), _) => {
                let condition = "INDEXED BY attempt_of WHERE message = ?1 AND ?5 IS NULL";
                (message.0.cast_signed(), None, condition)
            }
            (Self::Message(message, Some(endpoint)), _) => {
                let condition = "INDEXED BY attempt_of WHERE message = ?1 AND endpoint = ?5";
                (message.0.cast_signed(), Some(endpoint.0), condition)
            }
        };
        let sql = format!(
            "SELECT key FROM attempt {condition} AND key BETWEEN ?2 AND ?3
             ORDER BY key {} LIMIT ?4",
            order(direction)
        );
        let values = params![owner, low, high, bound(limit), endpoint];
        all(&mut conn.prepare_cached(&sql)?.query(values)?, |row| Ok(row.get(0)?))
    }
}
