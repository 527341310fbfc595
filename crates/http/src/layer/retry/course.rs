//! The course of one request under the retry layer, without the service and its futures.
//!
//! Never: wait, call.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use resilience::{
    Clock, Next, Outcome, Retry, RetryInfo, RetrySession, Retryability, Seeded, Sleeper,
    TokioSleeper, Vote,
};

use super::super::judge::Judge;
use crate::errors::BoxError;
use crate::replay::{Replay, ReplayBody};
use crate::tell::tell;

type OnRetry = dyn Fn(u32, &Outcome<'_>, Duration) + Send + Sync;

/// What a layer was told.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) retry: Retry,
    pub(super) judge: Judge,
    pub(super) replay_bytes_max: u64,
    pub(super) drain_bytes_max: u64,
    pub(super) on_retry: Option<Arc<OnRetry>>,
}

/// What follows an attempt.
pub(super) enum Verdict {
    /// This was the last.
    Done(RetryInfo),
    /// Another one after this wait.
    Again(Duration),
}

/// One request: what is sent each time, and how it went so far.
pub(super) struct Course {
    pub(super) settings: Settings,
    session: RetrySession,
    chance: Seeded,
    sleeper: TokioSleeper,
    parts: Parts,
}

impl Course {
    pub(super) fn new(settings: Settings, parts: Parts) -> Self {
        let sleeper = TokioSleeper::new();
        let session = settings.retry.session(sleeper.now());
        let chance = settings.retry.chance();
        Self { settings, session, chance, sleeper, parts }
    }

    /// The next attempt's request; none if its body is gone.
    pub(super) fn request<B: Body>(
        &mut self,
        replay: &mut Replay<B>,
    ) -> Option<Request<ReplayBody<B>>> {
        self.session.calling();
        Some(Request::from_parts(self.parts.clone(), replay.next()?))
    }

    pub(super) fn sleep(&self, delay: Duration) -> tokio::time::Sleep {
        self.sleeper.sleep(delay)
    }

    /// Looks at how an attempt ended.
    pub(super) fn judge<R>(
        &mut self,
        result: &Result<Response<R>, BoxError>,
        replayable: bool,
    ) -> Verdict {
        let now = self.sleeper.now();
        let call = self.settings.judge.call(&self.parts, replayable);
        let (answer, class) = self.settings.judge.judge(&call, result, now);
        if class.retry == Retryability::Never && class.breaker == Vote::Success {
            return Verdict::Done(self.session.succeeded(now));
        }
        let mut outcome = Outcome::new(call, answer, class);
        if let Err(error) = result {
            outcome = outcome.with_error(&**error);
        }
        match self.session.failed(&outcome, now, &mut self.chance) {
            Next::Stop(stop) => Verdict::Done(self.session.stopped(stop, now)),
            Next::Again { delay, .. } => {
                if let Some(hear) = &self.settings.on_retry {
                    let attempt = self.session.failures();
                    tell(|| hear(attempt, &outcome, delay));
                }
                Verdict::Again(delay)
            }
        }
    }
}
