//! Custom headers of an endpoint: read, replace, patch.
//!
//! Credentials are not read back: of sensitive headers only the names are shown.
//! Never: answer with a value that grants access somewhere else.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use domain::endpoint::Endpoint;
use domain::error::Invalid;
use domain::headers;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use store::directory::EndpointChange;

use super::endpoint_change::change;
use super::endpoint_spec::header_list;
use super::inputs::endpoint::{EndpointHeadersIn, EndpointHeadersPatchIn};
use super::operation::Operation;
use super::own;
use super::reach::Reach;
use crate::http::extract::Received;
use crate::http::fields::{Fields, texts};
use crate::http::idempotency::Answer;
use crate::http::problem::Problem;
use crate::state::Shared;

type Answered = Result<Response, Problem>;

/// Extra headers.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EndpointHeadersOut")]
struct HeadersOut<'a> {
    #[schemars(with = "BTreeMap<String, String>")]
    headers: BTreeMap<&'a str, &'a str>,
    /// Names of those whose values are not shown.
    sensitive: Vec<&'a str>,
}

pub(super) const READ: Operation = Operation::new(
    "v1.endpoint.get-headers",
    "Shows the extra headers of its requests, credentials left out.",
)
.gives::<HeadersOut<'_>>(200);

/// `GET …/headers`
pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Reach { caller, place: (app, endpoint) }: Reach,
) -> Answered {
    let found = own::endpoint(&shared, &caller, (&app, &endpoint)).await?;
    let (hidden, shown): (Vec<_>, Vec<_>) =
        found.spec.headers.iter().partition(|(name, _)| headers::is_sensitive(name));
    let answer = HeadersOut {
        headers: shown.into_iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        sensitive: hidden.into_iter().map(|(name, _)| name.as_str()).collect(),
    };
    Ok(Answer::json(StatusCode::OK, &answer).into_response())
}

pub(super) const PUT: Operation =
    Operation::new("v1.endpoint.update-headers", "Replaces the extra headers.")
        .takes::<EndpointHeadersIn>()
        .ends(204);

/// `PUT …/headers`
pub(super) async fn put(
    State(shared): State<Arc<Shared>>,
    Reach { caller, place: (app, endpoint) }: Reach,
    received: Received,
) -> Answered {
    let mut fields = Fields::parse(&received.body)?;
    let list = fields.firm("headers", None, None, header_list).unwrap_or_default();
    fields.finish()?;
    let _edit = shared.edit().await?;
    let old = own::endpoint(&shared, &caller, (&app, &endpoint)).await?;
    written(&shared, &old, list).await
}

pub(super) const PATCH: Operation =
    Operation::new("v1.endpoint.patch-headers", "Adds, changes or removes extra headers.")
        .takes::<EndpointHeadersPatchIn>()
        .ends(204);

/// `PATCH …/headers`: `null` removes a header, and so does its name in `deleteHeaders`, also one
/// that `headers` names.
pub(super) async fn patch(
    State(shared): State<Arc<Shared>>,
    Reach { caller, place: (app, endpoint) }: Reach,
    received: Received,
) -> Answered {
    let mut fields = Fields::parse(&received.body)?;
    let changes = fields.nullable(&["headers"], None, header_changes).unwrap_or_default();
    let removed = fields.nullable(&["deleteHeaders"], None, texts).unwrap_or_default();
    fields.finish()?;
    let _edit = shared.edit().await?;
    let old = own::endpoint(&shared, &caller, (&app, &endpoint)).await?;
    let list = patched(old.spec.headers.clone(), changes, &removed);
    headers::validate_all(&list)?;
    written(&shared, &old, list).await
}

fn header_changes(
    name: &'static str,
    value: &Value,
) -> Result<Vec<(String, Option<String>)>, Invalid> {
    let refuse = || Invalid::new(name, "must be an object of texts and nulls");
    let map = value.as_object().ok_or_else(refuse)?;
    let pairs = map.iter().map(|(key, value)| match value {
        Value::Null => Ok((key.clone(), None)),
        Value::String(text) => Ok((key.clone(), Some(text.clone()))),
        _ => Err(refuse()),
    });
    pairs.collect()
}

fn patched(
    mut list: Vec<(String, String)>,
    changes: Vec<(String, Option<String>)>,
    removed: &[String],
) -> Vec<(String, String)> {
    for (name, value) in changes {
        list.retain(|(old, _)| !old.eq_ignore_ascii_case(&name));
        list.extend(value.map(|value| (name, value)));
    }
    list.retain(|(name, _)| !removed.iter().any(|gone| gone.eq_ignore_ascii_case(name)));
    list
}

async fn written(shared: &Shared, old: &Endpoint, list: Vec<(String, String)>) -> Answered {
    let mut spec = old.spec.clone();
    spec.headers = list;
    let spec = EndpointChange { spec: Some(spec), ..EndpointChange::default() };
    change(shared, old, spec, None).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_sets_replaces_and_removes() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let old = vec![pair("X-A", "1"), pair("X-B", "2"), pair("X-C", "3")];
        let changes = serde_json::json!({"x-a": "9", "X-D": "4", "x-b": null});
        let changes = header_changes("headers", &changes).unwrap();
        let list = patched(old, changes, &["x-c".to_owned(), "none".to_owned()]);
        let both = vec![("Q".to_owned(), Some("1".to_owned()))];
        assert_eq!(patched(Vec::new(), both, &["q".to_owned()]), [], "removed, though it is set");
        assert_eq!(list, [pair("X-D", "4"), pair("x-a", "9")]);
        assert!(header_changes("headers", &serde_json::json!({"a": 1})).is_err());
        assert!(header_changes("headers", &serde_json::json!([])).is_err());
    }
}
