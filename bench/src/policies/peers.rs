//! The other crates, each for what it has, with the settings nearest to ours.
//!
//! Never: a setting that makes one slower than it need be.

use std::future::{Ready, ready};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use failsafe::failure_policy::{self, FailurePolicy};
use failsafe::futures::CircuitBreaker as _;
use failsafe::{Config, StateMachine, backoff};
use tower::{Layer, Service, ServiceExt as _, service_fn};
use tower_resilience_circuitbreaker::{
    CircuitBreakerError, CircuitBreakerLayer, DefaultClassifier, SlidingWindowType,
};
use tower_resilience_retry::RetryLayer;

use super::side::{Caller, Kind, Side};
use crate::fault::{Result, While as _};

const BASE: Duration = Duration::from_millis(100);
const OPEN: Duration = Duration::from_secs(60);

/// All of them.
pub(super) fn sides() -> Result<Vec<Side>> {
    let waits = || backoff::constant(OPEN);
    let in_a_row =
        Config::new().failure_policy(failure_policy::consecutive_failures(5, waits())).build();
    let share = failure_policy::success_rate_over_time_window(0.5, 20, OPEN / 2, waits());
    let share = Config::new().failure_policy(share).build();
    let retrying = ExponentialBuilder::new().with_min_delay(BASE).with_max_times(2).with_jitter();
    let breakers = "building the breaker of tower-resilience";
    let tower_in_a_row =
        CircuitBreakerLayer::builder().consecutive_failures(5).build().while_(breakers)?;
    let tower_share = CircuitBreakerLayer::builder()
        .failure_rate_threshold(0.5)
        .sliding_window_type(SlidingWindowType::CountBased)
        .sliding_window_size(100)
        .build()
        .while_(breakers)?;
    let retries =
        RetryLayer::<(), u16, Refused>::builder().max_attempts(3).exponential_backoff(BASE);
    let stack_retries = RetryLayer::builder().max_attempts(3).exponential_backoff(BASE).build();
    let both = Both { breaker: in_a_row.clone(), retrying };
    let stack = stack_retries.layer(guarded(&tower_in_a_row));
    const TOWER: &str = "tower-resilience 0.14";
    Ok(vec![
        Side::new(Kind::InARow, "failsafe 1.3", Failsafe(in_a_row)),
        Side::new(Kind::InARow, TOWER, Tower(guarded(&tower_in_a_row))),
        Side::new(Kind::Share, "failsafe 1.3", Failsafe(share)),
        Side::new(Kind::Share, TOWER, Tower(guarded(&tower_share))),
        Side::new(Kind::Retry, "backon 1.6", Backon(retrying)),
        Side::new(Kind::Retry, TOWER, Tower(retries.build().layer(service_fn(answer)))),
        Side::new(Kind::Stack, "backon 1.6, failsafe 1.3", both),
        Side::new(Kind::Stack, TOWER, Tower(stack)),
    ])
}

/// An error that no call here ends with.
#[derive(Clone, Debug)]
struct Refused;

fn answer(_request: ()) -> Ready<std::result::Result<u16, Refused>> {
    ready(Ok(200))
}

/// The breaker of tower-resilience around a service that answers at once.
fn guarded(
    layer: &CircuitBreakerLayer<DefaultClassifier>,
) -> impl Service<(), Response = u16, Error = CircuitBreakerError<Refused>, Future: Send>
+ Clone
+ Send
+ 'static {
    layer.layer(service_fn(answer))
}

struct Failsafe<P>(StateMachine<P, ()>);

impl<P> Clone for Failsafe<P> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<P: FailurePolicy + Send + Sync + 'static> Caller for Failsafe<P> {
    async fn call(&mut self) -> u16 {
        self.0.call(answer(())).await.unwrap_or(0)
    }
}

#[derive(Clone)]
struct Backon(ExponentialBuilder);

impl Caller for Backon {
    async fn call(&mut self) -> u16 {
        (|| answer(())).retry(self.0).await.unwrap_or(0)
    }
}

struct Both<P> {
    breaker: StateMachine<P, ()>,
    retrying: ExponentialBuilder,
}

impl<P> Clone for Both<P> {
    fn clone(&self) -> Self {
        Self { breaker: self.breaker.clone(), retrying: self.retrying }
    }
}

impl<P: FailurePolicy + Send + Sync + 'static> Caller for Both<P> {
    async fn call(&mut self) -> u16 {
        (|| self.breaker.call(answer(()))).retry(self.retrying).await.unwrap_or(0)
    }
}

#[derive(Clone)]
struct Tower<S>(S);

impl<S> Caller for Tower<S>
where
    S: Service<(), Response = u16, Future: Send> + Clone + Send + 'static,
    S::Error: Send,
{
    async fn call(&mut self) -> u16 {
        match self.0.ready().await {
            Ok(service) => service.call(()).await.unwrap_or(0),
            Err(_) => 0,
        }
    }
}
