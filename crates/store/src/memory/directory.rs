//! The directory, in the reference model.
//!
//! A deleted row stays under its key, so that history can name it; only live rows take part in
//! uniqueness.
//! Never: validate, or forget to raise the version.

use std::sync::Arc;

use domain::application::{AppSnapshot, Application, ApplicationSpec};
use domain::endpoint::Endpoint;
use domain::event_type::EventType;
use domain::ids::{AppKey, EndpointKey, PublicId};
use domain::notice::News;

use super::MemoryStore;
use super::notices::{note, note_all};
use super::state::{Live, State, page};
use super::writer::Tx;
use crate::directory::{Directory, EndpointChange, IdOrUid, NewEndpoint};
use crate::page::PageOf;
use crate::recall::Once;
use crate::{Reply, StoreError};

const NO_APP: StoreError = StoreError::Missing("application");
const NO_ENDPOINT: StoreError = StoreError::Missing("endpoint");
const NO_EVENT_TYPE: StoreError = StoreError::Missing("event type");

impl Directory for MemoryStore {
    fn create_app_once(
        &self,
        org: PublicId,
        spec: ApplicationSpec,
        random: [u8; 12],
        once: Once<Arc<Application>>,
    ) -> Reply<'static, Arc<Application>> {
        self.shared.write_once(once, move |tx| create_app(tx, org, spec, random))
    }

    fn update_app(&self, app: AppKey, spec: ApplicationSpec) -> Reply<'static, Arc<Application>> {
        self.shared.write(move |tx| update_app(tx, app, spec))
    }

    fn delete_app(&self, app: AppKey) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            tx.state.live_app(app).ok_or(NO_APP)?;
            tx.state.raise(app);
            note_all(tx, News::EndpointDeleted, app);
            tx.state.apps.entry(app).and_modify(|row| row.deleted = true);
            for endpoint in tx.state.endpoints.values_mut().filter(|row| row.row.app == app) {
                endpoint.deleted = true;
            }
            told(tx, app, None);
            Ok(())
        })
    }

    fn app(&self, org: PublicId, which: IdOrUid) -> Reply<'_, Option<AppSnapshot>> {
        self.read(move |state| {
            let found = live_apps(state).find(|app| {
                app.org == org
                    && match &which {
                        IdOrUid::Id(id) => app.id == *id,
                        IdOrUid::Uid(uid) => app.spec.uid.as_ref() == Some(uid),
                    }
            });
            found.map(|app| snapshot(state, app))
        })
    }

    fn app_by_key(&self, app: AppKey) -> Reply<'_, Option<AppSnapshot>> {
        self.read(move |state| state.live_app(app).map(|app| snapshot(state, app)))
    }

    fn apps(&self, org: PublicId, asked: PageOf<PublicId>) -> Reply<'_, Vec<Arc<Application>>> {
        self.read(move |state| {
            let mut apps: Vec<_> = live_apps(state).filter(|app| app.org == org).cloned().collect();
            apps.sort_by_key(|app| app.id);
            page(apps.into_iter(), &asked, |app| app.id)
        })
    }

    fn create_endpoint_once(
        &self,
        endpoint: NewEndpoint,
        once: Once<Arc<Endpoint>>,
    ) -> Reply<'static, Arc<Endpoint>> {
        self.shared.write_once(once, move |tx| create_endpoint(tx, endpoint))
    }

    fn change_endpoint_once(
        &self,
        endpoint: EndpointKey,
        change: EndpointChange,
        once: Once<Arc<Endpoint>>,
    ) -> Reply<'static, Arc<Endpoint>> {
        self.shared.write_once(once, move |tx| change_endpoint(tx, endpoint, change))
    }

    fn delete_endpoint(&self, endpoint: EndpointKey) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            let app = tx.state.live_endpoint(endpoint).ok_or(NO_ENDPOINT)?.app;
            tx.state.raise(app);
            tx.state.endpoints.entry(endpoint).and_modify(|row| row.deleted = true);
            told(tx, app, Some(endpoint));
            note(tx, News::EndpointDeleted, endpoint, None);
            Ok(())
        })
    }

    fn endpoint(&self, endpoint: EndpointKey) -> Reply<'_, Option<Arc<Endpoint>>> {
        self.read(move |state| state.live_endpoint(endpoint).cloned())
    }

    fn past_endpoints(&self, keys: Vec<EndpointKey>) -> Reply<'_, Vec<Arc<Endpoint>>> {
        self.read(move |state| {
            let found = keys.iter().filter_map(|key| state.endpoints.get(key));
            found.map(|live| Arc::clone(&live.row)).collect()
        })
    }

    fn create_event_type_once(
        &self,
        org: PublicId,
        event_type: EventType,
        once: Once<EventType>,
    ) -> Reply<'static, EventType> {
        self.shared.write_once(once, move |tx| {
            let name = (org, event_type.name.clone());
            if tx.state.event_types.get(&name).is_some_and(|found| !found.archived) {
                return Err(StoreError::Conflict("event type"));
            }
            tx.state.event_types.insert(name, event_type.clone());
            tx.rows += 1;
            Ok(event_type)
        })
    }

    fn update_event_type(&self, org: PublicId, event_type: EventType) -> Reply<'static, EventType> {
        self.shared.write(move |tx| {
            let name = (org, event_type.name.clone());
            let found = tx.state.event_types.get_mut(&name).ok_or(NO_EVENT_TYPE)?;
            *found = event_type;
            tx.rows += 1;
            Ok(found.clone())
        })
    }

    fn delete_event_type(&self, org: PublicId, name: String) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            tx.rows += 1;
            tx.state.event_types.remove(&(org, name)).map(drop).ok_or(NO_EVENT_TYPE)
        })
    }

    fn event_type(&self, org: PublicId, name: String) -> Reply<'_, Option<EventType>> {
        self.read(move |state| state.event_types.get(&(org, name)).cloned())
    }

    fn event_types(
        &self,
        org: PublicId,
        archived_too: bool,
        asked: PageOf<String>,
    ) -> Reply<'_, Vec<EventType>> {
        self.read(move |state| {
            let of_org = state.event_types.iter().filter(|((owner, _), _)| *owner == org);
            let found =
                of_org.map(|(_, found)| found).filter(|found| archived_too || !found.archived);
            page(found.cloned(), &asked, |found| found.name.clone())
        })
    }

    fn installation(&self) -> [u8; 16] {
        // Always the same, so that a simulation repeats itself from its seed.
        *b"peyk memory only"
    }
}

