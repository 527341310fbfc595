//! Idle connections by origin, newest used first, bounded per origin and in all.
//!
//! Nobody watches an idle connection: it is looked at when taken, and by a sweep every few seconds.
//! Never: hand out a connection that is known to be closed or holds unread bytes; dial.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::link::Link;

/// How often idle connections are looked at, at most and at least.
const SWEEP_MAX: Duration = Duration::from_secs(5);
const SWEEP_MIN: Duration = Duration::from_millis(100);

/// Bounds of a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) per_origin_max: usize,
    pub(super) total_max: usize,
    pub(super) idle_max: Duration,
}

struct Idle {
    link: Link,
    since: Instant,
}

#[derive(Default)]
struct Shelves {
    by_origin: HashMap<String, Vec<Idle>>,
    count: usize,
}

/// The idle connections.
pub(super) struct Pool {
    bounds: Bounds,
    shelves: Mutex<Shelves>,
}

impl Pool {
    /// An empty pool, swept by a task that ends with it; must be called on a runtime.
    pub(super) fn start(bounds: Bounds) -> Arc<Self> {
        let pool = Arc::new(Self { bounds, shelves: Mutex::default() });
        tokio::spawn(sweep_until_dropped(
            Arc::downgrade(&pool),
            (bounds.idle_max / 2).clamp(SWEEP_MIN, SWEEP_MAX),
        ));
        pool
    }

    /// A connection that can take a request now.
    pub(super) fn take(&self, origin: &str) -> Option<Link> {
        loop {
            let mut idle = self.pop(origin)?;
            if idle.since.elapsed() < self.bounds.idle_max && idle.link.is_idle() {
                return Some(idle.link);
            }
        }
    }

    /// Keeps a connection, unless it is unclean or there are enough.
    pub(super) fn put(&self, origin: &str, mut link: Link) {
        if !link.is_idle() {
            return;
        }
        let idle = Idle { link, since: Instant::now() };
        let mut surplus = Vec::new();
        let mut shelves = self.lock();
        if shelves.count >= self.bounds.total_max {
            surplus = shelves.cut_older_half();
        }
        surplus.extend(shelves.add(origin, idle, self.bounds.per_origin_max));
        // Closing takes system calls: not under the lock.
        drop(shelves);
        drop(surplus);
    }

    /// Closes what was idle too long or has been closed by the peer.
    fn sweep(&self) {
        let mut dead = Vec::new();
        let mut shelves = self.lock();
        for shelf in shelves.by_origin.values_mut() {
            let gone = |idle: &mut Idle| {
                idle.since.elapsed() >= self.bounds.idle_max || !idle.link.is_idle()
            };
            dead.extend(shelf.extract_if(.., gone));
        }
        shelves.count -= dead.len();
        shelves.by_origin.retain(|_, shelf| !shelf.is_empty());
        drop(shelves);
        drop(dead);
    }

    fn pop(&self, origin: &str) -> Option<Idle> {
        let mut shelves = self.lock();
        let idle = shelves.by_origin.get_mut(origin)?.pop()?;
        shelves.count -= 1;
        Some(idle)
    }

    fn lock(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().count
    }
}

impl Shelves {
    /// Adds a connection, or hands it back if its origin has enough.
    fn add(&mut self, origin: &str, idle: Idle, max: usize) -> Option<Idle> {
        match self.by_origin.get_mut(origin) {
            Some(shelf) if shelf.len() >= max => return Some(idle),
            Some(shelf) => shelf.push(idle),
            None if max == 0 => return Some(idle),
            None => {
                self.by_origin.insert(origin.to_owned(), vec![idle]);
            }
        }
        self.count += 1;
        None
    }

    /// Makes room at the cost of those unused longest; half at once, so that it is rarely needed.
    fn cut_older_half(&mut self) -> Vec<Idle> {
        let mut times: Vec<_> = self.by_origin.values().flatten().map(|idle| idle.since).collect();
        if times.is_empty() {
            return Vec::new();
        }
        let middle = times.len() / 2;
        let limit = *times.select_nth_unstable(middle).1;
        let mut cut = Vec::new();
        for shelf in self.by_origin.values_mut() {
            cut.extend(shelf.extract_if(.., |idle| idle.since <= limit));
        }
        self.count -= cut.len();
        self.by_origin.retain(|_, shelf| !shelf.is_empty());
        cut
    }
}

async fn sweep_until_dropped(pool: Weak<Pool>, every: Duration) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match pool.upgrade() {
            Some(pool) => pool.sweep(),
            None => return,
        }
    }
}
