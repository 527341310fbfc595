//! The directory: applications, endpoints, event types.
//!
//! Every write goes through the same writer as everything else, raises the application's version,
//! and tells `Commits::directory_changed` after the commit and before it answers. What it does to
//! an endpoint is a [notice](crate::notices).
//! Never: validate; callers hand in valid specs.

use std::sync::Arc;

use domain::application::{AppSnapshot, Application, ApplicationSpec};
use domain::endpoint::{Disabled, Endpoint, EndpointSpec, LiveSecret};
use domain::event_type::EventType;
use domain::ids::{AppKey, EndpointKey, PublicId};

use crate::Reply;
use crate::page::PageOf;
use crate::recall::Once;

/// A public id or the caller's own uid, as found in a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IdOrUid {
    /// A well-formed public id of the right kind.
    Id(PublicId),
    /// Anything else.
    Uid(String),
}

/// An endpoint to create.
#[derive(Clone, Debug)]
pub struct NewEndpoint {
    /// Its application.
    pub app: AppKey,
    /// What the caller decided.
    pub spec: EndpointSpec,
    /// Its first secret.
    pub secret: LiveSecret,
    /// 12 random bytes of its public id.
    pub random: [u8; 12],
}

/// What of an endpoint changes; `None` leaves it.
#[derive(Clone, Debug, Default)]
pub struct EndpointChange {
    /// All of what the caller decided.
    pub spec: Option<EndpointSpec>,
    /// All its secrets, newest first.
    pub secrets: Option<Vec<LiveSecret>>,
    /// Only whether it is disabled (ignored when `spec` is given).
    pub disabled: Option<Option<Disabled>>,
}

/// Reads and writes of the directory.
pub trait Directory: Send + Sync {
    /// Creates an application; `Conflict("uid")` when the uid is taken in the organisation.
    fn create_app(
        &self,
        org: PublicId,
        spec: ApplicationSpec,
        random: [u8; 12],
    ) -> Reply<'static, Arc<Application>> {
        self.create_app_once(org, spec, random, None)
    }
    /// The same, and keeps its answer in the same transaction.
    fn create_app_once(
        &self,
        org: PublicId,
        spec: ApplicationSpec,
        random: [u8; 12],
        once: Once<Arc<Application>>,
    ) -> Reply<'static, Arc<Application>>;
    /// Replaces what the caller decided.
    fn update_app(&self, app: AppKey, spec: ApplicationSpec) -> Reply<'static, Arc<Application>>;
    /// Deletes an application and its endpoints; frees their uids; pending deliveries are cancelled
    /// when next read.
    fn delete_app(&self, app: AppKey) -> Reply<'static, ()>;
    /// An application of the organisation with all its endpoints.
    fn app(&self, org: PublicId, which: IdOrUid) -> Reply<'_, Option<AppSnapshot>>;
    /// The same by inner key.
    fn app_by_key(&self, app: AppKey) -> Reply<'_, Option<AppSnapshot>>;
    /// Applications of an organisation, by id.
    fn apps(&self, org: PublicId, page: PageOf<PublicId>) -> Reply<'_, Vec<Arc<Application>>>;

    /// Creates an endpoint; `Conflict("uid")` when the uid is taken in the application.
    fn create_endpoint(&self, endpoint: NewEndpoint) -> Reply<'static, Arc<Endpoint>> {
        self.create_endpoint_once(endpoint, None)
    }
    /// The same, and keeps its answer in the same transaction.
    fn create_endpoint_once(
        &self,
        endpoint: NewEndpoint,
        once: Once<Arc<Endpoint>>,
    ) -> Reply<'static, Arc<Endpoint>>;
    /// Changes an endpoint; `Missing("endpoint")` when it is deleted.
    fn change_endpoint(
        &self,
        endpoint: EndpointKey,
        change: EndpointChange,
    ) -> Reply<'static, Arc<Endpoint>> {
        self.change_endpoint_once(endpoint, change, None)
    }
    /// The same, and keeps its answer in the same transaction.
    fn change_endpoint_once(
        &self,
        endpoint: EndpointKey,
        change: EndpointChange,
        once: Once<Arc<Endpoint>>,
    ) -> Reply<'static, Arc<Endpoint>>;
    /// Deletes an endpoint; frees its uid; pending deliveries are cancelled when next read.
    fn delete_endpoint(&self, endpoint: EndpointKey) -> Reply<'static, ()>;
    /// An endpoint by inner key, deleted ones left out.
    fn endpoint(&self, endpoint: EndpointKey) -> Reply<'_, Option<Arc<Endpoint>>>;

    /// Endpoints by inner key, deleted ones with what the caller had last decided; what
    /// never was is left out.
    fn past_endpoints(&self, keys: Vec<EndpointKey>) -> Reply<'_, Vec<Arc<Endpoint>>>;

    /// Creates an event type; `Conflict("event type")` when a live one has the name; an archived
    /// one comes back.
    fn create_event_type(&self, org: PublicId, event_type: EventType) -> Reply<'static, EventType> {
        self.create_event_type_once(org, event_type, None)
    }
    /// The same, and keeps its answer in the same transaction.
    fn create_event_type_once(
        &self,
        org: PublicId,
        event_type: EventType,
        once: Once<EventType>,
    ) -> Reply<'static, EventType>;
    /// Replaces an event type; `Missing` when there is none.
    fn update_event_type(&self, org: PublicId, event_type: EventType) -> Reply<'static, EventType>;
    /// Removes the row of an event type.
    fn delete_event_type(&self, org: PublicId, name: String) -> Reply<'static, ()>;
    /// One event type, archived or not.
    fn event_type(&self, org: PublicId, name: String) -> Reply<'_, Option<EventType>>;
    /// Event types by name, ascending.
    fn event_types(
        &self,
        org: PublicId,
        archived_too: bool,
        page: PageOf<String>,
    ) -> Reply<'_, Vec<EventType>>;

    /// The 16 bytes that name this installation, made when the store was created.
    fn installation(&self) -> [u8; 16];
}