fn live_apps(state: &State) -> impl Iterator<Item = &Arc<Application>> {
    state.apps.values().filter_map(Live::alive)
}

/// Live endpoints of an application in order of creation.
fn endpoints_of(state: &State, app: AppKey) -> impl Iterator<Item = &Arc<Endpoint>> {
    state.endpoints.values().filter_map(Live::alive).filter(move |endpoint| endpoint.app == app)
}

fn snapshot(state: &State, app: &Arc<Application>) -> AppSnapshot {
    AppSnapshot { app: Arc::clone(app), endpoints: endpoints_of(state, app.key).cloned().collect() }
}

fn told(tx: &mut Tx<'_>, app: AppKey, endpoint: Option<EndpointKey>) {
    tx.rows += 1;
    tx.changed.push((app, endpoint));
}

fn app_uid_is_taken(state: &State, org: PublicId, uid: Option<&String>, but: AppKey) -> bool {
    let mut apps = live_apps(state).filter(|app| app.org == org && app.key != but);
    uid.is_some() && apps.any(|app| app.spec.uid.as_ref() == uid)
}

fn create_app(
    tx: &mut Tx<'_>,
    org: PublicId,
    spec: ApplicationSpec,
    random: [u8; 12],
) -> Result<Arc<Application>, StoreError> {
    let key = AppKey(tx.state.apps.last_key_value().map_or(1, |(last, _)| last.0 + 1));
    if app_uid_is_taken(tx.state, org, spec.uid.as_ref(), key) {
        return Err(StoreError::Conflict("uid"));
    }
    let id = PublicId::new(tx.draw(), random);
    let (created_at, updated_at) = (tx.now, tx.now);
    let row = Live::new(Application { key, id, org, spec, version: 1, created_at, updated_at });
    let app = Arc::clone(&row.row);
    tx.state.apps.insert(key, row);
    told(tx, key, None);
    Ok(app)
}

