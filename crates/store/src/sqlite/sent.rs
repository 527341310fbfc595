//! What was sent to one endpoint: the messages with where each stands, and how many attempts.
//!
//! Messages are those of the application, each looked up by endpoint; attempts are those of the
//! endpoint's own list.
//! Never: a scan of a table; what is read is a range of a list and rows by their keys.

use domain::ids::{AppKey, EndpointKey, MessageKey};
use resilience::Timestamp;
use rusqlite::Connection;

use super::arrears::{ATTEMPTS, MESSAGES};
use super::deliveries::delivery;
use super::inbox::read_message;
use super::keys::{Whose, message_keys};
use super::readers::Readers;
use super::rows::{MESSAGE_LEAN, message, one, value};
use super::scan::{LOOK_PIECES, PIECE_ROWS, Seen, Span, each, pass, walk, wanted};
use crate::StoreError;
use crate::history::{AttemptCounts, Sent, SentFilter, payloads_fill};
use crate::page::{Direction, Looked, PageOf};

/// Messages of one piece: where a delivery stands is four reads.
const PIECE_SENT: usize = PIECE_ROWS / 4;
/// How an attempt ended.
pub(super) const STATUS: &str = "SELECT status BETWEEN 200 AND 299 FROM attempt WHERE key = ?1";

pub(super) fn messages_to(
    conn: &Connection,
    (app, endpoint): (AppKey, EndpointKey),
    filter: &SentFilter,
    page: &PageOf<u64>,
) -> Result<Looked<Sent, MessageKey>, StoreError> {
    let mut found: Vec<Sent> = Vec::new();
    if page.limit == 0 {
        return Ok(Looked::nothing());
    }
    let span = Span::of(page).within(filter.message.after, filter.message.before);
    let span = (span, page.direction);
    let reached = walk(conn, Some(&MESSAGES), span, LOOK_PIECES, |conn, part, span| {
        let keys = message_keys(conn, app, (part, span), (page.direction, PIECE_SENT))?;
        each(&keys, PIECE_SENT, |key| {
            found.extend(sent(conn, MessageKey(key.cast_unsigned()), endpoint, filter)?);
            let full = payloads_fill(found.iter().map(|sent| &sent.message));
            Ok(found.len() >= page.limit || full)
        })
    })?;
    Ok(Looked { rows: found, reached: reached.map(|key| MessageKey(key.cast_unsigned())) })
}

/// A message to this endpoint, if it is wanted.
fn sent(
    conn: &Connection,
    key: MessageKey,
    endpoint: EndpointKey,
    filter: &SentFilter,
) -> Result<Option<Sent>, StoreError> {
    let delivery = delivery(conn, key, endpoint)?.filter(|row| filter.takes(row));
    let Some(delivery) = delivery else { return Ok(None) };
    let sql = format!("SELECT {MESSAGE_LEAN} FROM message WHERE key = ?1");
    let mut statement = conn.prepare_cached(&sql)?;
    let lean = one(&mut statement.query([key.0.cast_signed()])?, |row| {
        if wanted(row, [4, 6], &filter.message)? { message(row).map(Some) } else { Ok(None) }
    })?;
    let found = match lean.flatten() {
        Some(lean) if filter.payloads => read_message(conn, lean.key)?,
        lean => lean,
    };
    Ok(found.map(|message| Sent { message, delivery }))
}

/// Counts piece by piece, each a read of its own, so that others are served between them.
pub(super) fn count_attempts(
    readers: &Readers,
    endpoint: EndpointKey,
    (from, until): (Timestamp, Option<Timestamp>),
) -> impl Future<Output = Result<AttemptCounts, StoreError>> + Send + '_ {
    let all = PageOf { beyond: None, direction: Direction::Ascending, limit: 1 };
    let mut span = Span::of(&all).within(Some(from), until);
    async move {
        let mut counts = AttemptCounts::default();
        loop {
            let (piece, last) = readers.read(move |conn| count_piece(conn, endpoint, span)).await?;
            counts.delivered += piece.delivered;
            counts.failed += piece.failed;
            match last {
                Some(last) => span.low = last.saturating_add(1),
                None => return Ok(counts),
            }
        }
    }
}

/// Counts the first attempts of a range; answers with the last key if there may be more.
fn count_piece(
    conn: &Connection,
    endpoint: EndpointKey,
    span: Span,
) -> Result<(AttemptCounts, Option<i64>), StoreError> {
    let mut counts = AttemptCounts::default();
    let seen = pass(conn, Some(&ATTEMPTS), (span, Direction::Ascending), |conn, part, span| {
        let order = (Direction::Ascending, PIECE_ROWS);
        let keys = Whose::Endpoint(endpoint).keys(conn, part, span, order)?;
        let mut status = conn.prepare_cached(STATUS)?;
        each(&keys, PIECE_ROWS, |key| {
            // One that was listed and has been pruned since is not there.
            if let Some(delivered) = value(&mut status.query([key])?)? {
                counts.add(delivered);
            }
            Ok(false)
        })
    })?;
    let last = match seen {
        Seen::All => None,
        Seen::Enough(last) | Seen::UpTo(last) => Some(last),
    };
    Ok((counts, last))
}
