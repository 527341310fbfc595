//! Chore: what was committed is rolled up into figures, and figures that are old are thinned.
//!
//! One piece at a time is on its way to the store, and a pause lies between two, so that a batch
//! holds at most one of them and most hold none. A task of its own: sending goes on without it.
//! Never: count anything; the store does.

use std::sync::Arc;
use std::time::Duration;

use domain::nodes::Chore;
use metrics::{Counter, counter};
use resilience::{Clock, Timestamp};
use store::StoreError;
use store::counts::{Counts, Rolled};
use store::nodes::Share;

/// Between two looks. What was committed since the last one is counted by whoever reads.
const EVERY: Duration = Duration::from_secs(5);
/// Between two pieces.
const PAUSE: Duration = Duration::from_millis(10);
/// Between two looks at what is old.
const THIN_EVERY: Duration = Duration::from_secs(3_600);

/// Rolls figures up.
pub struct RollUp {
    counts: Arc<dyn Counts>,
    clock: Arc<dyn Clock>,
    share: Arc<Share>,
    rows: Counter,
    thin_at: Timestamp,
}

impl RollUp {
    /// Of a store, where this is left to this node.
    pub fn new(counts: Arc<dyn Counts>, clock: Arc<dyn Clock>, share: Arc<Share>) -> Self {
        let thin_at = clock.now();
        Self { counts, clock, share, rows: counter!("peyk_figures_rows_total"), thin_at }
    }

    /// Works until it is dropped.
    pub async fn run(mut self) {
        let mut failing = false;
        loop {
            tokio::time::sleep(EVERY).await;
            if !self.share.does(Chore::Figures) {
                continue;
            }
            let done = self.round().await;
            if done.is_ok() != failing {
                continue;
            }
            failing = !failing;
            match done {
                Ok(()) => tracing::info!("figures are rolled up again"),
                Err(error) => tracing::warn!(%error, "figures are not rolled up; trying again"),
            }
        }
    }

    /// All that is to do now.
    async fn round(&mut self) -> Result<(), StoreError> {
        while self.done(self.counts.roll_up().await?) {
            tokio::time::sleep(PAUSE).await;
        }
        let now = self.clock.now();
        // After the clock was set back it is looked at once too often.
        if now < self.thin_at && self.thin_at.since(now) <= THIN_EVERY {
            return Ok(());
        }
        while self.done(self.counts.thin(now).await?) {
            tokio::time::sleep(PAUSE).await;
        }
        self.thin_at = now.plus(THIN_EVERY);
        Ok(())
    }

    /// Whether there is more to do.
    fn done(&self, rolled: Rolled) -> bool {
        self.rows.increment(u64::try_from(rolled.rows).unwrap_or(0));
        rolled.more
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use domain::figures::Figures;
    use resilience::ManualClock;
    use store::Reply;
    use store::counts::{Of, StepFigures, Steps};
    use tokio::sync::Notify;

    use super::*;

    /// Three pieces each time; the second call of all fails.
    #[derive(Default)]
    struct Pieces {
        rolled: AtomicUsize,
        thinned: Mutex<Vec<Timestamp>>,
        told: Notify,
    }

    impl Counts for Pieces {
        fn roll_up(&self) -> Reply<'static, Rolled> {
            let call = self.rolled.fetch_add(1, Ordering::SeqCst);
            self.told.notify_one();
            Box::pin(async move {
                if call == 1 {
                    return Err(StoreError::Unavailable("not now".to_owned()));
                }
                Ok(Rolled { rows: 1, more: call % 3 != 2 })
            })
        }

        fn thin(&self, now: Timestamp) -> Reply<'static, Rolled> {
            self.thinned.lock().unwrap().push(now);
            Box::pin(async { Ok(Rolled::default()) })
        }

        fn read(&self, _: Of, _: Steps) -> Reply<'_, Vec<StepFigures>> {
            Box::pin(async { Ok(Vec::new()) })
        }

        fn recent(&self, _: Timestamp, _: u32) -> Reply<'_, Figures> {
            Box::pin(async { Ok(Figures::default()) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_after_a_failure_and_thins_once_an_hour() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_secs(1_800_000_000)));
        let pieces = Arc::new(Pieces::default());
        let counts: Arc<dyn Counts> = Arc::<Pieces>::clone(&pieces);
        let begun = tokio::time::Instant::now();
        let roll_up = RollUp::new(counts, Arc::<ManualClock>::clone(&clock), Share::whole());
        let running = tokio::spawn(roll_up.run());
        let rolled = async |calls| {
            while pieces.rolled.load(Ordering::SeqCst) < calls {
                pieces.told.notified().await;
            }
        };
        rolled(2).await;
        assert!(pieces.thinned.lock().unwrap().is_empty());
        rolled(4).await;
        assert!(begun.elapsed() >= 3 * EVERY, "it waits after a failure and after all is done");
        assert_eq!(pieces.thinned.lock().unwrap().len(), 1);
        rolled(10).await;
        assert_eq!(pieces.thinned.lock().unwrap().len(), 1);
        clock.advance(THIN_EVERY);
        rolled(13).await;
        assert_eq!(pieces.thinned.lock().unwrap().len(), 2);
        running.abort();
    }
}
