//! Rows of endpoints to values and back.
//!
//! What is searched by stands in columns; lists, overrides and secrets are packed.
//! Never: a secret in an error.

use std::sync::Arc;

use domain::email::EmailAddress;
use domain::endpoint::{Endpoint, EndpointSpec};
use domain::ids::{AppKey, EndpointKey};
use domain::target::Target;
use rusqlite::Row;

use super::rows::{code_at, id_at, maybe_blob, maybe_code, maybe_narrow, narrow_at, time_at};
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

/// Reads [`ENDPOINT`].
pub(super) fn endpoint(
    row: &Row<'_>,
    cipher: Option<&Cipher>,
) -> Result<Arc<Endpoint>, StoreError> {
    let id = id_at(row, 1)?;
    let secrets = row.get_ref(18)?.as_blob().map_err(|_| unreadable())?;
    Ok(Arc::new(Endpoint {
        key: EndpointKey(row.get(0)?),
        id,
        app: AppKey(row.get(2)?),
        app_id: id_at(row, 3)?,
        spec: spec(row)?,
        secrets: open_secrets(secrets, id, cipher)?,
        version: row.get(19)?,
        created_at: time_at(row, 20)?,
        updated_at: time_at(row, 21)?,
    }))
}

fn spec(row: &Row<'_>) -> Result<EndpointSpec, StoreError> {
    let url: String = row.get(5)?;
    let read = |column, read: fn(&mut Unpacker<'_>) -> _| {
        maybe_blob(row, column, |blob| read(&mut Unpacker::new(blob)))
    };
    Ok(EndpointSpec {
        target: Target::parse("url", &url, false).map_err(|_| unreadable())?,
        description: row.get(6)?,
        uid: row.get(4)?,
        version: narrow_at(row, 7)?,
        disabled: maybe_code(row, 8)?,
        event_types: maybe_blob(row, 9, read_texts)?,
        channels: maybe_blob(row, 10, read_texts)?,
        throttle_rate: maybe_narrow(row, 11)?,
        metadata: row.get(12)?,
        headers: read(13, |packed| packed.list(|packed| Ok((packed.text()?, packed.text()?))))?
            .unwrap_or_default(),
        retry: maybe_blob(row, 14, |blob| read_retry(&mut Unpacker::new(blob)))?
            .unwrap_or_default(),
        breaker: maybe_blob(row, 15, |blob| read_breaker(&mut Unpacker::new(blob)))?
            .unwrap_or_default(),
        timeout: row.get::<_, Option<i64>>(16)?.map(span),
        ordering: code_at(row, 17)?,
        contact_email: contact(row.get(22)?)?,
        auto_replay: row.get(23)?,
        health_check: health_check(row.get(24)?)?,
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
