//! Idempotency records in this process's memory, within bounds of number and size.
//!
//! A restart forgets them all and another process does not see them. When there is no room, the
//! finished record that would expire first makes some; what is in progress is never forgotten.
//! Never: more records or bytes than the bounds say.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use resilience::ConfigError;
use tokio::time::Instant;

use crate::error::StoreError;
use crate::key::ScopedKey;
use crate::settings::AfterCrash;
use crate::store::{Begin, BeginRequest, IdempotencyStore, LeaseToken, bounded};
use crate::stored::StoredResponse;

const RECORDS_MAX_DEFAULT: usize = 100_000;
const BYTES_MAX_DEFAULT: usize = 64 << 20;
/// Room for a record with a long key and a short response.
const BYTES_MAX_MIN: usize = 1_024;
/// Bytes counted for a record besides its texts.
const RECORD_BYTES: usize = 256;

/// Records in memory: for tests, and for one process whose repeats may be handled again after a
/// restart.
///
/// Its bounds are 100,000 records and 64 MiB, or those of [`bounded`](Self::bounded). When it is
/// full, the finished record that would expire first is forgotten, before its time: a repeat of
/// that request then runs the handler again. Requests in progress are never forgotten; if they fill
/// it, another request is refused ([`StoreError::Full`], by the layer as `on_store_error` says). A
/// response larger than all the room is given to its caller and not remembered. What has expired is
/// removed by the next request. So that no live record is lost, give it room for all requests of a
/// `record_ttl`: each takes 256 bytes, its key and scope twice, kept headers and body.
#[derive(Debug)]
pub struct MemoryIdempotencyStore {
    records_max: usize,
    bytes_max: usize,
    shelf: Mutex<Shelf>,
}

impl MemoryIdempotencyStore {
    /// A store for at most `records_max` records, at least 1, whose keys and responses take at most
    /// about `bytes_max` bytes, at least 1 KiB.
    ///
    /// ```
    /// use receiver::MemoryIdempotencyStore;
    ///
    /// let store = MemoryIdempotencyStore::bounded(10_000, 16 << 20)?;
    /// assert!(MemoryIdempotencyStore::bounded(0, 16 << 20).is_err());
    /// # Ok::<(), receiver::ConfigError>(())
    /// ```
    pub fn bounded(records_max: usize, bytes_max: usize) -> Result<Self, ConfigError> {
        ConfigError::unless(records_max > 0, "records_max", "must be at least 1")?;
        let room = bytes_max >= BYTES_MAX_MIN;
        ConfigError::unless(room, "bytes_max", "must be at least 1,024, which one record takes")?;
        Ok(Self::of(records_max, bytes_max))
    }

