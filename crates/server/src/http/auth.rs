//! The caller of a request, from its `authorization` header.
//!
//! Never: let a handler begin for a caller that is not known.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath};
use http::{header, request::Parts};

use super::problem::Problem;
use super::tokens::{Caller, invalid};
use crate::state::Shared;

/// What ends a token, and so is open to one that may only look.
pub(crate) const LOGOUT: &str = "/api/v1/auth/logout";

/// The caller of a request.
pub(crate) struct Auth(pub(crate) Arc<Caller>);

impl FromRequestParts<Arc<Shared>> for Auth {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        shared: &Arc<Shared>,
    ) -> Result<Self, Self::Rejection> {
        let value = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let (scheme, token) = value.and_then(|value| value.split_once(' ')).ok_or_else(invalid)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(invalid());
        }
        let now = shared.now();
        let caller = shared.tokens.check(token.trim(), now)?;
        shared.token_rates.take(&caller.hash, now)?;
        let ends = parts.extensions.get::<MatchedPath>().is_some_and(|it| it.as_str() == LOGOUT);
        if !parts.method.is_safe() && !ends {
            caller.full_access()?;
        }
        Ok(Self(caller))
    }
}
