//! Keeping attempts: those of a batch at once, those whose number is taken one by one.
//!
//! Never: an attempt twice; the chance in its id tells whether it is there.

use std::collections::HashSet;

use domain::attempt::{Attempt, Outcome};
use domain::delivery::Pending;
use resilience::{Term, Timestamp};

use super::Drawn;
use crate::ledger::{Follow, Record};
use crate::postgres::conn::{all, exists};
use crate::postgres::deliveries::sends;
use crate::postgres::fault::Fault;
use crate::postgres::rows::{At, get, small, text};
use crate::postgres::tx::Tx;
use crate::stored::codes::Code as _;
use crate::stored::fault::corrupt;
use crate::stored::numbers::{micros, retry_after_code};

const INSERT: &str = "INSERT INTO attempt (key, message, endpoint, n, started_at, took, retry_after, next_due, random, manual,
         status, failure, cut, next_term, resent, text, body)
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::bigint[],
         $7::bigint[], $8::timestamptz[], $9::bytea[], $10::smallint[], $11::smallint[], $12::smallint[],
         $13::smallint[], $14::smallint[], $15::bool[], $16::text[], $17::bytea[])
     ON CONFLICT DO NOTHING RETURNING key";

/// An attempt to keep.
struct Kept<'r> {
    key: u64,
    row: &'r Pending,
    attempt: &'r Attempt,
    random: &'r [u8; 12],
    number: u32,
    next: Option<(Timestamp, Term)>,
}

impl<'r> Kept<'r> {
    fn of(record: &'r Record, attempt: &'r Attempt, key: u64) -> Self {
        let next = match &record.follow {
            Follow::Retry { due_at, term, .. } => Some((*due_at, *term)),
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
        let facts: Vec<Facts<'_>> = kept.iter().map(|kept| facts(kept.attempt)).collect();
        let keys: Vec<i64> = kept.iter().map(|kept| kept.key.cast_signed()).collect();
        let messages: Vec<i64> = kept.iter().map(|kept| kept.row.message.0.cast_signed()).collect();
        let endpoints: Vec<i64> = kept.iter().map(|kept| kept.row.endpoint.0).collect();
        let numbers: Vec<i64> = kept.iter().map(|kept| i64::from(kept.number)).collect();
        let started: Vec<At> = kept.iter().map(|kept| At(kept.attempt.started_at)).collect();
        let took: Vec<i64> = kept.iter().map(|kept| micros(kept.attempt.took)).collect();
        let hints: Vec<Option<i64>> =
            kept.iter().map(|kept| retry_after_code(kept.attempt.retry_after())).collect();
        let due: Vec<Option<At>> =
            kept.iter().map(|kept| kept.next.map(|(at, _)| At(at))).collect();
        let random: Vec<&[u8]> = kept.iter().map(|kept| &kept.random[..]).collect();
        let manual: Vec<i16> = kept.iter().map(|kept| small(kept.attempt.trigger.code())).collect();
        let status: Vec<i16> =
            kept.iter().map(|kept| small(i64::from(kept.attempt.status()))).collect();
        let failures: Vec<Option<i16>> = facts.iter().map(|facts| facts.failure).collect();
        let cuts: Vec<Option<i16>> = facts.iter().map(|facts| facts.cut).collect();
        let terms: Vec<Option<i16>> =
            kept.iter().map(|kept| kept.next.map(|(_, term)| small(term.code()))).collect();
        let resent: Vec<bool> = kept.iter().map(|kept| kept.attempt.resent).collect();
        let texts: Vec<_> = facts.iter().map(|facts| facts.text.map(text)).collect();
        let bodies: Vec<Option<&[u8]>> = facts.iter().map(|facts| facts.body).collect();
        let inserted = all(
            self.conn(),
            INSERT,
            &[
                &keys, &messages, &endpoints, &numbers, &started, &took, &hints, &due, &random,
                &manual, &status, &failures, &cuts, &terms, &resent, &texts, &bodies,
            ],
            |row| Ok(get::<i64>(row, 0)?.cast_unsigned()),
        )
        .await;
        let inserted: HashSet<u64> = inserted?.into_iter().collect();
        self.batch.rows += inserted.len();
        Ok(inserted)
    }
}

/// What an outcome puts into columns.
struct Facts<'a> {
    failure: Option<i16>,
    cut: Option<i16>,
    text: Option<&'a str>,
    body: Option<&'a [u8]>,
}

fn facts(attempt: &Attempt) -> Facts<'_> {
    match &attempt.outcome {
        Outcome::Answered(answer) => Facts {
            failure: None,
            cut: answer.cut.map(|cut| small(cut.code())),
            text: answer.redirect_origin.as_deref(),
            body: Some(&answer.body[..]),
        },
        Outcome::Failed(failure) => Facts {
            failure: Some(small(failure.kind.code())),
            cut: None,
            text: Some(&failure.text),
            body: None,
        },
    }
}
