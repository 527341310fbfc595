//! Remembers answers for their time to live, and asks once for many who wait for the same name.
//!
//! In: lookups with a time to live. Out: a `Resolve` over them.
//! Never: use an answer longer than a minute, remember a fault of ours, or grow without bound.

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::limits::{DNS_TTL_MAX, DNS_TTL_MIN};
use futures_util::FutureExt;
use futures_util::future::{Shared, WeakShared};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::{Resolve, ResolveError, Resolving};

/// Names remembered.
const NAMES_MAX: usize = 4_096;
/// Lookups under way; each holds sockets.
const LOOKUPS_MAX: usize = 256;

/// Addresses and how long they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// All addresses, in the order in which to try them.
    pub addresses: Vec<IpAddr>,
    /// As the zone says; it is kept within bounds here.
    pub ttl: Duration,
}

/// One lookup, uncached.
pub type Lookup = Pin<Box<dyn Future<Output = Result<Found, ResolveError>> + Send>>;

/// Where answers come from.
pub trait Source: Send + Sync + 'static {
    /// Looks up `name`.
    fn lookup(&self, name: String) -> Lookup;
}

type Answer = Result<Vec<IpAddr>, ResolveError>;
type Flight = Pin<Box<dyn Future<Output = Answer> + Send>>;

enum Entry {
    Known(Answer, Instant),
    /// Held by those who wait; if all of them leave, the next one asks anew.
    Asked(WeakShared<Flight>),
}

impl Entry {
    fn is_over(&self, now: Instant) -> bool {
        match self {
            Self::Known(_, until) => *until <= now,
            Self::Asked(flight) => flight.upgrade().is_none(),
        }
    }
}

struct Inner<S> {
    source: S,
    slots: Semaphore,
    names: Mutex<HashMap<String, Entry>>,
}

/// A resolver with a memory.
pub struct CachedResolver<S>(Arc<Inner<S>>);

impl<S: Source> CachedResolver<S> {
    /// Over `source`, knowing nothing yet.
    pub fn new(source: S) -> Self {
        let slots = Semaphore::new(LOOKUPS_MAX);
        Self(Arc::new(Inner { source, slots, names: Mutex::default() }))
    }

    fn flight(&self, name: String) -> Shared<Flight> {
        let inner = Arc::clone(&self.0);
        let flight: Flight = Box::pin(async move {
            let _slot = inner.slots.acquire().await;
            let answer = inner.source.lookup(name.clone()).await;
            inner.remember(name, answer)
        });
        flight.shared()
    }
}

impl<S: Source> Resolve for CachedResolver<S> {
    fn resolve(&self, name: String) -> Resolving {
        let now = Instant::now();
        let mut names = self.0.lock();
        let flight = match names.get(&name) {
            Some(Entry::Known(answer, until)) if *until > now => {
                return Box::pin(std::future::ready(answer.clone()));
            }
            Some(Entry::Asked(flight)) => flight.upgrade(),
            _ => None,
        };
        let flight = flight.unwrap_or_else(|| {
            let flight = self.flight(name.clone());
            if let Some(weak) = flight.downgrade() {
                make_room(&mut names, now);
                names.insert(name, Entry::Asked(weak));
            }
            flight
        });
        drop(names);
        Box::pin(flight)
    }
}

impl<S> Inner<S> {
    fn remember(&self, name: String, answer: Result<Found, ResolveError>) -> Answer {
        let (answer, ttl) = match answer {
            Ok(found) => (Ok(found.addresses), found.ttl.clamp(DNS_TTL_MIN, DNS_TTL_MAX)),
            // Zones get mended: long enough for a crowd, too short for anybody to wait for.
            Err(error @ ResolveError::Unresolved(_)) => (Err(error), DNS_TTL_MIN),
            Err(error @ ResolveError::Broken(_)) => (Err(error), Duration::ZERO),
        };
        let mut names = self.lock();
        if ttl.is_zero() {
            names.remove(&name);
        } else {
            let now = Instant::now();
            make_room(&mut names, now);
            names.insert(name, Entry::Known(answer.clone(), now + ttl));
        }
        answer
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops what is over; if that is not enough, all answers: they are cheap to ask for again.
fn make_room(names: &mut HashMap<String, Entry>, now: Instant) {
    if names.len() < NAMES_MAX {
        return;
    }
    names.retain(|_, entry| !entry.is_over(now));
    if names.len() >= NAMES_MAX {
        names.retain(|_, entry| matches!(entry, Entry::Asked(_)));
    }
}

#[cfg(test)]
mod tests;
