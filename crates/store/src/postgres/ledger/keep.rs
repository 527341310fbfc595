//! Keeping attempts: those of a batch at once, those whose number is taken one by one.
//!
//! Never: an attempt twice; the chance in its id tells whether it is there.

use std::collections::HashSet;

use domain::attempt::{Attempt, Outcome};
use domain::delivery::Pending;
use resilience::{Term, Timestamp};
use tokio_postgres::Row;

use super::Drawn;
use crate::ledger::{Follow, Record};
use crate::postgres::columns::{Columns, Script};
use crate::postgres::conn::{all, exists};
use crate::postgres::deliveries::sends;
use crate::postgres::fault::Fault;
use crate::postgres::rows::{At, get, small, text};
use crate::postgres::tx::Tx;
use crate::stored::codes::Code as _;
use crate::stored::fault::corrupt;
use crate::stored::numbers::{micros, retry_after_code};

/// An attempt to keep.
pub(in crate::postgres) struct Kept<'r> {
    key: u64,
    row: &'r Pending,
    attempt: &'r Attempt,
    random: &'r [u8; 12],
    number: u32,
    next: Option<(Timestamp, Term)>,
}

impl<'r> Kept<'r> {
    pub(in crate::postgres) fn of(record: &'r Record, attempt: &'r Attempt, key: u64) -> Self {
        let next = match &record.follow {
            Follow::Retry { tried_at, term, .. } => Some((*tried_at, *term)),
            _ => None,
        };
        let (row, random, number) = (&record.pending, &record.random, attempt.number);
        Self { key, row, attempt, random, number, next }
    }
}

impl Tx {
    /// Keeps the attempts of results that count; how many sends of each delivery there were.
    pub(super) async fn keep_all(
        &mut self,
        records: &[(&Record, Drawn)],
    ) -> Result<Vec<u32>, Fault> {
        let mut attempts = Vec::new();
        for (record, drawn) in records {
            if let Some(attempt) = &record.attempt {
                attempts.push(Kept::of(record, attempt, drawn.attempt));
            }
        }
        let inserted = self.insert_attempts(&attempts).await?;
        let mut attempts = attempts.into_iter();
        let mut counted = Vec::with_capacity(records.len());
        for (record, _) in records {
            let kept = record.attempt.as_ref().and_then(|_| attempts.next());
            let number = match kept {
                None => 0,
                Some(kept) if inserted.contains(&kept.key) => kept.number,
                Some(kept) => self.keep_elsewhere(kept).await?.0,
            };
            counted.push(number.max(record.pending.sends));
        }
        Ok(counted)
    }

    /// Keeps the attempt of a result whose row is gone; a 2xx still makes the delivery delivered.
    pub(super) async fn keep_late(&mut self, record: &Record, drawn: Drawn) -> Result<(), Fault> {
        let Some(attempt) = &record.attempt else { return Ok(()) };
        let message = record.pending.message.0.cast_signed();
        if !exists(self.conn(), "SELECT 1 FROM message WHERE key = $1", &[&message]).await? {
            return Ok(());
        }
        let mut kept = Kept::of(record, attempt, drawn.attempt);
        kept.next = None;
        let is_new = match self.insert_attempts(std::slice::from_ref(&kept)).await?.is_empty() {
            false => true,
            true => self.keep_elsewhere(kept).await?.1,
        };
        if is_new && (200..300).contains(&attempt.status()) {
            self.settle(record.pending.message, record.pending.endpoint).await?;
        }
        Ok(())
    }

    /// A number taken by another send of the delivery gives way to the next free one; the number,
    /// and whether the attempt is new.
    async fn keep_elsewhere(&mut self, mut kept: Kept<'_>) -> Result<(u32, bool), Fault> {
        let (message, endpoint) = (kept.row.message, kept.row.endpoint);
        let ids = (message.0.cast_signed(), endpoint.0);
        let sql = "SELECT n FROM attempt WHERE message = $1 AND endpoint = $2 AND random = $3";
        loop {
            if exists(self.conn(), sql, &[&ids.0, &ids.1, &&kept.random[..]]).await? {
                return Ok((kept.number, false));
            }
            let last = sends(self.conn(), message, endpoint).await?;
            kept.number =
                last.checked_add(1).ok_or_else(|| corrupt("a delivery has too many attempts"))?;
            if !self.insert_attempts(std::slice::from_ref(&kept)).await?.is_empty() {
                return Ok((kept.number, true));
            }
        }
    }

