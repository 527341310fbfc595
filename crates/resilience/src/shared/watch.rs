//! News that a breaker in a store has changed, passed on to those who watch it.
//!
//! Whoever writes a store tells [`Changes`] what its server tells it; each [`Watch`] then looks for
//! itself. A change that was missed is found with the next news.
//! Never: say what has changed, grow with the number of changes.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use super::bell::Bell;

type Bells = HashMap<Arc<str>, Vec<Weak<Bell>>>;

/// Where a store tells of changes. Clones are the same place.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    bells: Arc<Mutex<Bells>>,
}

impl Changes {
    /// With nobody watching.
    pub fn new() -> Self {
        Self::default()
    }

    /// Hears of changes to the breaker of `key` from now on.
    pub fn watch(&self, key: &str) -> Watch {
        let (key, bell) = (Arc::<str>::from(key), Arc::new(Bell::default()));
        self.bells().entry(Arc::clone(&key)).or_default().push(Arc::downgrade(&bell));
        Watch(Some(Place { changes: self.clone(), key, bell }))
    }

    /// The breaker of `key` has changed.
    pub fn tell(&self, key: &str) {
        let bells = self.bells().get(key).cloned();
        ring(bells.into_iter().flatten());
    }

    /// Any breaker may have changed: news were missed.
    pub fn tell_all(&self) {
        let bells: Vec<_> = self.bells().values().flatten().cloned().collect();
        ring(bells);
    }

    fn bells(&self) -> MutexGuard<'_, Bells> {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ring(bells: impl IntoIterator<Item = Weak<Bell>>) {
    for bell in bells.into_iter().filter_map(|bell| bell.upgrade()) {
        bell.ring();
    }
}

/// Hears of changes to one breaker.
#[derive(Debug)]
#[must_use = "what is dropped hears nothing"]
pub struct Watch(Option<Place>);

#[derive(Debug)]
struct Place {
    changes: Changes,
    key: Arc<str>,
    bell: Arc<Bell>,
}

impl Watch {
    /// Hears nothing: for stores that nobody tells of changes.
    pub const fn deaf() -> Self {
        Self(None)
    }

    /// Waits for a change since the last one that was heard of. Changes in quick succession may be
    /// heard of as one.
    pub async fn changed(&mut self) {
        poll_fn(|context| self.poll_changed(context)).await;
    }

    pub(super) fn poll_changed(&self, context: &Context<'_>) -> Poll<()> {
        self.0.as_ref().map_or(Poll::Pending, |place| place.bell.poll_heard(context))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut bells = self.changes.bells();
        let Some(of_key) = bells.get_mut(&self.key) else { return };
        of_key.retain(|bell| !std::ptr::eq(bell.as_ptr(), Arc::as_ptr(&self.bell)));
        if of_key.is_empty() {
            bells.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn heard(watch: &Watch) -> bool {
        watch.poll_changed(&Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_change_is_heard_once_by_each_who_watches_it() {
        let changes = Changes::new();
        let (one, two, other) = (changes.watch("a"), changes.watch("a"), changes.watch("b"));
        changes.tell("a");
        changes.tell("a");
        assert_eq!([&one, &two, &other].map(heard), [true, true, false]);
        assert_eq!([&one, &two, &other].map(heard), [false, false, false]);
        changes.tell_all();
        assert_eq!([&one, &two, &other].map(heard), [true, true, true]);
    }

    #[test]
    fn who_stops_watching_leaves_nothing_behind() {
        let changes = Changes::new();
        let (one, two) = (changes.watch("a"), changes.watch("a"));
        drop(one);
        changes.tell("a");
        assert!(heard(&two), "the other still hears");
        drop(two);
        assert!(changes.bells().is_empty());
    }

    #[tokio::test]
    async fn a_change_wakes_the_one_who_waits() {
        let changes = Changes::new();
        let mut watch = changes.watch("a");
        let waits = tokio::spawn(async move { watch.changed().await });
        tokio::task::yield_now().await;
        changes.tell("a");
        waits.await.unwrap();
    }
}
