//! What a store of idempotency records does, and what it may answer.
//!
//! A record is begun under a lease, kept alive by heartbeats, and completed with the response or
//! abandoned. Each begin gets a fencing number, larger than those before it for the same key, so
//! that whoever has lost its lease cannot touch what its successor does.
//!
//! Never: two holders of one key whose numbers are equal; a record changed by a stale number.

use std::future::Future;
use std::time::Duration;

use crate::error::StoreError;
use crate::key::ScopedKey;
use crate::settings::AfterCrash;
use crate::stored::StoredResponse;

/// A store of idempotency records.
///
/// All times run by the store's own clock. A lease or a `record_ttl` of more than 100 years is
/// taken as 100 years. Every method may be called again after a failure whose outcome is unknown.
pub trait IdempotencyStore: Send + Sync + 'static {
    /// Takes the key, or says why not. Of any number of concurrent callers one is
    /// [`Begin::Started`].
    fn begin(
        &self,
        request: &BeginRequest<'_>,
    ) -> impl Future<Output = Result<Begin, StoreError>> + Send;

    /// Prolongs the lease to `lease` from now, also if it has lapsed and nobody took over.
    fn heartbeat(
        &self,
        token: &LeaseToken,
        lease: Duration,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Records the response for `record_ttl` from now. If one is recorded under this token, it
    /// stays.
    fn complete(
        &self,
        token: &LeaseToken,
        response: &StoredResponse,
        record_ttl: Duration,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Gives the key back, as if it had never been taken. If a response is recorded under this
    /// token, it stays.
    fn abandon(&self, token: &LeaseToken) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Removes whatever is known of the key: an operator's answer to [`Begin::Indeterminate`].
    /// Returns whether there was anything.
    fn forget(&self, key: &ScopedKey) -> impl Future<Output = Result<bool, StoreError>> + Send;
}

/// Later than any record need last: what a store adds to its clock, which could not show every
/// time.
const SPAN_MAX: Duration = Duration::from_secs(100 * 366 * 86_400);

/// The span as stores take it.
pub(crate) fn bounded(span: Duration) -> Duration {
    span.min(SPAN_MAX)
}

/// A request to take a key.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BeginRequest<'a> {
    /// The key.
    pub key: &'a ScopedKey,
    /// What must be equal for a repeat to be one.
    pub fingerprint: &'a [u8; 32],
    /// How long the key is held without a heartbeat.
    pub lease: Duration,
    /// How long a record without a response is remembered after its lease.
    pub record_ttl: Duration,
    /// What a lapsed lease means.
    pub after_crash: AfterCrash,
}

impl<'a> BeginRequest<'a> {
    /// A request with a lease of 30 s, remembered for a day, that runs again after a crash.
    pub fn new(key: &'a ScopedKey, fingerprint: &'a [u8; 32]) -> Self {
        let (lease, record_ttl) = (Duration::from_secs(30), Duration::from_secs(86_400));
        Self { key, fingerprint, lease, record_ttl, after_crash: AfterCrash::Rerun }
    }

    /// With another lease.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// With another meaning of a lapsed lease.
    #[must_use]
    pub fn after_crash(self, after_crash: AfterCrash) -> Self {
        Self { after_crash, ..self }
    }
}

/// What a store says to a request for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Begin {
    /// The key is ours; the handler may run.
    Started(LeaseToken),
    /// It was handled before.
    Replay(StoredResponse),
    /// Somebody else holds it.
    InProgress {
        /// When their lease ends, if they do not prolong it.
        retry_in: Duration,
    },
    /// The key belongs to a different request.
    Mismatch,
    /// Whoever held it is gone, and whether it took effect is unknown. Only with
    /// [`AfterCrash::Indeterminate`].
    Indeterminate,
}

/// The right to complete a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseToken {
    key: ScopedKey,
    fence: i64,
}

impl LeaseToken {
    /// For stores.
    #[must_use]
    pub fn new(key: ScopedKey, fence: i64) -> Self {
        Self { key, fence }
    }

    /// The key that is held.
    #[must_use]
    pub fn key(&self) -> &ScopedKey {
        &self.key
    }

    /// The fencing number: larger than that of every holder of this key before. A resource that
    /// remembers the largest it saw can refuse the others.
    #[must_use]
    pub fn fence(&self) -> i64 {
        self.fence
    }
}
