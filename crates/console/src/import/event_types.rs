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
            let mut found = None;
            let fate = fate_of(brought(target, row, &mut found).await)?;
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

    /// One that is not taken over, so that no endpoint may name it.
    pub(crate) fn refuse(&mut self, name: &str) {
        self.refused.insert(name.to_owned());
    }

    /// Sees to it that an endpoint may name these types; gives those that were made for it.
    pub(crate) async fn open(
        &mut self,
        target: &Target<'_>,
        names: &[String],
    ) -> Result<Vec<String>, Failure> {
        if let Some(name) = names.iter().find(|name| self.refused.contains(*name)) {
            return Err(Failure::Refused(format!("event type {name}: is refused")));
        }
        let mut made = Vec::new();
        for name in names {
            match self.open_one(target, name).await {
                Ok(true) => made.push(name.clone()),
                Ok(false) => {}
                Err(fault) => {
                    self.unmake(target, made).await;
                    return Err(match fault {
                        Failure::Unreachable(_) | Failure::Closed => fault,
                        fault => Failure::Refused(format!("event type {name}: {fault}")),
                    });
                }
            }
        }
        Ok(made)
    }

    /// Says whether it had to be made.
    async fn open_one(&mut self, target: &Target<'_>, name: &str) -> Result<bool, Failure> {
        let known = match self.archived.get(name) {
            Some(archived) => Some(*archived),
            None => {
                let found = target.api.find::<Found>(&["event-type", name]).await?;
                found.map(|found| found.archived)
            }
        };
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
        Ok(known.is_none())
    }

    /// The endpoint that these were made for is not made. One that cannot be taken away again is
    /// archived with the others.
    pub(crate) async fn unmake(&mut self, target: &Target<'_>, made: Vec<String>) {
        for name in made {
            let path = ["event-type", &name];
            let gone = target.dry_run
                || target
                    .api
                    .request(Method::DELETE, &path, &[("expunge", "true")], None)
                    .await
                    .is_ok();
            if gone {
                self.archived.remove(&name);
                self.opened.retain(|other| *other != name);
            }
        }
    }

    /// Archives what was opened; one that cannot be keeps no other open.
    pub(crate) async fn close(&mut self, target: &Target<'_>) -> Result<(), Failure> {
        let mut closed = Ok(());
        for name in self.opened.drain(..) {
            let body = json!({"archived": true}).to_string();
            let path = ["event-type", &name];
            let asked = target.api.request(Method::PATCH, &path, &[], Some(body.into())).await;
            closed = closed.and_then(|()| asked.map(drop));
        }
        closed
    }
}

async fn brought(
    target: &Target<'_>,
    row: &EventType,
    found: &mut Option<Found>,
) -> Result<Fate, Failure> {
    *found = target.api.find(&["event-type", &row.name]).await?;
    match found {
        Some(found) => Ok(differences(row, found)),
        None => made(target, row).await,
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
    target.api.request(Method::POST, &["event-type"], &[], Some(body.bytes())).await?;
    Ok(Fate::Made)
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
