//! The directory at hand: applications with their endpoints, cached until they change.
//!
//! A copy may be stale; what is accepted is checked against its version in the store, and `forget`
//! is called by the writer before a change is answered.
//! Never: write, or hold more than its bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::application::AppSnapshot;
use domain::ids::{AppKey, PublicId};
use quick_cache::sync::Cache;
use store::StoreError;
use store::directory::{Directory, IdOrUid};

/// Applications kept.
const APPS_MAX: usize = 20_000;

/// A bounded cache over a [`Directory`].
pub struct Roster {
    directory: Arc<dyn Directory>,
    names: Cache<(PublicId, IdOrUid), AppKey>,
    apps: Cache<AppKey, Arc<AppSnapshot>>,
    /// How many changes were told so far.
    changes: AtomicU64,
}

impl Roster {
    /// An empty cache.
    pub fn new(directory: Arc<dyn Directory>) -> Self {
        Self {
            directory,
            names: Cache::new(2 * APPS_MAX),
            apps: Cache::new(APPS_MAX),
            changes: AtomicU64::new(0),
        }
    }

    /// The application that `which` names in the organisation.
    pub async fn app(
        &self,
        org: PublicId,
        which: &IdOrUid,
    ) -> Result<Option<Arc<AppSnapshot>>, StoreError> {
        let name = (org, which.clone());
        if let Some(found) = self.names.get(&name).and_then(|key| self.apps.get(&key)) {
            return Ok(Some(found));
        }
        let changes = self.changes.load(Ordering::SeqCst);
        let Some(fresh) = self.directory.app(org, which.clone()).await? else { return Ok(None) };
        let fresh = Arc::new(fresh);
        self.keep(name, &fresh, changes);
        Ok(Some(fresh))
    }

    /// The application with this key, at this version or as it is now; `None` if it is gone.
    pub(crate) async fn at(
        &self,
        app: AppKey,
        version: i64,
    ) -> Result<Option<Arc<AppSnapshot>>, StoreError> {
        let kept = self.apps.get(&app);
        if let Some(found) = kept.filter(|found| found.app.version == version) {
            return Ok(Some(found));
        }
        let changes = self.changes.load(Ordering::SeqCst);
        let Some(fresh) = self.directory.app_by_key(app).await? else { return Ok(None) };
        let fresh = Arc::new(fresh);
        self.keep((fresh.app.org, IdOrUid::Id(fresh.app.id)), &fresh, changes);
        Ok(Some(fresh))
    }

    /// Keeps what was read after so many changes. If one was told meanwhile it may be older than
    /// that, and whoever told of it is gone: it is dropped again.
    fn keep(&self, name: (PublicId, IdOrUid), fresh: &Arc<AppSnapshot>, changes: u64) {
        let key = fresh.app.key;
        self.apps.insert(key, Arc::clone(fresh));
        self.names.insert(name.clone(), key);
        if self.changes.load(Ordering::SeqCst) != changes {
            self.apps.remove(&key);
            self.names.remove(&name);
        }
    }

    /// Drops the copy of an application; names still lead to its key, and from there to fresh rows.
    pub fn forget(&self, app: AppKey) {
        // Before anything is removed, so that whoever keeps something after that sees it.
        self.changes.fetch_add(1, Ordering::SeqCst);
        if let Some((_, old)) = self.apps.remove(&app) {
            let org = old.app.org;
            self.names.remove(&(org, IdOrUid::Id(old.app.id)));
            if let Some(uid) = &old.app.spec.uid {
                self.names.remove(&(org, IdOrUid::Uid(uid.clone())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use resilience::ManualClock;
    use store::conformance::world::{ORG, World};
    use store::conformance::{START, samples};
    use store::memory::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn what_was_read_before_a_change_is_not_kept_after_it() {
        let clock = Arc::new(ManualClock::new(START));
        let store = MemoryStore::new(Arc::clone(&clock) as _);
        let world = World::new(Box::new(Arc::clone(&store)), clock);
        let directory = Arc::clone(&world.stores.directory);
        let roster = Roster::new(Arc::clone(&directory));
        let made = directory.create_app(ORG, samples::app(Some("a")), [7; 12]).await.unwrap();
        let by_uid = IdOrUid::Uid("a".into());

        // A read that began before the application was deleted and ends after that was told.
        let changes = roster.changes.load(Ordering::SeqCst);
        let old = directory.app(ORG, by_uid.clone()).await.unwrap().unwrap();
        directory.delete_app(made.key).await.unwrap();
        roster.forget(made.key);
        roster.keep((ORG, by_uid.clone()), &Arc::new(old), changes);
        assert!(roster.app(ORG, &by_uid).await.unwrap().is_none());

        // Without a change it is kept, and not read again.
        let next = directory.create_app(ORG, samples::app(Some("a")), [8; 12]).await.unwrap();
        let first = roster.app(ORG, &by_uid).await.unwrap().unwrap();
        let second = roster.app(ORG, &by_uid).await.unwrap().unwrap();
        assert_eq!(first.app.key, next.key);
        assert!(Arc::ptr_eq(&first, &second));
    }
}
