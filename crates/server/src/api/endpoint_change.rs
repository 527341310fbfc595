//! A change of an endpoint.
//!
//! Never: answer before the lanes go by it.

use std::sync::Arc;

use domain::endpoint::Endpoint;
use store::directory::EndpointChange;
use store::recall::Once;

use crate::http::problem::Problem;
use crate::state::Shared;

/// Writes a change, and waits until the lanes have seen it.
pub(super) async fn change(
    shared: &Shared,
    old: &Endpoint,
    change: EndpointChange,
    once: Once<Arc<Endpoint>>,
) -> Result<Arc<Endpoint>, Problem> {
    let directory = &shared.engine.stores().directory;
    let endpoint = directory.change_endpoint_once(old.key, change, once).await?;
    shared.engine.settled().await;
    Ok(endpoint)
}