    fn of(records_max: usize, bytes_max: usize) -> Self {
        Self { records_max, bytes_max, shelf: Mutex::default() }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryIdempotencyStore {
    /// For 100,000 records and 64 MiB.
    fn default() -> Self {
        Self::of(RECORDS_MAX_DEFAULT, BYTES_MAX_DEFAULT)
    }
}

#[derive(Debug, Default)]
struct Shelf {
    records: HashMap<ScopedKey, Record>,
    /// Every record by the time at which it is forgotten.
    by_end: BTreeSet<(Instant, ScopedKey)>,
    bytes: usize,
    fence: i64,
}

#[derive(Debug)]
struct Record {
    fingerprint: [u8; 32],
    fence: i64,
    ends: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    Running { until: Instant },
    Done(StoredResponse),
}

impl Shelf {
    fn put(&mut self, key: ScopedKey, record: Record) {
        self.remove(&key);
        self.bytes += bytes(&key, &record);
        self.by_end.insert((record.ends, key.clone()));
        self.records.insert(key, record);
    }

    fn remove(&mut self, key: &ScopedKey) -> Option<Record> {
        let record = self.records.remove(key)?;
        self.bytes -= bytes(key, &record);
        self.by_end.remove(&(record.ends, key.clone()));
        Some(record)
    }

    /// The record, if the token still holds it.
    fn held(&self, token: &LeaseToken) -> Result<&Record, StoreError> {
        let record = self.records.get(token.key());
        record.filter(|record| record.fence == token.fence()).ok_or(StoreError::Stale)
    }

    fn forget_expired(&mut self, now: Instant) {
        while let Some((_, key)) = self.by_end.first().filter(|(ends, _)| *ends <= now) {
            let key = key.clone();
            self.remove(&key);
        }
    }

    /// Forgets the finished record that ends first. Returns whether there was one.
    fn forget_one(&mut self) -> bool {
        let done = |key: &ScopedKey| {
            matches!(self.records.get(key), Some(Record { state: State::Done(_), .. }))
        };
        let first = self.by_end.iter().map(|(_, key)| key).find(|key| done(key)).cloned();
        first.is_some_and(|key| self.remove(&key).is_some())
    }
}

fn later(at: Instant, span: Duration) -> Instant {
    at + bounded(span)
}

fn bytes(key: &ScopedKey, record: &Record) -> usize {
    let response = match &record.state {
        State::Running { .. } => 0,
        State::Done(response) => response.bytes(),
    };
    RECORD_BYTES + 2 * (key.scope.len() + key.key.len()) + response
}

impl IdempotencyStore for MemoryIdempotencyStore {
    async fn begin(&self, request: &BeginRequest<'_>) -> Result<Begin, StoreError> {
        let now = Instant::now();
        let mut shelf = self.shelf();
        shelf.forget_expired(now);
        if let Some(record) = shelf.records.get(request.key) {
            if record.fingerprint != *request.fingerprint {
                return Ok(Begin::Mismatch);
            }
            match &record.state {
                State::Done(response) => return Ok(Begin::Replay(response.clone())),
                State::Running { until } if *until > now => {
                    return Ok(Begin::InProgress { retry_in: *until - now });
                }
                State::Running { .. } if request.after_crash == AfterCrash::Indeterminate => {
                    return Ok(Begin::Indeterminate);
                }
                State::Running { .. } => {}
            }
        }
        while shelf.records.len() >= self.records_max || shelf.bytes >= self.bytes_max {
            if !shelf.forget_one() {
                return Err(StoreError::Full);
            }
        }
        shelf.fence += 1;
        let (fence, until) = (shelf.fence, later(now, request.lease));
        let (fingerprint, state) = (*request.fingerprint, State::Running { until });
        let record = Record { fingerprint, fence, ends: later(until, request.record_ttl), state };
        shelf.put(request.key.clone(), record);
        Ok(Begin::Started(LeaseToken::new(request.key.clone(), fence)))
    }

    async fn heartbeat(&self, token: &LeaseToken, lease: Duration) -> Result<(), StoreError> {
        let until = later(Instant::now(), lease);
        let mut shelf = self.shelf();
        let record = shelf.held(token)?;
        if let State::Running { .. } = record.state {
            let (fingerprint, ends) = (record.fingerprint, record.ends.max(until));
            let state = State::Running { until };
            let record = Record { fingerprint, fence: token.fence(), ends, state };
            shelf.put(token.key().clone(), record);
        }
        Ok(())
    }

    async fn complete(
        &self,
        token: &LeaseToken,
        response: &StoredResponse,
        record_ttl: Duration,
    ) -> Result<(), StoreError> {
        let ends = later(Instant::now(), record_ttl);
        let mut shelf = self.shelf();
        let record = shelf.held(token)?;
        if let State::Running { .. } = record.state {
            let (fingerprint, state) = (record.fingerprint, State::Done(response.clone()));
            let record = Record { fingerprint, fence: token.fence(), ends, state };
            shelf.put(token.key().clone(), record);
            // It may have been the last that fitted; others make room, or it goes itself.
            while shelf.bytes > self.bytes_max && shelf.forget_one() {}
        }
        Ok(())
    }

    async fn abandon(&self, token: &LeaseToken) -> Result<(), StoreError> {
        let mut shelf = self.shelf();
        if let State::Running { .. } = shelf.held(token)?.state {
            shelf.remove(token.key());
        }
        Ok(())
    }

    async fn forget(&self, key: &ScopedKey) -> Result<bool, StoreError> {
        Ok(self.shelf().remove(key).is_some())
    }
}
