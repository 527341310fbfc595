//! Putting an idempotency layer together.
//!
//! Never: a layer whose settings contradict each other.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderName, Method, StatusCode};
use resilience::ConfigError;

use crate::fingerprint::Fingerprint;
use crate::idempotency::IdempotencyLayer;
use crate::key::KeySource;
use crate::settings::{AfterCrash, InProgress, Missing, OptionsSet, Settings, StoreFailure};

/// Collects the settings of an [`IdempotencyLayer`]; the defaults are those of the documentation of
/// each method.
#[derive(Clone, Debug)]
#[must_use = "no request is protected before `build`"]
pub struct IdempotencyBuilder<St> {
    store: St,
    settings: Settings,
    heartbeat: Option<Duration>,
    replay_header: String,
    set: OptionsSet,
}

impl<St> IdempotencyLayer<St> {
    /// A layer over this store, to be set up.
    pub fn builder(store: St) -> IdempotencyBuilder<St> {
        IdempotencyBuilder::new(store, Settings::default())
    }

    /// A layer for webhooks, to be set up, for behind a
    /// [`WebhookVerifyLayer`](crate::WebhookVerifyLayer). It differs in four defaults: the key is
    /// the message id; it is remembered for 7 days, which is longer than senders try; a repeat
    /// while the first is being handled gets 503, since senders give up at a 4xx; bodies have up
    /// to 1 MiB.
    pub fn webhook_builder(store: St) -> IdempotencyBuilder<St> {
        IdempotencyBuilder::new(store, Settings::webhook_id())
    }

    /// The layer that [`Self::webhook_builder`] makes with all its defaults.
    pub fn webhook_id(store: St) -> Self {
        Self::new(store, Settings::webhook_id())
    }
}

impl<St> IdempotencyBuilder<St> {
    fn new(store: St, settings: Settings) -> Self {
        let replay_header = settings.replay_header.as_str().to_owned();
        Self { store, settings, heartbeat: None, replay_header, set: OptionsSet::default() }
    }

    /// Where the key is read from: the header `idempotency-key`.
    pub fn key(mut self, source: KeySource) -> Self {
        self.settings.key = source;
        self
    }

