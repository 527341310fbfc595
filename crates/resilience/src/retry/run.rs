//! Carries out a policy: calls, judges, waits, calls again.
//!
//! Dropping the future at any point is safe: nothing runs on, and a retry that was paid for but not
//! made goes back into the budget.
//! Never: decide anything itself, spawn, use a clock but the sleeper's.

use std::error::Error;
use std::fmt;
use std::future::Future;

use super::course::{Course, RetryInfo, StopReason};
use super::session::Retry;
use super::terms::Next;
use crate::circuit::Rejected;
use crate::classify::{Answer, Call, Class, ErrorKind, Outcome};
use crate::clock::Timestamp;
use crate::sleep::Sleeper;

/// A policy and something to wait with.
#[derive(Clone, Debug)]
pub struct Runner<S> {
    retry: Retry,
    sleeper: S,
}

impl Retry {
    /// This policy, waiting with `sleeper`.
    pub fn with<S: Sleeper>(&self, sleeper: S) -> Runner<S> {
        Runner { retry: self.clone(), sleeper }
    }

    /// Calls until it succeeds or the policy ends it; every error is worth a retry unless
    /// [`retry_if`](super::RetryBuilder::retry_if) says otherwise. Waits on tokio's clock.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use resilience::RetryPolicy;
    ///
    /// let retry = RetryPolicy::full_jitter(Duration::from_millis(100)).max_calls(4).build()?;
    /// let mut left = 2;
    /// let done = retry
    ///     .run(|| {
    ///         left -= 1;
    ///         let busy = left > 0;
    ///         async move { if busy { Err(std::io::Error::other("busy")) } else { Ok("done") } }
    ///     })
    ///     .await?;
    /// assert_eq!(done, "done");
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(all(feature = "tokio", not(all(target_family = "wasm", target_os = "unknown"))))]
    pub async fn run<T, E, F, Op>(&self, operation: Op) -> Result<T, RetryError<E>>
    where
        Op: FnMut() -> F,
        F: Future<Output = Result<T, E>>,
        E: Error + 'static,
    {
        self.with(crate::sleep::TokioSleeper::new()).run(operation).await
    }
}

impl<S: Sleeper> Runner<S> {
    /// Calls until it succeeds or the policy ends it; every error is worth a retry but the
    /// rejection of an open breaker, unless [`retry_if`](super::RetryBuilder::retry_if) says
    /// otherwise.
    pub async fn run<T, E, F, Op>(&self, operation: Op) -> Result<T, RetryError<E>>
    where
        Op: FnMut() -> F,
        F: Future<Output = Result<T, E>>,
        E: Error + 'static,
    {
        let mut operation = operation;
        let first = match self.first(&mut operation).await {
            Some(Ok(done)) => return Ok(done),
            first => first,
        };
        let judge = |result: &Result<T, E>, next: &mut dyn FnMut(&Outcome<'_>)| {
            if let Err(error) = result {
                next(&outcome_of(error));
            }
        };
        let mut before = None;
        let keep = |failed: Result<T, E>| before = failed.err();
        let (result, course, stop) = self.drive(first, operation, judge, keep).await;
        // A success is told without the time it took: there is no need to look at the clock.
        result.map_err(|error| RetryError { error, before, info: course.ended(stop, self.time()) })
    }

    /// The same, for errors of any type, of which only some are worth a retry. The policy's own
    /// `retry_if` is asked too, and does not see the error.
    pub async fn run_if<T, E, F, Op>(
        &self,
        operation: Op,
        worth: impl Fn(&E) -> bool,
    ) -> Result<T, RetryError<E>>
    where
        Op: FnMut() -> F,
        F: Future<Output = Result<T, E>>,
    {
        let mut operation = operation;
        let first = match self.first(&mut operation).await {
            Some(Ok(done)) => return Ok(done),
            first => first,
        };
        let judge = |result: &Result<T, E>, next: &mut dyn FnMut(&Outcome<'_>)| {
            if let Err(error) = result {
                let worth = worth(error);
                next(&if worth { Outcome::transient() } else { Outcome::refused() });
            }
        };
        let mut before = None;
        let keep = |failed: Result<T, E>| before = failed.err();
        let (result, course, stop) = self.drive(first, operation, judge, keep).await;
        result.map_err(|error| RetryError { error, before, info: course.ended(stop, self.time()) })
    }

