//! The directory, in SQLite: applications and endpoints.
//!
//! A deleted row stays under its key, so that history can name it; only live rows take part in
//! uniqueness, by partial unique indexes.
//! Never: change an endpoint without raising its application's version, or an address without
//! keeping the old one.

use std::sync::Arc;

use domain::application::{AppSnapshot, Application, ApplicationSpec};
use domain::endpoint::Endpoint;
use domain::event_type::EventType;
use domain::ids::{AppKey, EndpointKey, PublicId};
use rusqlite::{ToSql, params};

use super::applications::{
    APP, application, live_app, live_endpoint, past_endpoints, with_endpoints,
};
use super::queue::bound;
use super::rows::{all, one};
use super::{SqliteStore, event_types};
use crate::Reply;
use crate::directory::{Directory, EndpointChange, IdOrUid, NewEndpoint};
use crate::page::{Direction, PageOf};
use crate::recall::Once;

impl Directory for SqliteStore {
    fn create_app_once(
        &self,
        org: PublicId,
        spec: ApplicationSpec,
        random: [u8; 12],
        once: Once<Arc<Application>>,
    ) -> Reply<'static, Arc<Application>> {
        self.change_once(once, move |tx| tx.create_app(org, spec, random))
    }

    fn update_app(&self, app: AppKey, spec: ApplicationSpec) -> Reply<'static, Arc<Application>> {
        self.shared.door.change(move |tx| tx.update_app(app, spec))
    }

    fn delete_app(&self, app: AppKey) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| tx.delete_app(app))
    }

    fn app(&self, org: PublicId, which: IdOrUid) -> Reply<'_, Option<AppSnapshot>> {
        let cipher = self.cipher.clone();
        self.readers.read(move |conn| {
            let snapshot = conn.unchecked_transaction()?;
            let (column, name): (_, Box<dyn ToSql>) = match which {
                IdOrUid::Id(id) => ("id", Box::new(*id.as_bytes())),
                IdOrUid::Uid(uid) => ("uid", Box::new(uid)),
            };
            let sql = format!(
                "SELECT {APP} FROM app WHERE {column} = ?1 AND org = ?2 AND deleted_at IS NULL"
            );
            let mut statement = snapshot.prepare_cached(&sql)?;
            let app = one(&mut statement.query(params![name, org.as_bytes()])?, application)?;
            app.map(|app| with_endpoints(&snapshot, app, cipher.as_ref())).transpose()
        })
    }

    fn app_by_key(&self, app: AppKey) -> Reply<'_, Option<AppSnapshot>> {
        let cipher = self.cipher.clone();
        self.readers.read(move |conn| {
            let snapshot = conn.unchecked_transaction()?;
            let app = live_app(&snapshot, app)?;
            app.map(|app| with_endpoints(&snapshot, app, cipher.as_ref())).transpose()
        })
    }

    fn apps(&self, org: PublicId, page: PageOf<PublicId>) -> Reply<'_, Vec<Arc<Application>>> {
        self.readers.read(move |conn| {
            // Shorter and longer than any id: before the first, after the last.
            let (than, order, far) = match page.direction {
                Direction::Ascending => (">", "ASC", &[][..]),
                Direction::Descending => ("<", "DESC", &[0xFF; 21][..]),
            };
            let sql = format!(
                "SELECT {APP} FROM app WHERE org = ?1 AND deleted_at IS NULL AND id {than} ?2
                 ORDER BY id {order} LIMIT ?3"
            );
            let beyond = page.beyond.as_ref().map_or(far, |id| &id.as_bytes()[..]);
            let mut statement = conn.prepare_cached(&sql)?;
            let values = params![org.as_bytes(), beyond, bound(page.limit)];
            all(&mut statement.query(values)?, |row| application(row).map(Arc::new))
        })
    }

    fn create_endpoint_once(
        &self,
        endpoint: NewEndpoint,
        once: Once<Arc<Endpoint>>,
    ) -> Reply<'static, Arc<Endpoint>> {
        let cipher = self.cipher.clone();
        self.change_once(once, move |tx| tx.create_endpoint(endpoint, cipher.as_ref()))
    }

    fn change_endpoint_once(
        &self,
        endpoint: EndpointKey,
        change: EndpointChange,
        once: Once<Arc<Endpoint>>,
    ) -> Reply<'static, Arc<Endpoint>> {
        let cipher = self.cipher.clone();
        self.change_once(once, move |tx| tx.change_endpoint(endpoint, change, cipher.as_ref()))
    }

    fn delete_endpoint(&self, endpoint: EndpointKey) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| tx.delete_endpoint(endpoint))
    }

    fn endpoint(&self, endpoint: EndpointKey) -> Reply<'_, Option<Arc<Endpoint>>> {
        let cipher = self.cipher.clone();
        self.readers.read(move |conn| live_endpoint(conn, endpoint, cipher.as_ref()))
    }

    fn past_endpoints(&self, keys: Vec<EndpointKey>) -> Reply<'_, Vec<Arc<Endpoint>>> {
        let cipher = self.cipher.clone();
        self.readers.read(move |conn| past_endpoints(conn, &keys, cipher.as_ref()))
    }

    fn create_event_type_once(
        &self,
        org: PublicId,
        event_type: EventType,
        once: Once<EventType>,
    ) -> Reply<'static, EventType> {
        self.change_once(once, move |tx| event_types::create(tx, org, event_type))
    }

    fn update_event_type(&self, org: PublicId, event_type: EventType) -> Reply<'static, EventType> {
        self.shared.door.change(move |tx| event_types::update(tx, org, event_type))
    }

    fn delete_event_type(&self, org: PublicId, name: String) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| event_types::delete(tx, org, &name))
    }

    fn event_type(&self, org: PublicId, name: String) -> Reply<'_, Option<EventType>> {
        self.readers.read(move |conn| event_types::find(conn, org, &name))
    }

    fn event_types(
        &self,
        org: PublicId,
        archived_too: bool,
        page: PageOf<String>,
    ) -> Reply<'_, Vec<EventType>> {
        self.readers.read(move |conn| event_types::list(conn, org, archived_too, &page))
    }

    fn installation(&self) -> [u8; 16] {
        self.installation
    }
}
