//! The directory at hand: applications with their endpoints, cached until they change.
//!
//! A copy may be stale; what is accepted is checked against its version in the store, and `forget`
//! is called by the writer before a change is answered.
//! Never: write, or hold more than its bound.

use std::sync::Arc;

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
}

impl Roster {
    /// An empty cache.
    pub fn new(directory: Arc<dyn Directory>) -> Self {
        Self { directory, names: Cache::new(2 * APPS_MAX), apps: Cache::new(APPS_MAX) }
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
        let Some(fresh) = self.directory.app(org, which.clone()).await? else { return Ok(None) };
        let fresh = Arc::new(fresh);
        self.apps.insert(fresh.app.key, Arc::clone(&fresh));
        self.names.insert(name, fresh.app.key);
        Ok(Some(fresh))
    }

    /// Drops the copy of an application; names still lead to its key, and from there to fresh rows.
    pub fn forget(&self, app: AppKey) {
        if let Some((_, old)) = self.apps.remove(&app) {
            let org = old.app.org;
            self.names.remove(&(org, IdOrUid::Id(old.app.id)));
            if let Some(uid) = &old.app.spec.uid {
                self.names.remove(&(org, IdOrUid::Uid(uid.clone())));
            }
        }
    }
}
