//! Our side: the policies as an application builds them.
//!
//! Never: a clock, a seed or a rule that an application would not have by default.

use std::future::ready;
use std::time::Duration;

use resilience::circuit::Window;
use resilience::{
    Answer, Call, CircuitBreaker, Class, Classify, ConfigError, DefaultClassify, Outcome, Rejected,
    Retry, RetryAfter, RetryPolicy, Runner, TokioSleeper, Trip, Vote,
};

use super::side::{Caller, Kind, OURS, Side};
use crate::fault::{Fault, Result};

/// One side of each kind.
pub(super) fn sides() -> Result<Vec<Side>> {
    built().map_err(|error| Fault::new(error.to_string()))
}

fn built() -> std::result::Result<Vec<Side>, ConfigError> {
    let in_a_row = CircuitBreaker::builder("in a row").trip(Trip::consecutive(5)).build()?;
    let share = Trip::failure_rate(0.5).window(Window::calls(100));
    let share = CircuitBreaker::builder("share").trip(share).build()?;
    let retry = RetryPolicy::full_jitter(Duration::from_millis(100)).max_calls(3).build()?;
    let stacked = Stacked { breaker: in_a_row.clone(), runner: runner(&retry) };
    Ok(vec![
        Side::new(Kind::InARow, OURS, Guarded(in_a_row)),
        Side::new(Kind::Share, OURS, Guarded(share)),
        Side::new(Kind::Retry, OURS, Retried(runner(&retry))),
        Side::new(Kind::Stack, OURS, stacked),
    ])
}

fn runner(retry: &Retry) -> Runner<TokioSleeper> {
    retry.with(TokioSleeper::new())
}

#[derive(Clone)]
struct Guarded(CircuitBreaker);

impl Caller for Guarded {
    async fn call(&mut self) -> u16 {
        self.0.call(ready(Ok::<_, Fault>(200))).await.unwrap_or(0)
    }
}

#[derive(Clone)]
struct Retried(Runner<TokioSleeper>);

impl Caller for Retried {
    async fn call(&mut self) -> u16 {
        self.0.run_if(|| ready(Ok::<_, Fault>(200)), |_| true).await.unwrap_or(0)
    }
}

/// A call as an HTTP client makes it: the answer is classified, for the breaker and for the retry.
#[derive(Clone)]
struct Stacked {
    breaker: CircuitBreaker,
    runner: Runner<TokioSleeper>,
}

impl Caller for Stacked {
    async fn call(&mut self) -> u16 {
        let guarded = || async {
            let permit = self.breaker.try_acquire()?;
            let status = ready(200).await;
            let class = classified(status);
            permit.record(class.breaker);
            Ok::<_, Rejected>((status, class))
        };
        let judge = |result: &std::result::Result<(u16, Class), Rejected>,
                     next: &mut dyn FnMut(&Outcome<'_>)| match result {
            Ok((status, class)) if class.breaker != Vote::Success => {
                next(&Outcome::new(Call::SAFE, Answer::Status(*status), *class));
            }
            Ok(_) => {}
            Err(_) => next(&Outcome::refused()),
        };
        let (result, _) = self.runner.run_judged(guarded, judge).await;
        result.map_or(0, |(status, _)| status)
    }
}

fn classified(status: u16) -> Class {
    DefaultClassify.classify(&Call::SAFE, Answer::Status(status), RetryAfter::Absent)
}

/// Calls nothing, and guards nothing.
#[cfg(test)]
#[derive(Clone)]
pub(super) struct Idle;

#[cfg(test)]
impl Caller for Idle {
    async fn call(&mut self) -> u16 {
        200
    }
}