    /// The general form: `judge` looks at each result and, if it is a failure, hands its
    /// [`Outcome`] on. A result of any type can fail, such as an answer of status 503.
    pub async fn run_judged<R, F, Op>(
        &self,
        operation: Op,
        judge: impl Fn(&R, &mut dyn FnMut(&Outcome<'_>)),
    ) -> (R, RetryInfo)
    where
        Op: FnMut() -> F,
        F: Future<Output = R>,
    {
        let (result, course, stop) = self.drive(None, operation, judge, drop).await;
        (result, course.ended(stop, self.time()))
    }

    /// The time, where the policy needs it for calls that do not fail.
    fn time(&self) -> Option<Timestamp> {
        self.retry.settings().is_timed().then(|| self.sleeper.now())
    }

    /// The first call, where its success says nothing to the policy: no budget earns by it, and no
    /// time is taken. Most calls end here.
    async fn first<R, F: Future<Output = R>>(
        &self,
        operation: &mut impl FnMut() -> F,
    ) -> Option<R> {
        if self.retry.settings().is_timed() { None } else { Some(operation().await) }
    }

    /// What failed and is followed by another call goes to `keep`; `first` is the result of a call
    /// that was made already.
    async fn drive<R, F, Op>(
        &self,
        mut first: Option<R>,
        mut operation: Op,
        judge: impl Fn(&R, &mut dyn FnMut(&Outcome<'_>)),
        mut keep: impl FnMut(R),
    ) -> (R, Course, Option<StopReason>)
    where
        Op: FnMut() -> F,
        F: Future<Output = R>,
    {
        let settings = self.retry.settings();
        // Without a limit of time it is never asked when the course began.
        let mut course = settings.begin(self.time().unwrap_or(Timestamp::EPOCH));
        let mut chance = None;
        loop {
            let result = match first.take() {
                Some(result) => result,
                None => operation().await,
            };
            let mut next = None;
            judge(&result, &mut |outcome| {
                let chance = chance.get_or_insert_with(|| self.retry.chance());
                let now = self.sleeper.now();
                next.get_or_insert_with(|| course.failed(settings, outcome, now, chance));
            });
            match next {
                None => return (result, course, None),
                Some(Next::Stop(stop)) => return (result, course, Some(stop)),
                Some(Next::Again { delay, .. }) => {
                    keep(result);
                    self.sleeper.sleep(delay).await;
                    course.calling();
                }
            }
        }
    }
}

/// What an error of any type says: that a breaker is open, or that the call failed.
fn outcome_of<'e>(error: &'e (dyn Error + 'static)) -> Outcome<'e> {
    let mut at = Some(error);
    while let Some(cause) = at {
        if cause.is::<Rejected>() {
            let open = Answer::Failed(ErrorKind::CircuitOpen);
            return Outcome::new(Call::SAFE, open, Class::REFUSED).with_error(error);
        }
        at = cause.source();
    }
    Outcome::transient().with_error(error)
}

/// The last error of an operation, and how it came to be the last.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::io;
/// use std::time::Duration;
/// use resilience::{CallError, CircuitBreaker, RetryPolicy, StopReason, Trip};
///
/// let breaker = CircuitBreaker::builder("payments").trip(Trip::consecutive(2)).build()?;
/// let retry = RetryPolicy::fixed(Duration::from_secs(1)).max_calls(9).build()?;
/// let down = || breaker.call(async { Err::<(), _>(io::Error::other("down")) });
///
/// let error = retry.run(down).await.unwrap_err();
/// assert_eq!(error.stop(), StopReason::CircuitOpen);
/// assert!(matches!(error.error, CallError::Rejected(_)), "what ended it");
/// assert_eq!(error.last_error().unwrap().to_string(), "down", "what had gone wrong before");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct RetryError<E> {
    /// The error itself; where a circuit breaker ended it, its rejection.
    pub error: E,
    /// The error of the call before that one, if there was one.
    pub before: Option<E>,
    /// How often and how long it was tried, and why no longer.
    pub info: RetryInfo,
}

impl<E> RetryError<E> {
    /// The error itself.
    pub fn into_inner(self) -> E {
        self.error
    }

    /// Why there was no further call.
    pub fn stop(&self) -> StopReason {
        self.info.stop.unwrap_or(StopReason::NotRetryable)
    }

    /// The error of the last call that was made: this one, or the one before where a circuit
    /// breaker let the last call not through. None where it let none through.
    pub fn last_error(&self) -> Option<&E> {
        match self.stop() {
            StopReason::CircuitOpen => self.before.as_ref(),
            _ => Some(&self.error),
        }
    }
}

impl<E: fmt::Display> fmt::Display for RetryError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (calls made: {}; gave up: {}", self.error, self.info.calls, self.stop())?;
        match &self.before {
            Some(before) if self.stop() == StopReason::CircuitOpen => {
                write!(f, "; last error: {before})")
            }
            _ => f.write_str(")"),
        }
    }
}

impl<E: Error + 'static> Error for RetryError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests;
