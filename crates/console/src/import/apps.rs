//! Applications: one without a `uid` gets one made of its old id, by which a second run finds it.
//!
//! Never: made twice.

use std::collections::BTreeMap;

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::report::{Fate, Kind, Mapped, Report, fate_of};
use super::svix::rows::{App, uid_of};
use super::target::Target;
use crate::body::Body;
use crate::failure::Failure;

/// How an application is called in the server.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) uid: String,
    /// Whether it is there, or only would be.
    pub(crate) exists: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    id: String,
    name: String,
    rate_limit: Option<i64>,
    metadata: Value,
}

/// Makes those that are not there, and says how each is called, by its old id.
pub(crate) async fn import(
    target: &Target<'_>,
    report: &mut Report,
    rows: &[App],
) -> Result<BTreeMap<String, Place>, Failure> {
    let mut places = BTreeMap::new();
    for row in rows {
        let uid = uid_of(&row.id, row.uid.as_deref());
        let mut found = None;
        let fate = fate_of(brought(target, row, &uid, &mut found).await)?;
        if let Some(found) = &found {
            let (old, new) = (row.id.clone(), found.id.clone());
            report.map(Mapped { kind: Kind::Application, old, new, uid: uid.clone() });
        }
        if !matches!(fate, Fate::Refused(_)) {
            places.insert(row.id.clone(), Place { uid, exists: found.is_some() });
        }
        report.add_with(Kind::Application, &row.id, fate, &row.notes);
    }
    Ok(places)
}

async fn brought(
    target: &Target<'_>,
    row: &App,
    uid: &str,
    found: &mut Option<Found>,
) -> Result<Fate, Failure> {
    *found = target.api.find(&["app", uid]).await?;
    if let Some(found) = found {
        return Ok(differences(row, found));
    }
    if !target.dry_run {
        *found = Some(made(target, row, uid).await?);
    }
    Ok(Fate::Made)
}

async fn made(target: &Target<'_>, row: &App, uid: &str) -> Result<Found, Failure> {
    let mut body = Body::default();
    body.set("name", &row.name)?;
    body.set("uid", &uid)?;
    body.set_some("rateLimit", row.rate_limit.as_ref())?;
    body.set_some("metadata", row.metadata.as_ref())?;
    target.api.request(Method::POST, &["app"], &[], Some(body.bytes())).await?.read()
}

fn differences(row: &App, found: &Found) -> Fate {
    let metadata = row.metadata.clone().unwrap_or_else(|| json!({}));
    Fate::of(&[
        ("name", row.name == found.name),
        ("rateLimit", row.rate_limit == found.rate_limit),
        ("metadata", metadata == found.metadata),
    ])
}
