//! Endpoints that are told what happens in an organisation, managed by that organisation.
//!
//! They are ordinary endpoints of an application of the management organisation, which is made with
//! the first of them; so their handlers are those of any endpoint, which `reach` leads there.
//! Never: make that application for anybody but a caller of the organisation.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::application::ApplicationSpec;
use domain::notice::MANAGEMENT;
use http::StatusCode;
use store::StoreError;
use store::directory::IdOrUid;
use store::page::Direction;

use super::operation::{Operation, Token};
use super::reach::within;
use super::views::endpoint::EndpointOut;
use super::{endpoint_headers as headers, endpoint_secrets as secrets, endpoints};
use crate::http::auth::Auth;
use crate::http::extract::{Place, Received};
use crate::http::idempotency::Answer;
use crate::http::paging::Paging;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::state::{Shared, random};

type Answered = Result<Response, Problem>;

/// An operation of any endpoint, of these ones.
const fn told(of_any: Operation, id: &'static str, summary: &'static str) -> Operation {
    of_any.named(id, summary).token(Token::Org)
}

pub(super) const LIST: Operation = told(
    endpoints::LIST,
    "v1.operational-webhook.endpoint.list",
    "Lists the endpoints that are told what happens in the organisation.",
)
.or("not_found");

/// `GET /operational-webhook/endpoint`
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    query: Query,
) -> Answered {
    let (caller, uid) = within(&caller)?;
    let which = IdOrUid::Uid(uid.clone());
    if shared.engine.stores().directory.app(MANAGEMENT, which).await?.is_none() {
        // Nobody is told yet.
        let seal = shared.iterators.of("endpoints", MANAGEMENT, &[]);
        let paging = Paging::ordered(&query, Direction::Descending, seal)?;
        paging.page(|_| None::<()>, async |_| Ok(false)).await?;
        let none = paging.frame(Vec::<EndpointOut>::new(), |_| String::new());
        return Ok(Answer::json(StatusCode::OK, &none).into_response());
    }
    endpoints::list(State(shared), caller, Place(uid), query).await
}

pub(super) const CREATE: Operation = told(
    endpoints::CREATE,
    "v1.operational-webhook.endpoint.create",
    "Creates an endpoint that is told of endpoints and of failing deliveries.",
)
.or("not_found");

/// `POST /operational-webhook/endpoint`
pub(super) async fn create(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    received: Received,
) -> Answered {
    let (caller, uid) = within(&caller)?;
    let spec = ApplicationSpec {
        name: format!("Operational webhooks of {uid}"),
        uid: Some(uid.clone()),
        throttle_rate: None,
        metadata: "{}".to_owned(),
    };
    let directory = &shared.engine.stores().directory;
    let which = IdOrUid::Uid(uid.clone());
    if directory.app(MANAGEMENT, which).await?.is_none() {
        match directory.create_app(MANAGEMENT, spec, random()?).await {
            // Somebody else was first.
            Ok(_) | Err(StoreError::Conflict(_)) => {}
            Err(fault) => return Err(fault.into()),
        }
    }
    endpoints::create(State(shared), caller, Place(uid), received).await
}

pub(super) const READ: Operation = told(
    endpoints::READ,
    "v1.operational-webhook.endpoint.get",
    "Shows an endpoint of operational webhooks.",
);

pub(super) const PUT: Operation = told(
    endpoints::PUT,
    "v1.operational-webhook.endpoint.update",
    "Replaces an endpoint of operational webhooks, or creates it.",
);

pub(super) const PATCH: Operation = told(
    endpoints::PATCH,
    "v1.operational-webhook.endpoint.patch",
    "Changes what is named of an endpoint of operational webhooks.",
);

pub(super) const DELETE: Operation = told(
    endpoints::DELETE,
    "v1.operational-webhook.endpoint.delete",
    "Deletes an endpoint of operational webhooks; what waits for it is cancelled.",
);

pub(super) const READ_HEADERS: Operation = told(
    headers::READ,
    "v1.operational-webhook.endpoint.get-headers",
    "Shows the extra headers of its requests, credentials left out.",
);

pub(super) const PUT_HEADERS: Operation = told(
    headers::PUT,
    "v1.operational-webhook.endpoint.update-headers",
    "Replaces the extra headers.",
);

pub(super) const PATCH_HEADERS: Operation = told(
    headers::PATCH,
    "v1.operational-webhook.endpoint.patch-headers",
    "Adds, changes or removes extra headers.",
);

pub(super) const READ_SECRET: Operation = told(
    secrets::READ,
    "v1.operational-webhook.endpoint.get-secret",
    "Shows the secret that its requests are signed with.",
);

pub(super) const ROTATE_SECRET: Operation = told(
    secrets::ROTATE,
    "v1.operational-webhook.endpoint.rotate-secret",
    "Puts a new secret in place; the old one signs on for a while.",
);