    /// Inserts attempts; the keys of those whose number was free.
    async fn insert_attempts(&mut self, kept: &[Kept<'_>]) -> Result<HashSet<u64>, Fault> {
        if kept.is_empty() {
            return Ok(HashSet::new());
        }
        let mut script = Script::default();
        let sql = script.insert("attempt", optional_columns(columns(kept), kept));
        let sql = format!("{sql} ON CONFLICT DO NOTHING RETURNING key");
        let read = |row: &Row| Ok(get::<i64>(row, 0)?.cast_unsigned());
        let inserted = all(self.conn(), &sql, &script.values(), read).await;
        let inserted: HashSet<u64> = inserted?.into_iter().collect();
        self.batch.rows += inserted.len();
        Ok(inserted)
    }
}

/// What every attempt has.
pub(in crate::postgres) fn columns<'r>(kept: &[Kept<'r>]) -> Columns<'r> {
    let rows = || kept.iter().map(|kept| kept.row);
    let attempts = || kept.iter().map(|kept| kept.attempt);
    let status = |attempt: &Attempt| small(i64::from(attempt.status()));
    Columns::default()
        .each("key", "bigint", kept.iter().map(|kept| kept.key.cast_signed()).collect())
        .each("message", "bigint", rows().map(|row| row.message.0.cast_signed()).collect())
        .each("endpoint", "bigint", rows().map(|row| row.endpoint.0).collect())
        .each("n", "bigint", kept.iter().map(|kept| i64::from(kept.number)).collect())
        .each("started_at", "timestamptz", attempts().map(|it| At(it.started_at)).collect())
        .each("took", "bigint", attempts().map(|attempt| micros(attempt.took)).collect())
        .each("random", "bytea", kept.iter().map(|kept| &kept.random[..]).collect())
        .each("manual", "smallint", attempts().map(|it| small(it.trigger.code())).collect())
        .each("status", "smallint", attempts().map(status).collect())
        .each("resent", "bool", attempts().map(|attempt| attempt.resent).collect())
        .each("body", "bytea", attempts().map(body).collect())
}

/// What only some attempts have, besides.
pub(in crate::postgres) fn optional_columns<'r>(
    columns: Columns<'r>,
    kept: &[Kept<'r>],
) -> Columns<'r> {
    let facts: Vec<Facts<'r>> = kept.iter().map(Facts::of).collect();
    let due = facts.iter().map(|facts| facts.next.map(|(at, _)| At(at))).collect();
    let terms = facts.iter().map(|facts| facts.next.map(|(_, term)| small(term.code()))).collect();
    columns
        .each("retry_after", "bigint", facts.iter().map(|facts| facts.retry_after).collect())
        .each::<Option<At>>("next_due", "timestamptz", due)
        .each("failure", "smallint", facts.iter().map(|facts| facts.failure).collect())
        .each("cut", "smallint", facts.iter().map(|facts| facts.cut).collect())
        .each::<Option<i16>>("next_term", "smallint", terms)
        .each("text", "text", facts.iter().map(|facts| facts.text.map(text)).collect())
}

/// Whether an attempt has any of [`optional_columns`].
pub(in crate::postgres) fn has_more(kept: &Kept<'_>) -> bool {
    Facts::of(kept) != Facts::default()
}

/// What an outcome, and what follows, put into columns.
#[derive(Default, PartialEq)]
struct Facts<'a> {
    retry_after: Option<i64>,
    next: Option<(Timestamp, Term)>,
    failure: Option<i16>,
    cut: Option<i16>,
    text: Option<&'a str>,
}

impl<'a> Facts<'a> {
    fn of(kept: &Kept<'a>) -> Self {
        let retry_after = retry_after_code(kept.attempt.retry_after());
        let (failure, cut, text) = match &kept.attempt.outcome {
            Outcome::Answered(answer) => {
                let cut = answer.cut.map(|cut| small(cut.code()));
                (None, cut, answer.redirect_origin.as_deref())
            }
            Outcome::Failed(failure) => {
                (Some(small(failure.kind.code())), None, Some(&*failure.text))
            }
        };
        Self { retry_after, next: kept.next, failure, cut, text }
    }
}

fn body(attempt: &Attempt) -> Option<&[u8]> {
    match &attempt.outcome {
        Outcome::Answered(answer) => Some(&answer.body[..]),
        Outcome::Failed(_) => None,
    }
}
