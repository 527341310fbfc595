//! So many calls at once, so many in line behind them, and no more.
//!
//! Clones share the places. Waiting is in order; a caller that gives up leaves the line.
//! Never: queue without a bound, wait by a clock: the timeout around it bounds the wait.

use std::fmt;
use std::sync::Arc;

use resilience::ConfigError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::errors::BulkheadFull;

/// Bounds how many calls run at once.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use http_adapter::Bulkhead;
///
/// let bulkhead = Bulkhead::new(1)?;
/// let place = bulkhead.acquire().await?;
/// assert!(bulkhead.acquire().await.is_err(), "full, and there is no queue");
/// drop(place);
/// assert!(bulkhead.acquire().await.is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Bulkhead {
    running_max: usize,
    queued_max: usize,
    running: Arc<Semaphore>,
    queued: Arc<Semaphore>,
}

impl Bulkhead {
    /// `calls` at once, at least 1, and no queue.
    pub fn new(calls: usize) -> Result<Self, ConfigError> {
        ConfigError::unless(calls > 0, "bulkhead", "must let at least 1 call through")?;
        let running_max = calls.min(Semaphore::MAX_PERMITS);
        Ok(Self {
            running_max,
            queued_max: 0,
            running: Arc::new(Semaphore::new(running_max)),
            queued: Arc::new(Semaphore::new(0)),
        })
    }

    /// So many more may wait for a place.
    #[must_use]
    pub fn queue(mut self, calls: usize) -> Self {
        self.queued_max = calls.min(Semaphore::MAX_PERMITS);
        self.queued = Arc::new(Semaphore::new(self.queued_max));
        self
    }

    /// A place, at once or after those who came before; dropped, it is free again.
    pub async fn acquire(&self) -> Result<BulkheadPermit, BulkheadFull> {
        match self.try_acquire() {
            Some(place) => Ok(place),
            None => self.line_up()?.await,
        }
    }

    /// Calls that run now.
    pub fn running(&self) -> usize {
        self.running_max.saturating_sub(self.running.available_permits())
    }

    /// Calls that wait now.
    pub fn queued(&self) -> usize {
        self.queued_max.saturating_sub(self.queued.available_permits())
    }

    /// A place that is free now.
    pub(crate) fn try_acquire(&self) -> Option<BulkheadPermit> {
        Arc::clone(&self.running).try_acquire_owned().ok().map(BulkheadPermit)
    }

    /// A place in the line.
    pub(crate) fn line_up(
        &self,
    ) -> Result<
        impl Future<Output = Result<BulkheadPermit, BulkheadFull>> + Send + use<>,
        BulkheadFull,
    > {
        let full = BulkheadFull::new(self.running_max, self.queued_max);
        let waiting = Arc::clone(&self.queued).try_acquire_owned().map_err(|_| full)?;
        let running = Arc::clone(&self.running);
        Ok(async move {
            let place = running.acquire_owned().await.map_err(|_| full)?;
            drop(waiting);
            Ok(BulkheadPermit(place))
        })
    }
}

impl fmt::Debug for Bulkhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulkhead")
            .field("running", &self.running())
            .field("running_max", &self.running_max)
            .field("queued", &self.queued())
            .field("queued_max", &self.queued_max)
            .finish()
    }
}

/// One place; dropped, it is free again.
#[derive(Debug)]
pub struct BulkheadPermit(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);
