//! Whether the storage commits, as the health of the server: asked for by whoever watches it, found
//! out by a write.
//!
//! A write is begun at most once a second and only when asked for, so recovery is seen without
//! traffic. While one does not come back, no other is begun.
//! Never: report well what was not asked.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use resilience::{Clock, Timestamp};
use store::StoreError;
use store::inbox::Inbox;
use tokio::sync::watch;

/// What was found out is good for so long.
const FRESH: Duration = Duration::from_secs(1);
/// A write that takes longer has failed, for as long as it takes.
pub(crate) const BOUND: Duration = Duration::from_secs(5);

/// Finds out whether the storage commits.
pub(crate) struct StorageCheck {
    inbox: Arc<dyn Inbox>,
    clock: Arc<dyn Clock>,
    last: Mutex<Option<Write>>,
}

/// A write that was begun, and what came of it once it is over.
#[derive(Clone)]
struct Write {
    begun: Timestamp,
    outcome: watch::Receiver<Option<Result<(), StoreError>>>,
}

impl StorageCheck {
    /// Nothing is known yet.
    pub(crate) fn new(inbox: Arc<dyn Inbox>, clock: Arc<dyn Clock>) -> Self {
        Self { inbox, clock, last: Mutex::default() }
    }

    /// Whether the storage commits, or why not.
    pub(crate) async fn commits(&self) -> Result<(), String> {
        let now = self.clock.now();
        let Write { begun, mut outcome } = self.current(now);
        let left = BOUND.saturating_sub(now.since(begun));
        let over = tokio::time::timeout(left, outcome.wait_for(Option::is_some)).await;
        match over {
            Ok(Ok(outcome)) => match &*outcome {
                Some(Err(StoreError::Unavailable(why) | StoreError::Corrupt(why))) => {
                    Err(why.clone())
                }
                Some(Err(fault)) => Err(fault.to_string()),
                Some(Ok(())) | None => Ok(()),
            },
            Ok(Err(_)) => Err("the check broke off".to_owned()),
            Err(_) => Err(format!("a commit takes longer than {} s", BOUND.as_secs())),
        }
    }

    /// The last write while it is under way or fresh, else a new one.
    fn current(&self, now: Timestamp) -> Write {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(write) = &*last
            && (write.outcome.borrow().is_none() || now.since(write.begun) < FRESH)
        {
            return write.clone();
        }
        let (tell, outcome) = watch::channel(None);
        let written = self.inbox.probe();
        tokio::spawn(async move { tell.send(Some(written.await)) });
        last.insert(Write { begun: now, outcome }).clone()
    }
}

#[cfg(test)]
mod tests {
    use resilience::ManualClock;
    use store::memory::MemoryStore;

    use super::*;

    struct World {
        check: StorageCheck,
        store: Arc<MemoryStore>,
        clock: Arc<ManualClock>,
    }

    fn world() -> World {
        let clock = Arc::new(ManualClock::new(Timestamp::from_secs(1_000)));
        let store = MemoryStore::new(Arc::clone(&clock) as _);
        let check = StorageCheck::new(Arc::clone(&store) as _, Arc::clone(&clock) as _);
        World { check, store, clock }
    }

    #[tokio::test]
    async fn a_fault_is_told_and_recovery_is_seen_without_traffic() {
        let world = world();
        assert_eq!(world.check.commits().await, Ok(()));
        world.store.fail_next(1);
        assert_eq!(world.check.commits().await, Ok(()), "what is fresh is not asked again");
        world.clock.advance(FRESH);
        assert_eq!(world.check.commits().await, Err("told to fail".to_owned()));
        assert!(world.check.commits().await.is_err());
        world.clock.advance(FRESH);
        assert_eq!(world.check.commits().await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_commit_that_does_not_end_is_a_fault_until_it_ends() {
        let world = world();
        world.store.commit_delay(BOUND * 3);
        assert!(world.check.commits().await.unwrap_err().contains("longer than 5 s"));
        world.clock.advance(BOUND);
        let asked = tokio::time::Instant::now();
        assert!(world.check.commits().await.unwrap_err().contains("longer than 5 s"));
        assert!(asked.elapsed() < Duration::from_secs(1), "and is then told at once");
        tokio::time::advance(BOUND * 3).await;
        while world.check.commits().await.is_err() {
            tokio::task::yield_now().await;
        }
    }
}
