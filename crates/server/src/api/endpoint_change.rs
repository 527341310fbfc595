//! A change of an endpoint.
//!
//! Never: answer before the lanes go by it.

use std::sync::Arc;

use domain::endpoint::Endpoint;
use store::directory::EndpointChange;

use crate::http::problem::Problem;
use crate::state::Shared;

/// Writes a change, and waits until the lanes have seen it.
pub(super) async fn change(
    shared: &Shared,
    old: &Endpoint,
    change: EndpointChange,
) -> Result<Arc<Endpoint>, Problem> {
    let endpoint = shared.engine.stores().directory.change_endpoint(old.key, change).await?;
    shared.engine.settled().await;
    Ok(endpoint)
}
