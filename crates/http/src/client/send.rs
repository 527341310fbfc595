//! A request with all its attempts.
//!
//! From the outside in: observers, total timeout, key, retry, breaker (or breaker, retry), then the
//! attempt. The observers stand outside of the total timeout, so that they hear of it.
//! Never: decide what the policies decide; leave anything behind when it is dropped.

use std::pin::Pin;
use std::pin::pin;
use std::time::Duration;

use resilience::circuit::Permit;
use resilience::{
    Chance, Clock, Next, Outcome, RetryInfo, RetrySession, Sleeper, StopReason, TokioSleeper, Vote,
};

use super::attempt::Taken;
use super::context::Context;
use super::error::{HttpError, HttpErrorKind};
use super::job::{Draft, Job};
use super::observer::Observers;
use super::payload::Expected;
use super::response::Response;
use super::settings::Order;
use super::within::within;

/// Sends it, tells the observers, and gives what came of it.
pub(super) async fn send<T: Send + Sync>(
    draft: Draft,
    expected: Expected<T>,
) -> Result<Response<T>, HttpError> {
    let observers = draft.settings.observers.clone();
    let mut job = match Job::new(draft) {
        Ok(job) => job,
        Err(error) => {
            observers.tell(|observer| observer.on_failure(&error, Duration::ZERO));
            return Err(error);
        }
    };
    let watch = Watch::new(observers, &job);
    match job.run(&expected).await {
        Ok((taken, info)) => {
            watch.end(|observers, _| {
                let raw = taken.raw.with_info(info);
                observers.tell(|observer| observer.on_success(&raw, &info));
            });
            Ok(taken.decoded.with_info(info))
        }
        Err(error) => {
            watch.end(|observers, elapsed| {
                observers.tell(|observer| observer.on_failure(&error, elapsed));
            });
            Err(error)
        }
    }
}

/// Sees to it that every request ends once for the observers, also one that is dropped.
struct Watch {
    observers: Observers,
    context: Context,
    sleeper: TokioSleeper,
    begun: resilience::Timestamp,
    ended: bool,
}

impl Watch {
    fn new(observers: Observers, job: &Job) -> Self {
        let sleeper = job.sleeper;
        let context = job.context.clone();
        Self { observers, context, begun: sleeper.now(), sleeper, ended: false }
    }

    fn end(mut self, tell: impl FnOnce(&Observers, Duration)) {
        self.ended = true;
        tell(&self.observers, self.sleeper.now().since(self.begun));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.ended {
            let error = HttpError::of(HttpErrorKind::Cancelled, self.context.clone(), None);
            let elapsed = self.sleeper.now().since(self.begun);
            self.observers.tell(|observer| observer.on_failure(&error, elapsed));
        }
    }
}

impl Job {
    /// All attempts, and how they went.
    async fn run<T: Send + Sync>(
        &mut self,
        expected: &Expected<T>,
    ) -> Result<(Taken<T>, RetryInfo), HttpError> {
        let deadline = pin!(self.sleeper.sleep(self.total_timeout));
        let outer = match self.settings.order {
            Order::BreakerOutsideRetry => self.enter().map_err(|error| {
                let session = self.retry.session(self.sleeper.now());
                self.stopped(error, &session, StopReason::CircuitOpen)
            })?,
            Order::RetryOutsideBreaker => None,
        };
        let result = self.retrying(deadline, expected).await;
        let result = result.map(|(taken, session)| {
            let mut info = session.succeeded(self.sleeper.now());
            info.calls = self.sent;
            (taken, info)
        });
        self.leave(outer, result.as_ref().map(|(taken, _)| taken));
        result
    }

    async fn retrying<T: Send + Sync>(
        &mut self,
        mut deadline: Pin<&mut tokio::time::Sleep>,
        expected: &Expected<T>,
    ) -> Result<(Taken<T>, RetrySession), HttpError> {
        let end = self.sleeper.now().plus(self.total_timeout);
        let mut session = self.retry.session(self.sleeper.now());
        let mut chance = self.retry.chance();
        if within(deadline.as_mut(), self.keep_body()).await.is_none() {
            return Err(self.timed_out(&session));
        }
        let mut before = None;
        loop {
            let error = match within(deadline.as_mut(), self.guarded(expected)).await {
                None => return Err(self.timed_out(&session).with_before(before)),
                Some(Ok(taken)) => return Ok((taken, session)),
                Some(Err(error)) => error,
            };
            let delay = match self.next(&mut session, &error, &mut chance) {
                Next::Stop(stop) => {
                    return Err(self.stopped(error, &session, stop).with_before(before));
                }
                // The last error says more than a wait for the end of the time would.
                Next::Again { at, .. } if at >= end => {
                    return Err(self.stopped(error, &session, StopReason::Elapsed));
                }
                Next::Again { delay, .. } => delay,
            };
            let failures = session.failures();
            self.settings.observers.tell(|observer| observer.on_retry(failures, &error, delay));
            // What was turned away here is no attempt.
            if error.last_error().is_some() {
                before = Some(error);
            }
            self.sleeper.sleep(delay).await;
            session.calling();
        }
    }

    fn next(
        &self,
        session: &mut RetrySession,
        error: &HttpError,
        chance: &mut dyn Chance,
    ) -> Next<StopReason> {
        let outcome = Outcome::new(self.call, error.answer(), error.class()).with_error(error);
        session.failed(&outcome, self.sleeper.now(), chance)
    }

    /// One attempt, through the breaker if that is its place.
    async fn guarded<T: Send + Sync>(
        &mut self,
        expected: &Expected<T>,
    ) -> Result<Taken<T>, HttpError> {
        let permit = match self.settings.order {
            Order::RetryOutsideBreaker => self.enter()?,
            Order::BreakerOutsideRetry => None,
        };
        let result = self.attempt(expected).await;
        self.leave(permit, result.as_ref());
        result
    }

    fn enter(&self) -> Result<Option<Permit<'static>>, HttpError> {
        let Some(breaker) = &self.breaker else { return Ok(None) };
        breaker.try_acquire_owned().map(Some).map_err(|rejected| {
            let context = self.context.at_attempt(self.attempts);
            self.judged(HttpError::new(HttpErrorKind::CircuitOpen, context, rejected))
        })
    }

    fn leave<T>(&self, permit: Option<Permit<'static>>, result: Result<&Taken<T>, &HttpError>) {
        let Some(permit) = permit else { return };
        match result {
            Ok(taken) => permit.record(self.class_of(taken.raw.status()).breaker),
            Err(error) if error.class().breaker == Vote::Failure => permit.failure(error),
            Err(error) => permit.record(error.class().breaker),
        }
    }

    fn timed_out(&self, session: &RetrySession) -> HttpError {
        let context = self.context.at_attempt(self.attempts);
        let error = HttpError::of(HttpErrorKind::TotalTimeout, context, None);
        let error = error.before_sending(self.sent == 0);
        self.stopped(self.judged(error), session, StopReason::Elapsed)
    }

    fn stopped(&self, error: HttpError, session: &RetrySession, stop: StopReason) -> HttpError {
        let mut info = session.stopped(stop, self.sleeper.now());
        info.calls = self.sent;
        error.with_info(info)
    }
}
