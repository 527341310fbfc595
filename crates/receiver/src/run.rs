//! One keyed request from begin to its record.
//!
//! Begin, then either answer for the store (replay, conflict, mismatch) or run the handler under
//! heartbeats and record its response. What the caller gets is what was recorded, or a problem.
//!
//! Never: the handler twice in one run; a response given away that should have been recorded and
//! was not, unless the setting says so.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tower_service::Service;

use crate::body::{BoxError, ReadError, ResponseBody, read};
use crate::error::StoreError;
use crate::key::ScopedKey;
use crate::problem::Problem;
use crate::running::Running;
use crate::settings::{AfterCrash, InProgress, Settings, StoreFailure};
use crate::store::{Begin, BeginRequest, IdempotencyStore, LeaseToken};
use crate::stored::StoredResponse;

/// First and longest pause between two looks at a record in progress.
const LOOK_AGAIN_FIRST: Duration = Duration::from_millis(20);
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(500);

/// A request under its key.
pub(crate) struct Run<St> {
    pub(crate) store: Arc<St>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) key: ScopedKey,
    pub(crate) fingerprint: [u8; 32],
}

/// How a handler ended.
enum Ended<E> {
    Answered(Response<Bytes>),
    /// With an error of the service, or none if it panicked or its body broke off.
    Failed(Option<E>),
}

impl<St: IdempotencyStore> Run<St> {
    /// Answers the request.
    pub(crate) async fn serve<S, R>(
        self,
        mut inner: S,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<ResponseBody<R>>, S::Error>
    where
        S: Service<Request<Full<Bytes>>, Response = Response<R>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Send + 'static,
        R: Body + Send + 'static,
        R::Data: Send,
        R::Error: Into<BoxError>,
    {
        let (outcome, answer) = match self.begin().await {
            Ok(Begin::Started(token)) => return self.handle(inner, request, token).await,
            Ok(Begin::Replay(stored)) => ("replayed", stored.replay(&self.settings.replay_header)),
            Ok(Begin::InProgress { .. }) => {
                let (status, retry_after) = self.settings.in_progress.refusal();
                ("in_progress", Problem::InProgress(status, retry_after).whole())
            }
            Ok(Begin::Mismatch) => ("mismatch", Problem::KeyReused.whole()),
            Ok(Begin::Indeterminate) => ("indeterminate", Problem::OutcomeUnknown.whole()),
            Err(error) => {
                tracing::warn!(%error, "idempotency store failed before the handler");
                if self.settings.store_failure == StoreFailure::Open {
                    return Ok(inner.call(request).await?.map(ResponseBody::Right));
                }
                ("refused", Problem::StoreUnavailable.whole())
            }
        };
        tracing::debug!(outcome, "keyed request");
        Ok(answer.map(ResponseBody::Left))
    }

    /// Begins, and looks again while the first request is in progress if the setting says so.
    async fn begin(&self) -> Result<Begin, StoreError> {
        let settings = &self.settings;
        let request = BeginRequest {
            key: &self.key,
            fingerprint: &self.fingerprint,
            lease: settings.lease,
            record_ttl: settings.record_ttl,
            after_crash: settings.after_crash,
        };
        let at_most = match settings.in_progress {
            InProgress::Conflict409 { .. } | InProgress::Retry503 { .. } => Duration::ZERO,
            InProgress::Wait { at_most } => at_most,
        };
        let until = Instant::now() + at_most;
        let mut pause = LOOK_AGAIN_FIRST;
        loop {
            let begun = self.within(self.store.begin(&request)).await?;
            let Begin::InProgress { retry_in } = begun else { return Ok(begun) };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(begun);
            }
            sleep(pause.min(left).min(retry_in.max(LOOK_AGAIN_FIRST))).await;
            pause = (pause * 2).min(LOOK_AGAIN_MAX);
        }
    }

    async fn handle<S, R>(
        self,
        inner: S,
        mut request: Request<Full<Bytes>>,
        token: LeaseToken,
    ) -> Result<Response<ResponseBody<R>>, S::Error>
    where
        S: Service<Request<Full<Bytes>>, Response = Response<R>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Send + 'static,
        R: Body + Send + 'static,
        R::Data: Send,
        R::Error: Into<BoxError>,
    {
        let settings = &self.settings;
        let kept = Arc::clone(&settings.kept);
        request.extensions_mut().insert(Running::new(token.clone(), settings.record_ttl, kept));
        let work = run_to_end(inner, request, settings.response_bytes_max);
        // A task of its own, so that a handler that computes for long, or panics, stops neither
        // the heartbeats nor what follows.
        let ended = tokio::select! {
            ended = tokio::spawn(work) => ended.unwrap_or(Ended::Failed(None)),
            never = self.beat(&token) => match never {},
        };
        match ended {
            Ended::Answered(response) => {
                Ok(self.record(&token, response).await.map(ResponseBody::Left))
            }
            Ended::Failed(error) => {
                let outcome = "failed";
                tracing::warn!(outcome, fence = token.fence(), "handler gave no response");
                if settings.after_crash == AfterCrash::Rerun {
                    self.abandon(&token).await;
                }
                error.map_or_else(|| Ok(Problem::HandlerFailed.response()), Err)
            }
        }
    }

