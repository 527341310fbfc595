//! Which endpoint a request is about: one of an application that the path names, or one that is
//! told what happens in the caller's organisation.
//!
//! The latter are endpoints of an application of the management organisation; the caller stands in
//! for that organisation, within that application.
//! Never: lead to anything else of the management organisation, or serve an application's token
//! there.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath};
use domain::notice::{MANAGEMENT, teller_of};
use http::request::Parts;

use super::own::Names;
use crate::http::auth::Auth;
use crate::http::extract::Place;
use crate::http::problem::Problem;
use crate::http::tokens::Caller;
use crate::state::Shared;

/// Where endpoints stand that are told what happens.
const TOLD: &str = "/api/v1/operational-webhook/";

/// Who asks, and for which endpoint of which application.
pub(super) struct Reach {
    /// The caller, or who they stand in for.
    pub(super) caller: Arc<Caller>,
    /// The texts of application and endpoint.
    pub(super) place: Names,
}

impl FromRequestParts<Arc<Shared>> for Reach {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        shared: &Arc<Shared>,
    ) -> Result<Self, Self::Rejection> {
        let Auth(caller) = Auth::from_request_parts(parts, shared).await?;
        let route = parts.extensions.get::<MatchedPath>();
        if route.is_some_and(|route| route.as_str().starts_with(TOLD)) {
            let Place(endpoint) = Place::from_request_parts(parts, shared).await?;
            let (Auth(caller), app) = within(&caller)?;
            return Ok(Self { caller, place: (app, endpoint) });
        }
        let Place(place) = Place::from_request_parts(parts, shared).await?;
        Ok(Self { caller, place })
    }
}

/// The caller within the application that tells its organisation, and that application's uid.
pub(super) fn within(caller: &Caller) -> Result<(Auth, String), Problem> {
    caller.org_only()?;
    let uid = teller_of(caller.org)
        .ok_or_else(|| Problem::not_found("The management organisation is told nothing"))?;
    Ok((Auth(Arc::new(caller.within(MANAGEMENT))), uid))
}
