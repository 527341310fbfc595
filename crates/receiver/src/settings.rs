//! The settings of the idempotency layer, their defaults, and what must hold between them.
//!
//! Never: a combination under which a healthy holder could lose its lease.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use http::header;
use http::request::Parts;
use http::{HeaderName, Method, StatusCode};
use resilience::ConfigError;

use crate::fingerprint::Fingerprint;
use crate::key::KeySource;

/// What to do without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Refuse the request: 400.
    Reject400,
    /// Let it through, unprotected.
    Pass,
}

/// What a repeat is told while the first request is being handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InProgress {
    /// 409, and when to come back.
    Conflict409 {
        /// The value of `retry-after`, rounded up to seconds.
        retry_after: Duration,
    },
    /// 503, and when to come back. For webhooks: most senders give a message up at a 4xx.
    Retry503 {
        /// The value of `retry-after`, rounded up to seconds.
        retry_after: Duration,
    },
    /// Nothing for as long: it waits for the first to end, then gets its response, else 409.
    Wait {
        /// How long it waits.
        at_most: Duration,
    },
}

impl InProgress {
    /// Waits for at most `at_most`.
    pub const fn wait(at_most: Duration) -> Self {
        Self::Wait { at_most }
    }

    /// Status and `retry-after` of the refusal.
    pub(crate) fn refusal(self) -> (StatusCode, Duration) {
        match self {
            Self::Conflict409 { retry_after } => (StatusCode::CONFLICT, retry_after),
            Self::Retry503 { retry_after } => (StatusCode::SERVICE_UNAVAILABLE, retry_after),
            Self::Wait { .. } => (StatusCode::CONFLICT, Duration::from_secs(1)),
        }
    }
}

/// What a lease means that ended without a response: the process died, or was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCrash {
    /// The next repeat runs the handler again. For handlers that may run twice.
    Rerun,
    /// Nobody knows whether it took effect: 409 until somebody looks and calls `forget`.
    Indeterminate,
}

/// What to do when the store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFailure {
    /// Refuse: 503. Nothing is handled that could not be told from a repeat.
    Closed503,
    /// Handle the request, unprotected.
    Open,
}

/// A day is more than any caller waits; stores count in microseconds.
const SPAN_MAX: Duration = Duration::from_secs(10 * 366 * 86_400);
/// Timers go by milliseconds, and a lease must have room for heartbeats.
const LEASE_MIN: Duration = Duration::from_millis(10);

/// Headers about one connection and the form of one message: on a replay they would be wrong.
const OF_MESSAGES: [HeaderName; 5] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TRAILER,
];

/// Which options were set, of those that may contradict each other.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a set of four options")]
pub(crate) struct OptionsSet {
    pub(crate) lease: bool,
    pub(crate) heartbeat: bool,
    pub(crate) record_ttl: bool,
    pub(crate) store_timeout: bool,
}

type Scope = dyn Fn(&Parts) -> String + Send + Sync;
type StoreIf = dyn Fn(StatusCode) -> bool + Send + Sync;

/// All settings, checked.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) key: KeySource,
    pub(crate) methods: Vec<Method>,
    pub(crate) scope: Arc<Scope>,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) missing: Missing,
    pub(crate) in_progress: InProgress,
    pub(crate) lease: Duration,
    pub(crate) heartbeat: Duration,
    pub(crate) record_ttl: Duration,
    pub(crate) store_if: Arc<StoreIf>,
    pub(crate) after_crash: AfterCrash,
    pub(crate) body_bytes_max: usize,
    pub(crate) response_bytes_max: usize,
    pub(crate) kept: Arc<[HeaderName]>,
    pub(crate) replay_header: HeaderName,
    pub(crate) store_failure: StoreFailure,
    pub(crate) store_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            key: KeySource::header("idempotency-key"),
            methods: vec![Method::POST, Method::PATCH],
            scope: Arc::new(|_| String::new()),
            fingerprint: Fingerprint::default(),
            missing: Missing::Reject400,
            in_progress: InProgress::Conflict409 { retry_after: Duration::from_secs(1) },
            lease: Duration::from_secs(30),
            heartbeat: Duration::from_secs(10),
            record_ttl: Duration::from_secs(86_400),
            store_if: Arc::new(is_final),
            after_crash: AfterCrash::Rerun,
            body_bytes_max: 256 << 10,
            response_bytes_max: 256 << 10,
            kept: Arc::new([
                header::CONTENT_TYPE,
                header::CONTENT_ENCODING,
                header::CONTENT_LANGUAGE,
                header::ETAG,
                header::LAST_MODIFIED,
                header::LINK,
                header::LOCATION,
            ]),
            replay_header: HeaderName::from_static("idempotency-replayed"),
            store_failure: StoreFailure::Closed503,
            store_timeout: Duration::from_secs(2),
        }
    }
}