fn update_app(
    tx: &mut Tx<'_>,
    key: AppKey,
    spec: ApplicationSpec,
) -> Result<Arc<Application>, StoreError> {
    let org = tx.state.live_app(key).ok_or(NO_APP)?.org;
    if app_uid_is_taken(tx.state, org, spec.uid.as_ref(), key) {
        return Err(StoreError::Conflict("uid"));
    }
    tx.state.raise(key);
    let found = tx.state.apps.get_mut(&key).ok_or(NO_APP)?;
    let app = Arc::make_mut(&mut found.row);
    (app.spec, app.updated_at) = (spec, tx.now);
    let app = Arc::clone(&found.row);
    told(tx, key, None);
    Ok(app)
}

fn endpoint_uid_is_taken(
    state: &State,
    app: AppKey,
    uid: Option<&String>,
    but: EndpointKey,
) -> bool {
    let mut others = endpoints_of(state, app).filter(|endpoint| endpoint.key != but);
    uid.is_some() && others.any(|endpoint| endpoint.spec.uid.as_ref() == uid)
}

fn create_endpoint(tx: &mut Tx<'_>, new: NewEndpoint) -> Result<Arc<Endpoint>, StoreError> {
    let app_id = tx.state.live_app(new.app).ok_or(NO_APP)?.id;
    let key = EndpointKey(tx.state.endpoints.last_key_value().map_or(1, |(last, _)| last.0 + 1));
    if endpoint_uid_is_taken(tx.state, new.app, new.spec.uid.as_ref(), key) {
        return Err(StoreError::Conflict("uid"));
    }
    let endpoint = Endpoint {
        key,
        id: PublicId::new(tx.draw(), new.random),
        app: new.app,
        app_id,
        spec: new.spec,
        secrets: vec![new.secret],
        version: tx.state.raise(new.app),
        created_at: tx.now,
        updated_at: tx.now,
    };
    let made = insert_endpoint(tx, endpoint);
    note(tx, News::EndpointCreated, key, None);
    Ok(made)
}

fn change_endpoint(
    tx: &mut Tx<'_>,
    key: EndpointKey,
    change: EndpointChange,
) -> Result<Arc<Endpoint>, StoreError> {
    let mut endpoint = Endpoint::clone(tx.state.live_endpoint(key).ok_or(NO_ENDPOINT)?);
    if let Some(spec) = change.spec {
        if endpoint_uid_is_taken(tx.state, endpoint.app, spec.uid.as_ref(), key) {
            return Err(StoreError::Conflict("uid"));
        }
        endpoint.spec = spec;
    } else if let Some(disabled) = change.disabled {
        endpoint.spec.disabled = disabled;
    }
    if let Some(secrets) = change.secrets {
        endpoint.secrets = secrets;
    }
    let changed = put_endpoint(tx, endpoint);
    note(tx, News::EndpointUpdated, key, None);
    Ok(changed)
}

/// Writes a changed endpoint at the next version of its application.
pub(super) fn put_endpoint(tx: &mut Tx<'_>, mut endpoint: Endpoint) -> Arc<Endpoint> {
    endpoint.version = tx.state.raise(endpoint.app);
    endpoint.updated_at = tx.now;
    insert_endpoint(tx, endpoint)
}

fn insert_endpoint(tx: &mut Tx<'_>, endpoint: Endpoint) -> Arc<Endpoint> {
    let url = endpoint.spec.target.as_str();
    let urls = tx.state.urls.entry(endpoint.key).or_default();
    if urls.last().is_none_or(|(_, last)| last != url) {
        urls.push((tx.now, url.to_owned()));
    }
    let row = Live::new(endpoint);
    let endpoint = Arc::clone(&row.row);
    tx.state.endpoints.insert(endpoint.key, row);
    told(tx, endpoint.app, Some(endpoint.key));
    endpoint
}
