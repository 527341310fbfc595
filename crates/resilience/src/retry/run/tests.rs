//! Whole runs on tokio's paused clock.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use super::*;
use crate::budget::RetryBudget;
use crate::circuit::CallError;
use crate::classify::Method;
use crate::clock::{Clock, Timestamp};
use crate::retry::RetryPolicy;
use crate::sleep::TokioSleeper;

const START: Timestamp = Timestamp::from_secs(1_000);
const SECOND: Duration = Duration::from_secs(1);

fn fixed(calls: u32) -> Retry {
    RetryPolicy::fixed(Duration::from_secs(10)).max_calls(calls).seed(1).build().unwrap()
}

fn busy() -> io::Error {
    io::Error::other("busy")
}

#[tokio::test(start_paused = true)]
async fn it_waits_by_the_sleepers_clock_between_calls() {
    let sleeper = TokioSleeper::starting_at(START);
    let calls = Cell::new(0);
    let done = fixed(5)
        .with(sleeper)
        .run(|| {
            calls.set(calls.get() + 1);
            let ready = calls.get() == 3;
            async move { if ready { Ok(7) } else { Err(busy()) } }
        })
        .await;
    assert_eq!(done.unwrap(), 7);
    assert_eq!(calls.get(), 3);
    assert_eq!(sleeper.now().since(START), Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn the_last_error_comes_with_what_was_tried() {
    let done = fixed(3).run(|| async { Err::<(), _>(busy()) }).await;
    let error = done.unwrap_err();
    assert_eq!((error.info.calls, error.stop()), (3, StopReason::CallsExhausted));
    assert_eq!(error.info.elapsed, None, "nothing asked for it");
    assert_eq!(error.to_string(), "busy (calls made: 3; gave up: all calls are used up)");
    assert_eq!(error.last_error().unwrap().to_string(), "busy");
    assert_eq!(error.into_inner().to_string(), "busy");
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_ends_it() {
    let trip = crate::Trip::consecutive(2);
    let breaker = crate::CircuitBreaker::builder("api").trip(trip).build().unwrap();
    let calls = Cell::new(0);
    let call = || {
        calls.set(calls.get() + 1);
        breaker.call(async { Err::<(), _>(busy()) })
    };
    let runner = fixed(9).with(TokioSleeper::starting_at(START));
    let error = runner.run(call).await.unwrap_err();
    assert_eq!((error.info.calls, error.stop()), (2, StopReason::CircuitOpen));
    assert_eq!(calls.get(), 3, "two that failed, one that was not let through");
    assert!(matches!(error.error, CallError::Rejected(_)), "what ended it");
    let last = error.last_error().expect("a call was made");
    assert_eq!(last.to_string(), "busy", "and what had gone wrong");
    let text = error.to_string();
    assert!(text.starts_with("circuit breaker api is open; try again in"), "{text}");
    assert!(text.ends_with("the circuit breaker is open; last error: busy)"), "{text}");
    let shut = runner.run(|| breaker.call(async { Err::<(), _>(busy()) })).await.unwrap_err();
    assert_eq!((shut.info.calls, shut.last_error().is_none()), (0, true), "none was made at all");
}

#[tokio::test(start_paused = true)]
async fn the_time_is_measured_where_the_policy_asks_for_it() {
    let policy = || RetryPolicy::fixed(Duration::from_secs(10)).max_calls(3);
    let asking = [
        policy().timed(),
        policy().max_elapsed(Duration::from_secs(60)),
        policy().budget(RetryBudget::ratio(1.0).floor_per_sec(10)),
    ];
    for policy in asking {
        let runner = policy.build().unwrap().with(TokioSleeper::starting_at(START));
        let error = runner.run(|| async { Err::<(), _>(busy()) }).await.unwrap_err();
        assert_eq!(error.info.elapsed, Some(Duration::from_secs(20)));
        let judge = |_: &(), _: &mut dyn FnMut(&Outcome<'_>)| {};
        let ((), info) = runner.run_judged(|| tokio::time::sleep(SECOND), judge).await;
        assert_eq!((info.calls, info.elapsed), (1, Some(SECOND)));
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_is_worth_it_is_tried_again() {
    let calls = Cell::new(0);
    let runner = fixed(5).with(TokioSleeper::starting_at(START));
    let done = runner
        .run_if(
            || {
                calls.set(calls.get() + 1);
                async { Err::<(), _>("fatal") }
            },
            |error| *error != "fatal",
        )
        .await;
    assert_eq!(done.unwrap_err().stop(), StopReason::NotRetryable);
    assert_eq!(calls.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_result_of_any_type_can_fail() {
    let statuses = Cell::new([503_u16, 503, 200].as_slice());
    let runner = fixed(5).with(TokioSleeper::starting_at(START));
    let (status, info) = runner
        .run_judged(
            || {
                let status = statuses.get()[0];
                statuses.set(&statuses.get()[1..]);
                async move { status }
            },
            |status, failed| {
                if *status >= 500 {
                    let call = Call::new(Method::Get);
                    failed(&Outcome::new(call, Answer::Status(*status), Class::TRANSIENT));
                }
            },
        )
        .await;
    assert_eq!((status, info.calls, info.stop), (200, 3, None));
}

#[tokio::test(start_paused = true)]
async fn dropped_during_a_wait_it_calls_no_more_and_gives_the_retry_back() {
    let budget = RetryBudget::ratio(1.0);
    let retry = RetryPolicy::fixed(Duration::from_secs(10)).budget(budget.clone()).build().unwrap();
    let sleeper = TokioSleeper::starting_at(START);
    let calls = Cell::new(0);
    let runner = retry.with(sleeper);
    let run = runner.run(|| {
        calls.set(calls.get() + 1);
        async { Err::<(), _>(busy()) }
    });
    let short = tokio::time::timeout(Duration::from_secs(5), run).await;
    assert!(short.is_err());
    assert_eq!((calls.get(), budget.left(sleeper.now())), (1, 1));
}

#[tokio::test]
async fn a_run_can_be_spawned() {
    let retry = fixed(1);
    let task = tokio::spawn(async move { retry.run(|| async { Ok::<_, io::Error>(1) }).await });
    assert_eq!(task.await.unwrap().unwrap(), 1);
}