    /// Prolongs the lease until the lease is lost, and then does nothing for ever.
    async fn beat(&self, token: &LeaseToken) -> Infallible {
        let every = self.settings.heartbeat;
        let mut beats = interval_at(Instant::now() + every, every);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            beats.tick().await;
            let beat = self.store.heartbeat(token, self.settings.lease);
            match self.within(beat).await {
                Ok(()) => {}
                Err(StoreError::Stale) => break,
                Err(error) => tracing::warn!(%error, "heartbeat failed"),
            }
        }
        tracing::warn!(fence = token.fence(), "lease lost while the handler runs");
        std::future::pending().await
    }

    /// Records the response, if it is one to be recorded. Returns what the caller gets.
    async fn record(&self, token: &LeaseToken, response: Response<Bytes>) -> Response<Full<Bytes>> {
        let settings = &self.settings;
        let (parts, body) = response.into_parts();
        if !settings.records(parts.status) && parts.extensions.get::<TooLarge>().is_none() {
            tracing::debug!(outcome = "not_recorded", "keyed request");
            self.abandon(token).await;
            return Response::from_parts(parts, Full::new(body));
        }
        let stored = StoredResponse::keep(&parts, &body, &settings.kept);
        match self.complete(token, &stored).await {
            Ok(()) => {
                tracing::debug!(outcome = "recorded", "keyed request");
                Response::from_parts(parts, Full::new(body))
            }
            Err(StoreError::Stale) => {
                let outcome = "lease_lost";
                tracing::warn!(outcome, fence = token.fence(), "response not recorded");
                let (status, retry_after) = settings.in_progress.refusal();
                Problem::LeaseLost(status, retry_after).whole()
            }
            Err(error) => {
                tracing::warn!(%error, "idempotency store failed after the handler");
                match settings.store_failure {
                    StoreFailure::Open => Response::from_parts(parts, Full::new(body)),
                    StoreFailure::Closed503 => Problem::StoreUnavailable.whole(),
                }
            }
        }
    }

    /// Asks the store once more if it failed: the handler has taken effect, and a connection that
    /// was cut is a new one the second time.
    async fn complete(
        &self,
        token: &LeaseToken,
        stored: &StoredResponse,
    ) -> Result<(), StoreError> {
        let complete = || self.within(self.store.complete(token, stored, self.settings.record_ttl));
        match complete().await {
            Ok(()) => Ok(()),
            Err(StoreError::Stale) => Err(StoreError::Stale),
            Err(error) => {
                tracing::warn!(%error, "response not recorded at the first attempt");
                complete().await
            }
        }
    }

    /// What cannot be given back now comes back when its lease lapses.
    async fn abandon(&self, token: &LeaseToken) {
        if let Err(error) = self.within(self.store.abandon(token)).await {
            tracing::warn!(%error, fence = token.fence(), "key not given back");
        }
    }

    async fn within<T>(
        &self,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        timeout(self.settings.store_timeout, answer).await.unwrap_or(Err(StoreError::TimedOut))
    }
}

/// Marks the response that stands for one too large to be recorded; it is recorded whatever the
/// setting says, since the handler took effect.
#[derive(Clone)]
struct TooLarge;

/// Runs the handler and reads its response whole.
async fn run_to_end<S, R>(
    mut inner: S,
    request: Request<Full<Bytes>>,
    bytes_max: usize,
) -> Ended<S::Error>
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>>,
    R: Body,
    R::Error: Into<BoxError>,
{
    let (parts, body) = match inner.call(request).await {
        Ok(response) => response.into_parts(),
        Err(error) => return Ended::Failed(Some(error)),
    };
    match read(body, bytes_max).await {
        Ok(body) => Ended::Answered(Response::from_parts(parts, body)),
        Err(ReadError::TooLarge) => {
            tracing::error!(bytes_max, "response too large to be recorded");
            let (mut parts, body) = Problem::ResponseTooLarge.whole_bytes().into_parts();
            parts.extensions.insert(TooLarge);
            Ended::Answered(Response::from_parts(parts, body))
        }
        Err(ReadError::Broken(error)) => {
            tracing::warn!(%error, "response broke off");
            Ended::Failed(None)
        }
    }
}
