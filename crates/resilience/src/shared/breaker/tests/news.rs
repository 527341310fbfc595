//! News that do not wait for their turn, and the steps that a call costs.

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::*;

/// News are exchanged so rarely that no test lives to see it.
const RARE: Sharing = Sharing::Eventual { flush: secs(3_600), max_stale: secs(7_200) };

struct Ear(UnboundedSender<Phase>);

impl BreakerObserver for Ear {
    fn on_state_change(&self, change: &StateChange) {
        self.0.send(change.to).ok();
    }
}

/// A process with its driver, which exchanges news rarely, and the changes it hears of.
fn process(bench: &Bench) -> (Shared, UnboundedReceiver<Phase>) {
    let (ear, heard) = unbounded_channel();
    let breaker = bench.builder().sharing(RARE).observe(Ear(ear)).build().unwrap();
    tokio::spawn(breaker.driver());
    (breaker, heard)
}

#[tokio::test(start_paused = true)]
async fn a_change_reaches_the_other_process_at_once() {
    let bench = Bench::new();
    let ((one, _), (other, mut heard)) = (process(&bench), process(&bench));
    vote(&one, Vote::Success, 1).await;
    vote(&other, Vote::Success, 1).await;
    vote(&one, Vote::Failure, 3).await;
    assert_eq!(heard.recv().await, Some(Phase::Open), "nobody had to call or to wait for it");
    assert_eq!(bench.sleeper.now(), START);
    tokio::time::sleep(secs(10)).await;
    one.acquire().await.unwrap().success().await;
    assert_eq!(heard.recv().await, Some(Phase::Closed));
    one.force(Some(Forced::Open)).await.unwrap();
    assert_eq!(heard.recv().await, Some(Phase::Open));
    assert_eq!(reason(&other).await, RejectReason::Forced);
    assert!(bench.sleeper.now().since(START) <= secs(11));
}

#[tokio::test(start_paused = true)]
async fn no_call_waits_for_the_news_of_an_opening_to_be_told() {
    let bench = Bench::new();
    let (one, _) = process(&bench);
    vote(&one, Vote::Success, 1).await;
    bench.store.becomes(HANGS);
    let begun = bench.sleeper.now();
    vote(&one, Vote::Failure, 3).await;
    assert_eq!(bench.sleeper.now(), begun);
}

#[tokio::test(start_paused = true)]
async fn a_strict_call_takes_two_steps_of_the_store_and_one_that_changes_it_three() {
    let bench = Bench::new();
    let breaker = bench.builder().sharing(Sharing::Strict).build().unwrap();
    for (ended, steps) in [
        (Vote::Success, 2),
        (Vote::Failure, 2),
        (Vote::Ignore, 1),
        (Vote::Failure, 2),
        (Vote::Failure, 3),
    ] {
        vote(&breaker, ended, 1).await;
        assert_eq!(bench.store.steps(), steps, "{ended:?}");
    }
    assert_eq!(reason(&breaker).await, RejectReason::Open);
}
