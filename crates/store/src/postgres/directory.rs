//! The directory, in PostgreSQL: applications and endpoints.
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

use super::applications::{APP, application, live_endpoint, past_endpoints, snapshot};
use super::conn::{Params, all};
use super::rows::{bound, text};
use super::{PostgresStore, event_types};
use crate::Reply;
use crate::directory::{Directory, EndpointChange, IdOrUid, NewEndpoint};
use crate::page::{Direction, PageOf};
use crate::recall::Once;

impl Directory for PostgresStore {
    fn create_app_once(
        &self,
        org: PublicId,
        spec: ApplicationSpec,
        random: [u8; 12],
        once: Once<Arc<Application>>,
    ) -> Reply<'static, Arc<Application>> {
        self.change_once(once, move |tx| Box::pin(tx.create_app(org, spec, random)))
    }

    fn update_app(&self, app: AppKey, spec: ApplicationSpec) -> Reply<'static, Arc<Application>> {
        self.shared.door.change(move |tx| Box::pin(tx.update_app(app, spec)))
    }

    fn delete_app(&self, app: AppKey) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| Box::pin(tx.delete_app(app)))
    }

    fn app(&self, org: PublicId, which: IdOrUid) -> Reply<'_, Option<AppSnapshot>> {
        let cipher = self.cipher.clone();
        self.read(move |conn| async move {
            let org = &org.as_bytes()[..];
            match which {
                IdOrUid::Id(id) => {
                    let (id, by) = (&id.as_bytes()[..], "app.id = $1 AND app.org = $2");
                    snapshot(&conn, by, [&id, &org], cipher.as_ref()).await
                }
                IdOrUid::Uid(uid) => {
                    let (uid, by) = (text(&uid), "app.uid = $1 AND app.org = $2");
                    snapshot(&conn, by, [&uid, &org], cipher.as_ref()).await
                }
            }
        })
    }

    fn app_by_key(&self, app: AppKey) -> Reply<'_, Option<AppSnapshot>> {
        let cipher = self.cipher.clone();
        self.read(move |conn| async move {
            let by = "app.key = $1 AND $2::bool";
            snapshot(&conn, by, [&app.0, &true], cipher.as_ref()).await
        })
    }

    fn apps(&self, org: PublicId, page: PageOf<PublicId>) -> Reply<'_, Vec<Arc<Application>>> {
        self.read(move |conn| async move {
            // Shorter and longer than any id: before the first, after the last.
            let (than, order, far) = match page.direction {
                Direction::Ascending => (">", "ASC", &[][..]),
                Direction::Descending => ("<", "DESC", &[0xFF; 21][..]),
            };
            let sql = format!(
                "SELECT {APP} FROM app WHERE org = $1 AND deleted_at IS NULL AND id {than} $2
                 ORDER BY id {order} LIMIT $3"
            );
            let beyond = page.beyond.as_ref().map_or(far, |id| &id.as_bytes()[..]);
            let values: Params<'_> = &[&&org.as_bytes()[..], &beyond, &bound(page.limit)];
            all(&conn, &sql, values, |row| application(row).map(Arc::new)).await
        })
    }

    fn create_endpoint_once(
        &self,
        endpoint: NewEndpoint,
        once: Once<Arc<Endpoint>>,
    ) -> Reply<'static, Arc<Endpoint>> {
        let cipher = self.cipher.clone();
        self.change_once(once, move |tx| {
            Box::pin(async move { tx.create_endpoint(endpoint, cipher.as_ref()).await })
        })
    }

    fn change_endpoint_once(
        &self,
        endpoint: EndpointKey,
        change: EndpointChange,
        once: Once<Arc<Endpoint>>,
    ) -> Reply<'static, Arc<Endpoint>> {
        let cipher = self.cipher.clone();
        self.change_once(once, move |tx| {
            Box::pin(async move { tx.change_endpoint(endpoint, change, cipher.as_ref()).await })
        })
    }

    fn delete_endpoint(&self, endpoint: EndpointKey) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| Box::pin(tx.delete_endpoint(endpoint)))
    }

    fn endpoint(&self, endpoint: EndpointKey) -> Reply<'_, Option<Arc<Endpoint>>> {
        let cipher = self.cipher.clone();
        self.read(move |conn| async move { live_endpoint(&conn, endpoint, cipher.as_ref()).await })
    }

    fn past_endpoints(&self, keys: Vec<EndpointKey>) -> Reply<'_, Vec<Arc<Endpoint>>> {
        let cipher = self.cipher.clone();
        self.read(move |conn| async move { past_endpoints(&conn, &keys, cipher.as_ref()).await })
    }

    fn create_event_type_once(
        &self,
        org: PublicId,
        event_type: EventType,
        once: Once<EventType>,
    ) -> Reply<'static, EventType> {
        self.change_once(once, move |tx| Box::pin(event_types::create(tx, org, event_type)))
    }

    fn update_event_type(&self, org: PublicId, event_type: EventType) -> Reply<'static, EventType> {
        self.shared.door.change(move |tx| Box::pin(event_types::update(tx, org, event_type)))
    }

    fn delete_event_type(&self, org: PublicId, name: String) -> Reply<'static, ()> {
        self.shared
            .door
            .change(move |tx| Box::pin(async move { event_types::delete(tx, org, &name).await }))
    }

    fn event_type(&self, org: PublicId, name: String) -> Reply<'_, Option<EventType>> {
        self.read(move |conn| async move { event_types::find(&conn, org, &name).await })
    }

    fn event_types(
        &self,
        org: PublicId,
        archived_too: bool,
        page: PageOf<String>,
    ) -> Reply<'_, Vec<EventType>> {
        self.read(
            move |conn| async move { event_types::list(&conn, org, archived_too, &page).await },
        )
    }

    fn installation(&self) -> [u8; 16] {
        self.installation
    }
}
