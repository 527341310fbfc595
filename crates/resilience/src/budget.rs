//! A retry budget: retries may be so many for each call, however many calls fail.
//!
//! In: calls and retries with their time. Out: whether one more retry may be made. Whole-number
//! arithmetic, so that a fifth is a fifth. One budget is shared by all its clones.
//! Never: wait, mint from a clock that steps back, count the first call as a retry.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::ConfigError;
use crate::ring::Ring;

/// One retry in the unit of account.
const RETRY: u64 = 1_000_000;
/// More retries for each call than this is no budget.
const RATIO_MAX: f64 = 100.0;
const PER_SECOND_MAX: u32 = 1_000_000;
const TTL_MAX: Duration = Duration::from_secs(3_600);

/// What happened in a part of the time that is looked at.
#[derive(Clone, Copy, Default)]
struct Bucket {
    /// Earned by calls and not yet spent.
    earned: u64,
    /// Retries made on the floor.
    floor_used: u64,
}

/// How many retries a number of calls earns.
///
/// ```
/// use std::time::Duration;
/// use resilience::RetryBudget;
///
/// // One retry for every five calls, and ten a second in any case.
/// let budget = RetryBudget::ratio(0.2).floor_per_sec(10).ttl(Duration::from_secs(10));
/// assert!(budget.validate().is_ok());
/// ```
#[derive(Clone)]
pub struct RetryBudget {
    units: Option<u64>,
    per_second: u32,
    ttl: Duration,
    account: Arc<Mutex<Option<Ring<Bucket>>>>,
}

impl RetryBudget {
    /// `ratio` retries for each call of the last 10 s, and none beyond them.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked against the bounds before"
    )]
    pub fn ratio(ratio: f64) -> Self {
        let units =
            (0.0..=RATIO_MAX).contains(&ratio).then(|| (ratio * 1_000_000.0).round() as u64);
        Self {
            units,
            per_second: 0,
            ttl: Duration::from_secs(10),
            account: Arc::new(Mutex::new(None)),
        }
    }

    /// So many retries a second are allowed in any case, for clients that make few calls.
    #[must_use]
    pub fn floor_per_sec(self, retries: u32) -> Self {
        Self { per_second: retries, account: Arc::default(), ..self }
    }

    /// How long a call goes on earning, and a retry goes on costing.
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl, account: Arc::default(), ..self }
    }

    /// Checks every option and names the first that breaks a rule.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless(self.units.is_some(), "budget.ratio", "must be from 0 to 100")?;
        let earns = self.units != Some(0) || self.per_second > 0;
        ConfigError::unless(earns, "budget.ratio", "must be above zero without a floor")?;
        let floor = self.per_second <= PER_SECOND_MAX;
        ConfigError::unless(floor, "budget.floor_per_sec", "must be at most 1000000")?;
        let ttl = (Duration::from_secs(1)..=TTL_MAX).contains(&self.ttl);
        ConfigError::unless(ttl, "budget.ttl", "must be from 1 s to 1 h")
    }

    /// A call was made for the first time.
    pub fn deposit(&self, now: Timestamp) {
        let mut account = self.account();
        let ring = account.get_or_insert_with(|| Ring::new(self.ttl, now));
        if let Some(bucket) = ring.at(now) {
            bucket.earned = bucket.earned.saturating_add(self.units.unwrap_or(0));
        }
    }

    /// Pays for one retry, or says that there is nothing left.
    ///
    /// What is paid comes back when the [`Withdrawal`] is dropped before it is spent.
    pub fn withdraw(&self, now: Timestamp) -> Option<Withdrawal> {
        let mut account = self.account();
        let ring = account.get_or_insert_with(|| Ring::new(self.ttl, now));
        ring.at(now);
        let earned = earned(ring) >= RETRY;
        if earned {
            spend_oldest(ring);
        } else if floor_used(ring) < self.floor() {
            let bucket = ring.at(now)?;
            bucket.floor_used = bucket.floor_used.saturating_add(1);
        } else {
            return None;
        }
        Some(Withdrawal { budget: self.clone(), at: now, earned, spent: false })
    }

    /// Whole retries that could be made now.
    pub fn left(&self, now: Timestamp) -> u64 {
        let mut account = self.account();
        let ring = account.get_or_insert_with(|| Ring::new(self.ttl, now));
        ring.at(now);
        (earned(ring) / RETRY).saturating_add(self.floor().saturating_sub(floor_used(ring)))
    }

    /// Into the bucket of its time: what has fallen out of the span is no longer charged and must
    /// not be paid back.
    fn refund(&self, paid: Timestamp, earned: bool) {
        let mut account = self.account();
        match account.as_mut().and_then(|ring| ring.when(paid)) {
            Some(bucket) if earned => bucket.earned = bucket.earned.saturating_add(RETRY),
            Some(bucket) => bucket.floor_used = bucket.floor_used.saturating_sub(1),
            None => {}
        }
    }

    /// What the floor allows over the whole time that is looked at.
    fn floor(&self) -> u64 {
        u64::from(self.per_second).saturating_mul(self.ttl.as_secs().max(1))
    }

    fn account(&self) -> MutexGuard<'_, Option<Ring<Bucket>>> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RetryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryBudget")
            .field("units", &self.units)
            .field("per_second", &self.per_second)
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}

/// One paid retry. Dropped before it is spent, as when the caller gives up during the wait, it goes
/// back into the budget.
#[derive(Debug)]
#[must_use = "dropping it gives the retry back"]
pub struct Withdrawal {
    budget: RetryBudget,
    at: Timestamp,
    earned: bool,
    spent: bool,
}

impl Withdrawal {
    /// The retry is made.
    pub fn spend(mut self) {
        self.spent = true;
    }
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        if !self.spent {
            self.budget.refund(self.at, self.earned);
        }
    }
}

fn earned(ring: &Ring<Bucket>) -> u64 {
    ring.buckets().iter().fold(0, |sum: u64, bucket| sum.saturating_add(bucket.earned))
}

fn floor_used(ring: &Ring<Bucket>) -> u64 {
    ring.buckets().iter().fold(0, |sum: u64, bucket| sum.saturating_add(bucket.floor_used))
}

/// Takes one retry from what expires first, so that nothing is lost that could have been spent.
fn spend_oldest(ring: &mut Ring<Bucket>) {
    let mut left = RETRY;
    for bucket in ring.oldest_first() {
        let taken = left.min(bucket.earned);
        bucket.earned -= taken;
        left -= taken;
    }
}

#[cfg(test)]
mod tests;
