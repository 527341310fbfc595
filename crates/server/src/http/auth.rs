//! The caller of a request, from its `authorization` header.
//!
//! Never: let a handler begin for a caller that is not known.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath};
use http::{header, request::Parts};
use store::directory::IdOrUid;

use super::problem::Problem;
use super::tokens::{Caller, invalid};
use crate::state::Shared;

/// The caller of a request.
pub(crate) struct Auth(pub(crate) Arc<Caller>);

impl FromRequestParts<Arc<Shared>> for Auth {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        shared: &Arc<Shared>,
    ) -> Result<Self, Self::Rejection> {
        let mut given = parts.headers.get_all(header::AUTHORIZATION).iter();
        let value = given.next().and_then(|value| value.to_str().ok());
        if given.next().is_some() {
            let detail = "There must be one `authorization` header, and no more";
            return Err(Problem::unauthenticated(detail));
        }
        let (scheme, token) = value.and_then(|value| value.split_once(' ')).ok_or_else(invalid)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(invalid());
        }
        let now = shared.now();
        let caller = shared.tokens.check(token.trim(), now)?;
        shared.token_rates.take(&caller.hash, now)?;
        let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        caller.may(&parts.method, route)?;
        // A token does not outlive its application.
        if let Some(app) = caller.app {
            let found = shared.engine.app(caller.org, &IdOrUid::Id(app)).await?;
            found.ok_or_else(invalid)?;
        }
        Ok(Self(caller))
    }
}