    /// The methods that are protected, at least one; others pass: POST and PATCH.
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.settings.methods = methods.into_iter().collect();
        self
    }

    /// Whose a key is, so that one caller cannot read another's response by guessing a key. Take
    /// it from what was authenticated: all callers are one. A request for which it panics is
    /// answered 500 and not handled.
    pub fn scope(mut self, scope: impl Fn(&Parts) -> String + Send + Sync + 'static) -> Self {
        self.settings.scope = Arc::new(scope);
        self
    }

    /// What must be equal for a repeat to be one: method, path and body.
    pub fn fingerprint(mut self, fingerprint: Fingerprint) -> Self {
        self.settings.fingerprint = fingerprint;
        self
    }

    /// What to do without a key: [`Missing::Reject400`].
    pub fn on_missing(mut self, missing: Missing) -> Self {
        self.settings.missing = missing;
        self
    }

    /// What a repeat is told while the first is being handled: 409, come back in 1 s.
    pub fn in_progress(mut self, in_progress: InProgress) -> Self {
        self.settings.in_progress = in_progress;
        self
    }

    /// How long a key is held without a heartbeat, and so how long a crash blocks it: 30 s. Longer
    /// than heartbeat and `store_timeout` together, and at most `record_ttl`.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self.set.lease = true;
        self
    }

    /// How often the lease is prolonged while the handler runs: a third of the lease.
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = Some(heartbeat);
        self
    }

    /// How long a response is remembered: 24 h. Longer than a caller tries.
    pub fn record_ttl(mut self, record_ttl: Duration) -> Self {
        self.settings.record_ttl = record_ttl;
        self.set.record_ttl = true;
        self
    }

    /// Which responses are recorded; after any other a repeat runs the handler again: below 500,
    /// except 408 and 429. Where it panics, this rule decides in its place.
    pub fn store_if(mut self, wanted: impl Fn(StatusCode) -> bool + Send + Sync + 'static) -> Self {
        self.settings.store_if = Arc::new(wanted);
        self
    }

    /// What a lease means that ended without a response: [`AfterCrash::Rerun`].
    pub fn after_crash(mut self, after_crash: AfterCrash) -> Self {
        self.settings.after_crash = after_crash;
        self
    }

    /// Most bytes of a request's body, else 413: 256 KiB.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.settings.body_bytes_max = bytes;
        self
    }

    /// Most bytes of a response's body; a larger one becomes a recorded 500: 256 KiB.
    pub fn max_response(mut self, bytes: usize) -> Self {
        self.settings.response_bytes_max = bytes;
        self
    }

    /// The headers of a response that are recorded: `content-type`, `content-encoding`,
    /// `content-language`, `etag`, `last-modified`, `link`, `location`. None that is about the
    /// connection, and not the replay header.
    pub fn kept_headers(mut self, names: impl IntoIterator<Item = HeaderName>) -> Self {
        self.settings.kept = names.into_iter().collect();
        self
    }

    /// The header that says `true` on a replay: `idempotency-replayed`.
    pub fn replay_header(mut self, name: &str) -> Self {
        name.clone_into(&mut self.replay_header);
        self
    }

    /// What to do when the store fails: [`StoreFailure::Closed503`].
    pub fn on_store_error(mut self, failure: StoreFailure) -> Self {
        self.settings.store_failure = failure;
        self
    }

    /// After how long without an answer the store counts as failed: 2 s.
    pub fn store_timeout(mut self, timeout: Duration) -> Self {
        self.settings.store_timeout = timeout;
        self.set.store_timeout = true;
        self
    }

    /// The layer.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], naming the option and the rule it breaks.
    pub fn build(mut self) -> Result<IdempotencyLayer<St>, ConfigError> {
        let refused = ConfigError::new("replay_header", "must be the name of a header");
        self.settings.replay_header = self.replay_header.parse().map_err(|_| refused)?;
        self.set.heartbeat = self.heartbeat.is_some();
        self.settings.heartbeat = self.heartbeat.unwrap_or(self.settings.lease / 3);
        self.settings.check(self.set)?;
        Ok(IdempotencyLayer::new(self.store, self.settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Builder = IdempotencyBuilder<()>;

    fn built(change: impl FnOnce(Builder) -> Builder) -> Result<(), &'static str> {
        let built = change(IdempotencyBuilder::new((), Settings::default())).build();
        built.map(drop).map_err(|error| error.option)
    }

    #[test]
    fn the_defaults_hold_together() {
        assert_eq!(built(|builder| builder), Ok(()));
        assert_eq!(Settings::webhook_id().check(OptionsSet::default()), Ok(()));
    }

    #[test]
    fn what_could_never_work_is_refused_by_name() {
        let secs = Duration::from_secs;
        let wait = InProgress::wait(Duration::MAX);
        let kept = |name: &'static str| [HeaderName::from_static(name)];
        assert_eq!(built(|b| b.key(KeySource::header("a b"))), Err("key"));
        assert_eq!(built(|b| b.methods([])), Err("methods"));
        assert_eq!(built(|b| b.replay_header("")), Err("replay_header"));
        assert_eq!(built(|b| b.replay_header("etag")), Err("replay_header"));
        assert_eq!(built(|b| b.kept_headers(kept("transfer-encoding"))), Err("kept_headers"));
        assert_eq!(built(|b| b.kept_headers([])), Ok(()));
        assert_eq!(built(|b| b.store_timeout(secs(0))), Err("store_timeout"));
        assert_eq!(built(|b| b.max_body(0)), Err("max_body"));
        assert_eq!(built(|b| b.max_response(0)), Err("max_response"));
        assert_eq!(built(|b| b.max_body(usize::MAX).max_response(usize::MAX)), Ok(()));
        assert_eq!(built(|b| b.record_ttl(Duration::MAX)), Err("record_ttl"));
        assert_eq!(built(|b| b.lease(Duration::MAX)), Err("lease"));
        assert_eq!(built(|b| b.in_progress(wait)), Err("in_progress"));
    }

    /// Of two that contradict each other the one that was set.
    #[test]
    fn an_error_names_what_was_set() {
        let secs = Duration::from_secs;
        assert_eq!(built(|b| b.lease(secs(3))), Err("lease"));
        assert_eq!(built(|b| b.lease(secs(4))), Ok(()), "the heartbeat is a third");
        assert_eq!(built(|b| b.lease(secs(0))), Err("lease"));
        assert_eq!(built(|b| b.heartbeat(secs(0))), Err("heartbeat"));
        assert_eq!(built(|b| b.heartbeat(secs(28))), Err("heartbeat"));
        assert_eq!(built(|b| b.lease(secs(12)).heartbeat(secs(10))), Err("heartbeat"));
        assert_eq!(built(|b| b.store_timeout(secs(20))), Err("store_timeout"));
        assert_eq!(built(|b| b.record_ttl(secs(29))), Err("record_ttl"));
        assert_eq!(built(|b| b.lease(secs(90_000))), Err("lease"));
        assert_eq!(built(|b| b.lease(secs(90_000)).record_ttl(secs(90_000))), Ok(()));
    }
}
