//! How many requests a second one token may make, where a setting says so. Of several nodes each
//! lets its part through.
//!
//! Never: let one token's requests count against another's.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use quick_cache::sync::Cache;
use resilience::{Rate, Timestamp};
use store::nodes::Share;

use super::problem::Problem;

/// Tokens whose rate is remembered.
const TOKENS_MAX: usize = 10_000;

/// The rates of all tokens.
pub(crate) struct TokenRates {
    per_s: u32,
    share: Arc<Share>,
    rates: Cache<[u8; 32], Arc<Mutex<Rate>>>,
}

impl TokenRates {
    /// So many requests a second; 0 for no bound.
    pub(crate) fn new(per_s: u32, share: Arc<Share>) -> Self {
        Self { per_s, share, rates: Cache::new(TOKENS_MAX) }
    }

    /// Counts a request of a token, or refuses it.
    pub(crate) fn take(&self, token: &[u8; 32], now: Timestamp) -> Result<(), Problem> {
        if self.per_s == 0 {
            return Ok(());
        }
        let part = self.share.part_of(self.per_s);
        let full = || Ok::<_, Infallible>(Arc::new(Mutex::new(Rate::new(part, now))));
        let Ok(rate) = self.rates.get_or_insert_with(token, full);
        let mut rate = rate.lock().unwrap_or_else(PoisonError::into_inner);
        // Another node may have come or gone since.
        rate.retune(part, now);
        rate.take(now).map_err(|_| Problem::rate_limited(self.per_s))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_token_has_a_rate_of_its_own() {
        let now = Timestamp::from_secs(1_800_000_000);
        let rates = TokenRates::new(2, Share::whole());
        let (one, other) = ([1; 32], [2; 32]);
        assert!(rates.take(&one, now).is_ok() && rates.take(&one, now).is_ok());
        assert_eq!(rates.take(&one, now).unwrap_err().status().as_u16(), 429);
        assert!(rates.take(&other, now).is_ok());
        assert!(rates.take(&one, now.plus(Duration::from_millis(500))).is_ok());
        let none = TokenRates::new(0, Share::whole());
        assert!((0..10_000).all(|_| none.take(&one, now).is_ok()));
    }

    #[test]
    fn of_three_nodes_each_lets_a_third_through_and_at_least_one() {
        let now = Timestamp::from_secs(1_800_000_000);
        let passed = |per_s, nodes| {
            let share = Share::whole();
            share.set_asked(nodes);
            let rates = TokenRates::new(per_s, share);
            (0..100).filter(|_| rates.take(&[1; 32], now).is_ok()).count()
        };
        assert_eq!([passed(10, 1), passed(10, 3), passed(2, 3)], [10, 3, 1]);
    }
}
