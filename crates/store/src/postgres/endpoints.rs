//! Rows of endpoints to values and back.
//!
//! What is searched by stands in columns; lists, overrides and secrets are packed.
//! Never: a secret in an error.

use std::sync::Arc;

use domain::email::EmailAddress;
use domain::endpoint::{Endpoint, EndpointSpec};
use domain::ids::{AppKey, EndpointKey};
use domain::target::Target;
use tokio_postgres::Row;

use super::rows::{code_at, get, id_at, maybe_blob, maybe_code, maybe_narrow, narrow_at, time_at};
use crate::StoreError;
use crate::cipher::Cipher;
use crate::stored::endpoint::{open_secrets, read_breaker, read_retry};
use crate::stored::fault::unreadable;
use crate::stored::numbers::span;
use crate::stored::pack::{Unpacker, read_texts};

/// The columns that [`endpoint`] reads; `app` is joined.
pub(super) const ENDPOINT: &str = "endpoint.key, endpoint.id, endpoint.app, app.id, endpoint.uid, url, description, \
     spec_version, disabled, event_types, channels, endpoint.throttle_rate, endpoint.metadata, headers, retry, \
     breaker, timeout, ordering, secrets, endpoint.version, endpoint.created_at, endpoint.updated_at, \
     contact_email, auto_replay, health_check_url";

/// How many they are.
pub(super) const ENDPOINT_COLUMNS: usize = 25;

/// Reads [`ENDPOINT`].
pub(super) fn endpoint(row: &Row, cipher: Option<&Cipher>) -> Result<Arc<Endpoint>, StoreError> {
    let id = id_at(row, 1)?;
    Ok(Arc::new(Endpoint {
        key: EndpointKey(get(row, 0)?),
        id,
        app: AppKey(get(row, 2)?),
        app_id: id_at(row, 3)?,
        spec: spec(row)?,
        secrets: open_secrets(get(row, 18)?, id, cipher)?,
        version: get(row, 19)?,
        created_at: time_at(row, 20)?,
        updated_at: time_at(row, 21)?,
    }))
}

fn spec(row: &Row) -> Result<EndpointSpec, StoreError> {
    let url: String = get(row, 5)?;
    let read = |column, read: fn(&mut Unpacker<'_>) -> _| {
        maybe_blob(row, column, |blob| read(&mut Unpacker::new(blob)))
    };
    Ok(EndpointSpec {
        target: Target::parse("url", &url, false).map_err(|_| unreadable())?,
        description: get(row, 6)?,
        uid: get(row, 4)?,
        version: narrow_at(row, 7)?,
        disabled: maybe_code(row, 8)?,
        event_types: maybe_blob(row, 9, read_texts)?,
        channels: maybe_blob(row, 10, read_texts)?,
        throttle_rate: maybe_narrow(row, 11)?,
        metadata: get(row, 12)?,
        headers: read(13, |packed| packed.list(|packed| Ok((packed.text()?, packed.text()?))))?
            .unwrap_or_default(),
        retry: maybe_blob(row, 14, |blob| read_retry(&mut Unpacker::new(blob)))?
            .unwrap_or_default(),
        breaker: maybe_blob(row, 15, |blob| read_breaker(&mut Unpacker::new(blob)))?
            .unwrap_or_default(),
        timeout: get::<Option<i64>>(row, 16)?.map(span),
        ordering: code_at(row, 17)?,
        contact_email: contact(get(row, 22)?)?,
        auto_replay: get(row, 23)?,
        health_check: health_check(get(row, 24)?)?,
    })
}

fn health_check(url: Option<String>) -> Result<Option<Target>, StoreError> {
    let read = |url: String| Target::parse("healthCheckUrl", &url, false).map_err(|_| unreadable());
    url.map(read).transpose()
}

fn contact(text: Option<String>) -> Result<Option<EmailAddress>, StoreError> {
    let read = |text: String| EmailAddress::parse("contactEmail", &text).map_err(|_| unreadable());
    text.map(read).transpose()
}
