//! Event types: made first, since endpoints name them.
//!
//! An endpoint may name a type that is archived, which the server takes from nobody new: such a
//! type is opened while the endpoint is made.
//! Never: left open that was archived.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde::Deserialize;
use serde_json::json;
use serde_json::{Value, value::RawValue};

use super::report::{Fate, Kind, Report, fate_of};
use super::svix::rows::EventType;
use super::target::Target;
use crate::body::Body;
use crate::failure::Failure;

/// Which types there are in the server.
#[derive(Debug, Default)]
pub(crate) struct EventTypes {
    /// Whether each is archived.
    archived: BTreeMap<String, bool>,
    /// Those that the server did not take.
    refused: BTreeSet<String>,
    /// Those that are archived once all endpoints are made.
    opened: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    description: String,
    archived: bool,
    deprecated: bool,
    feature_flag: Option<String>,
    schemas: Option<Value>,
}

impl EventTypes {
    /// Makes those that are not there.
    pub(crate) async fn import(
        target: &Target<'_>,
        report: &mut Report,
        rows: &[EventType],
    ) -> Result<Self, Failure> {
        let mut all = Self::default();
        for row in rows {
            if row.retry_schedule.as_ref().is_some_and(|schedule| !schedule.is_null()) {
                let note = "its retry schedule is not taken over: policies are an endpoint's";
                report.note(format!("event type {}: {note}", row.name));
            }
            let found = target.api.find::<Found>(&["event-type", &row.name]).await?;
            let fate = match &found {
                Some(found) => differences(row, found),
                None => made(target, row).await?,
            };
            if matches!(fate, Fate::Refused(_)) {
                all.refused.insert(row.name.clone());
            } else {
                let archived = found.map_or(row.deleted, |found| found.archived);
                all.archived.insert(row.name.clone(), archived);
            }
            report.add(Kind::EventType, &row.name, fate);
        }
        Ok(all)
    }

    /// Sees to it that an endpoint may name this type.
    pub(crate) async fn open(
        &mut self,
        target: &Target<'_>,
        report: &mut Report,
        name: &str,
    ) -> Result<(), Failure> {
        if self.refused.contains(name) {
            return Err(Failure::Refused("is refused".to_owned()));
        }
        let known = match self.archived.get(name) {
            Some(archived) => Some(*archived),
            None => {
                let found = target.api.find::<Found>(&["event-type", name]).await?;
                found.map(|found| found.archived)
            }
        };
        if known.is_none() {
            report.note(format!(
                "event type {name}: an endpoint names it, and Svix has none: made, and archived"
            ));
        }
        if known != Some(false) && !target.dry_run {
            let (method, path, body) = match known {
                None => {
                    let body = json!({"name": name, "description": ""});
                    (Method::POST, vec!["event-type"], body)
                }
                Some(_) => (Method::PATCH, vec!["event-type", name], json!({"archived": false})),
            };
            target.api.request(method, &path, &[], Some(body.to_string().into())).await?;
            self.opened.push(name.to_owned());
        }
        self.archived.insert(name.to_owned(), false);
        Ok(())
    }

    /// Archives what was opened.
    pub(crate) async fn close(&mut self, target: &Target<'_>) -> Result<(), Failure> {
        for name in self.opened.drain(..) {
            let body = json!({"archived": true}).to_string();
            let path = ["event-type", &name];
            target.api.request(Method::PATCH, &path, &[], Some(body.into())).await?;
        }
        Ok(())
    }
}

async fn made(target: &Target<'_>, row: &EventType) -> Result<Fate, Failure> {
    if target.dry_run {
        return Ok(Fate::Made);
    }
    let mut body = Body::default();
    body.set("name", &row.name)?;
    body.set("description", &row.description)?;
    body.set("archived", &row.deleted)?;
    body.set("deprecated", &row.deprecated)?;
    body.set_some("featureFlag", row.feature_flag.as_ref())?;
    body.set_some("schemas", schemas(row))?;
    let asked = target.api.request(Method::POST, &["event-type"], &[], Some(body.bytes())).await;
    fate_of(asked.map(drop))
}

fn schemas(row: &EventType) -> Option<&RawValue> {
    row.schemas.as_deref().filter(|raw| raw.get() != "null")
}

fn differences(row: &EventType, found: &Found) -> Fate {
    let wanted = schemas(row).and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    Fate::of(&[
        ("description", row.description == found.description),
        ("archived", row.deleted == found.archived),
        ("deprecated", row.deprecated == found.deprecated),
        ("featureFlag", row.feature_flag == found.feature_flag),
        ("schemas", wanted == found.schemas),
    ])
}
