//! How many messages a second an application may post, where it says so.
//!
//! In: an application and the time. Out: a token, or how long until the next one. A bucket begins
//! full; one that was forgotten for want of room begins anew. Of several nodes that answer the API
//! each lets its part through, so that all of them together keep to the rate.
//! Never: hold up an application that names no rate, or one because of another.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::application::Application;
use domain::ids::AppKey;
use quick_cache::sync::Cache;
use resilience::{Clock, Rate};
use store::nodes::Share;

/// Applications whose bucket is remembered.
const APPS_MAX: usize = 10_000;

/// The buckets of all applications.
pub struct AppRates {
    clock: Arc<dyn Clock>,
    share: Arc<Share>,
    rates: Cache<AppKey, Arc<Mutex<Rate>>>,
}

/// An application has posted what it may in this second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttled {
    /// What it may post.
    pub per_s: u16,
    /// Until it may post again.
    pub wait: Duration,
}

impl AppRates {
    /// All full.
    pub fn new(clock: Arc<dyn Clock>, share: Arc<Share>) -> Self {
        Self { clock, share, rates: Cache::new(APPS_MAX) }
    }

    /// Counts one message of an application.
    pub fn take(&self, app: &Application) -> Result<(), Throttled> {
        let Some(per_s) = app.spec.throttle_rate else { return Ok(()) };
        let now = self.clock.now();
        let part = self.share.part_of(per_s.into());
        let full = || Ok::<_, Infallible>(Arc::new(Mutex::new(Rate::new(part, now))));
        let Ok(rate) = self.rates.get_or_insert_with(&app.key, full);
        let mut rate = rate.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have been changed since, and nodes may have come or gone.
        rate.retune(part, now);
        rate.take(now).map_err(|at| Throttled { per_s, wait: at.since(now) })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use domain::application::ApplicationSpec;
    use domain::ids::PublicId;
    use resilience::Timestamp;

    use super::*;

    #[derive(Default)]
    struct At(AtomicI64);

    impl Clock for At {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(self.0.load(Ordering::Relaxed))
        }
    }

    fn app(key: i64, throttle_rate: Option<u16>) -> Application {
        let spec =
            ApplicationSpec { name: "a".into(), uid: None, throttle_rate, metadata: "{}".into() };
        let (id, at) = (PublicId::new(1, [0; 12]), Timestamp::EPOCH);
        let (key, version) = (AppKey(key), 1);
        Application { key, id, org: id, spec, version, created_at: at, updated_at: at }
    }

    #[test]
    fn each_application_has_a_rate_of_its_own_which_may_change() {
        let clock = Arc::new(At::default());
        let share = Share::whole();
        let rates = AppRates::new(Arc::<At>::clone(&clock), Arc::clone(&share));
        let (two, other) = (app(1, Some(2)), app(2, Some(1)));
        assert!(rates.take(&two).is_ok() && rates.take(&two).is_ok());
        let wait = Duration::from_millis(500);
        assert_eq!(rates.take(&two), Err(Throttled { per_s: 2, wait }));
        assert!(rates.take(&other).is_ok() && rates.take(&other).is_err());
        assert!((0..1_000).all(|_| rates.take(&app(1, None)).is_ok()));
        clock.0.store(500_000, Ordering::Relaxed);
        assert!(rates.take(&two).is_ok() && rates.take(&two).is_err());
        let wait = Duration::from_millis(100);
        assert_eq!(rates.take(&app(1, Some(10))), Err(Throttled { per_s: 10, wait }));
        share.set_asked(3);
        let nine = app(3, Some(9));
        assert_eq!((0..100).filter(|_| rates.take(&nine).is_ok()).count(), 3, "its part");
        assert_eq!(rates.take(&nine).unwrap_err().per_s, 9, "the rate of all is told");
        let (one, first) = (app(4, Some(1)), 1);
        assert_eq!((0..100).filter(|_| rates.take(&one).is_ok()).count(), first, "at least one");
    }
}