impl Settings {
    /// For webhooks: by message id, remembered for longer than senders try, with a refusal that
    /// they take for "later", and for every body that a verifier accepts by default.
    pub(crate) fn webhook_id() -> Self {
        Self {
            key: KeySource::webhook_id(),
            record_ttl: Duration::from_secs(7 * 86_400),
            in_progress: InProgress::Retry503 { retry_after: Duration::from_secs(1) },
            body_bytes_max: webhook::BODY_BYTES_MAX_DEFAULT,
            ..Self::default()
        }
    }

    /// Whether a response of this status is recorded. A predicate that panics has said nothing;
    /// then the rule counts that holds where there is none.
    pub(crate) fn records(&self, status: StatusCode) -> bool {
        let told = catch_unwind(AssertUnwindSafe(|| (self.store_if)(status)));
        told.unwrap_or_else(|_| {
            tracing::error!(status = status.as_u16(), "store_if panicked");
            is_final(status)
        })
    }

    /// Checks the options together; `set` tells which of those that may contradict each other were
    /// set, so that the error names no default.
    pub(crate) fn check(&self, set: OptionsSet) -> Result<(), ConfigError> {
        const SPAN: &str = "must be at most 10 years";
        let (InProgress::Conflict409 { retry_after: told }
        | InProgress::Retry503 { retry_after: told }
        | InProgress::Wait { at_most: told }) = self.in_progress;
        let left_out = |name: &HeaderName| !self.kept.contains(name);
        let rules = [
            (self.key.is_valid(), "key", "must name a header that can exist"),
            (!self.methods.is_empty(), "methods", "must name at least one"),
            // A store that may take for ever holds every request for as long.
            (!self.store_timeout.is_zero(), "store_timeout", "must be above zero"),
            (!set.heartbeat || !self.heartbeat.is_zero(), "heartbeat", "must be above zero"),
            (self.body_bytes_max > 0, "max_body", "must be at least 1 byte"),
            (self.response_bytes_max > 0, "max_response", "must be at least 1 byte"),
            (self.record_ttl <= SPAN_MAX, "record_ttl", SPAN),
            (told <= SPAN_MAX, "in_progress", SPAN),
            // On a replay it would stand in the place of the recorded one.
            (left_out(&self.replay_header), "replay_header", "must not be one of kept_headers"),
            (OF_MESSAGES.iter().all(left_out), "kept_headers", "must not be about the connection"),
        ];
        rules
            .into_iter()
            .try_for_each(|(holds, option, rule)| ConfigError::unless(holds, option, rule))?;
        self.check_lease(set)
    }

    fn check_lease(&self, set: OptionsSet) -> Result<(), ConfigError> {
        // So that a heartbeat that fails is not yet the end of the lease.
        let (option, rule) = match set {
            OptionsSet { heartbeat: true, .. } => {
                ("heartbeat", "must with store_timeout be less than lease")
            }
            OptionsSet { lease: false, store_timeout: true, .. } => {
                ("store_timeout", "must with heartbeat be less than lease")
            }
            _ => ("lease", "must be more than heartbeat and store_timeout together"),
        };
        let reaction = self.heartbeat.saturating_add(self.store_timeout);
        ConfigError::unless(reaction < self.lease, option, rule)?;
        ConfigError::unless(self.lease >= LEASE_MIN, "lease", "must be at least 10 ms")?;
        // A record that is gone before its lease protects nothing.
        let (option, rule) = match set {
            OptionsSet { lease: true, record_ttl: false, .. } => {
                ("lease", "must be at most record_ttl")
            }
            _ => ("record_ttl", "must be at least lease"),
        };
        ConfigError::unless(self.record_ttl >= self.lease, option, rule)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("key", &self.key)
            .field("lease", &self.lease)
            .field("heartbeat", &self.heartbeat)
            .field("record_ttl", &self.record_ttl)
            .field("after_crash", &self.after_crash)
            .field("store_failure", &self.store_failure)
            .finish_non_exhaustive()
    }
}

/// Whether a repeat would get the same answer. "Not now" is no answer.
fn is_final(status: StatusCode) -> bool {
    let not_now = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    status.as_u16() < 500 && !not_now.contains(&status)
}
