//! Keys of lists: from the list itself as far as it is filled, from the table beyond.
//!
//! Never: a row; what is read by these keys is read elsewhere.

use domain::ids::{AppKey, EndpointKey, MessageKey};
use rusqlite::Connection;

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
    Message(MessageKey),
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
        let (owner, condition) = match (self, part) {
            (Self::Endpoint(endpoint), Part::Listed) => {
                let span = (endpoint.0, low, high);
                return keys_of(conn, &ATTEMPTS, span, direction, limit);
            }
            (Self::Endpoint(endpoint), Part::Tail) => (endpoint.0, "NOT INDEXED WHERE endpoint"),
            (Self::Message(message), _) => {
                (message.0.cast_signed(), "INDEXED BY attempt_of WHERE message")
            }
        };
        let sql = format!(
            "SELECT key FROM attempt {condition} = ?1 AND key BETWEEN ?2 AND ?3
             ORDER BY key {} LIMIT ?4",
            order(direction)
        );
        let values = [owner, low, high, bound(limit)];
        all(&mut conn.prepare_cached(&sql)?.query(values)?, |row| Ok(row.get(0)?))
    }
}
