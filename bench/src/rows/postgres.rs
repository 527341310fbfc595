//! Rows of the past in PostgreSQL, by statements that make them there.
//!
//! Never: a round trip for a row.

use super::span::{KEY_EPOCH_S, PAYLOAD_BYTES, SENT_AFTER_US, Span};
use crate::fault::Result;
use crate::psql;

/// One span of messages with their attempts and, if they wait, pending rows.
const FILL: &str = include_str!("postgres_fill.sql");
/// What peyk and PostgreSQL would have done by and by: counted, vacuumed, written to disk.
const SETTLE: &str = include_str!("postgres_settle.sql");

/// Rows of one statement: each is a transaction.
const PIECE: u32 = 500_000;

pub(super) fn write(url: &str, spans: &[Span]) -> Result<()> {
    for span in spans {
        for first in (0..span.count).step_by(PIECE as usize) {
            let last = span.count.min(first + PIECE) - 1;
            let values = [
                ("first", first.to_string()),
                ("last", last.to_string()),
                ("first_us", span.first_us.to_string()),
                ("step_us", span.step_us.to_string()),
                ("epoch_s", KEY_EPOCH_S.to_string()),
                ("sent_after_us", SENT_AFTER_US.to_string()),
                ("payload_bytes", PAYLOAD_BYTES.to_string()),
                ("pending", span.pending.to_string()),
            ];
            psql::run(url, FILL, &values)?;
        }
    }
    psql::run(url, SETTLE, &[]).map(drop)
}
