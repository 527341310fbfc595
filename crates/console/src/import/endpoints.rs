//! Endpoints with their secrets, replaced ones that still sign among them.
//!
//! A secret that was replaced is brought in first and then rotated away, with the time that it
//! still has. An endpoint whose secrets do not all come over is not kept.
//! Never: an endpoint that gets more than it got before.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;
use webhook::Secret;

use super::apps::Place;
use super::event_types::EventTypes;
use super::report::{Fate, Kind, Mapped, Report, fate_of};
use super::svix::rows::{Endpoint, uid_of};
use super::svix::secret::{self, MainSecret};
use super::target::Target;
use crate::body::Body;
use crate::failure::Failure;

/// The longest that a replaced secret signs on.
const GRACE_SECS_MAX: i64 = 604_800;

/// All that making them takes.
pub(crate) struct Import<'a> {
    pub(crate) target: &'a Target<'a>,
    pub(crate) keys: &'a BTreeMap<String, Place>,
    pub(crate) main_secret: Option<MainSecret>,
}

/// Secrets, oldest first, each but the last with the seconds that it still signs.
type Secrets = Vec<(Secret, i64)>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    id: String,
    url: String,
    description: String,
    version: i64,
    disabled: bool,
    rate_limit: Option<i64>,
    filter_types: Option<BTreeSet<String>>,
    channels: Option<BTreeSet<String>>,
    metadata: Value,
}

#[derive(Deserialize)]
struct Headers {
    headers: BTreeMap<String, String>,
    sensitive: Vec<String>,
}

impl Import<'_> {
    /// Makes those that are not there.
    pub(crate) async fn all(
        &self,
        report: &mut Report,
        types: &mut EventTypes,
        rows: &[Endpoint],
    ) -> Result<(), Failure> {
        for row in rows {
            let fate = fate_of(self.one(report, types, row).await)?;
            report.add_with(Kind::Endpoint, &row.id, fate, &row.notes);
        }
        Ok(())
    }

    async fn one(
        &self,
        report: &mut Report,
        types: &mut EventTypes,
        row: &Endpoint,
    ) -> Result<Fate, Failure> {
        let Some(app) = self.keys.get(&row.app_id) else {
            return Ok(Fate::Refused("its application is refused".to_owned()));
        };
        if row.filter.as_ref().is_some_and(|filter| !filter.trim().is_empty()) {
            let why = "it filters by payload, which Peyk does not: it would get more than before";
            return Ok(Fate::Refused(why.to_owned()));
        }
        let secrets = match self.secrets(row) {
            Ok(secrets) => secrets,
            Err(why) => return Ok(Fate::Refused(why)),
        };
        if row.retry_schedule.as_ref().is_some_and(|schedule| !schedule.is_null()) {
            let note = "its retry schedule is not taken over: see retryPolicy";
            report.note(format!("endpoint {}: {note}", row.id));
        }
        let uid = uid_of(&row.id, row.uid.as_deref());
        let path = ["app", &app.uid, "endpoint", &uid];
        let found = if app.exists { self.target.api.find::<Found>(&path).await? } else { None };
        if let Some(found) = found {
            self.map(report, row, &uid, found.id.clone());
            return self.differences(row, &found, &path, &secrets).await;
        }
        let names = row.event_types_ids.as_deref().unwrap_or_default();
        let opened = types.open(self.target, names).await?;
        if !self.target.dry_run {
            match self.made(row, &app.uid, &uid, &secrets).await {
                Ok(id) => self.map(report, row, &uid, id),
                Err(fault) => {
                    types.unmake(self.target, opened).await;
                    return Err(fault);
                }
            }
        }
        for name in opened {
            let said = "an endpoint names it, and Svix has none: made, and archived".to_owned();
            report.add_with(Kind::EventType, &name, Fate::Made, &[said]);
        }
        Ok(Fate::Made)
    }

    fn map(&self, report: &mut Report, row: &Endpoint, uid: &str, new: String) {
        let (old, uid) = (row.id.clone(), uid.to_owned());
        report.map(Mapped { kind: Kind::Endpoint, old, new, uid });
    }

    /// All secrets that sign now.
    fn secrets(&self, row: &Endpoint) -> Result<Secrets, String> {
        let main = self.main_secret.as_ref();
        let mut secrets = Vec::new();
        for old in row.old_keys.iter().flatten() {
            let expires = old.expiration.parse::<jiff::Timestamp>();
            let expires = expires.map_err(|_| "an old key ends at no time".to_owned())?;
            let left = expires.as_second() - self.target.now.as_secs();
            if left > 0 {
                secrets.push((secret::replaced(&old.key, main)?, left.min(GRACE_SECS_MAX)));
            }
        }
        secrets.sort_by_key(|(_, left)| *left);
        secrets.push((secret::in_force(&row.key, main)?, 0));
        Ok(secrets)
    }

    async fn made(
        &self,
        row: &Endpoint,
        app: &str,
        uid: &str,
        secrets: &Secrets,
    ) -> Result<String, Failure> {
        let api = self.target.api;
        let body = body_of(row, uid, secrets)?;
        let answer =
            api.request(Method::POST, &["app", app, "endpoint"], &[], Some(body.bytes())).await?;
        let made: Found = answer.read()?;
        for pair in secrets.windows(2) {
            let [(_, left), (next, _)] = pair else { continue };
            let body = json!({"key": next.to_private_text(), "gracePeriodSeconds": left});
            let path = ["app", app, "endpoint", uid, "secret", "rotate"];
            let rotated =
                api.request(Method::POST, &path, &[], Some(body.to_string().into())).await;
            if let Err(fault) = rotated {
                // Better none than one that signs with the wrong secret.
                let gone = api.request(Method::DELETE, &path[..4], &[], None).await;
                return Err(match gone {
                    Ok(_) => fault,
                    Err(left) => Failure::Other(format!(
                        "{fault}; it is there with too few secrets, delete it: {left}"
                    )),
                });
            }
        }
        Ok(made.id)
    }

    async fn differences(
        &self,
        row: &Endpoint,
        found: &Found,
        path: &[&str],
        secrets: &Secrets,
    ) -> Result<Fate, Failure> {
        let api = self.target.api;
        let below = |last| path.iter().copied().chain([last]).collect::<Vec<_>>();
        let headers: Headers =
            api.request(Method::GET, &below("headers"), &[], None).await?.read()?;
        let secret: Value = api.request(Method::GET, &below("secret"), &[], None).await?.read()?;
        let in_force = secrets.last().map(|(secret, _)| secret.to_public_text());
        let set = |list: &Option<Vec<String>>| list.clone().map(BTreeSet::from_iter);
        let metadata = row.metadata.clone().unwrap_or_else(|| json!({}));
        let wanted_url = Url::parse(&row.url).map(String::from);
        Ok(Fate::of(&[
            ("url", wanted_url.is_ok_and(|url| url == found.url)),
            ("description", row.description == found.description),
            ("version", row.version == found.version),
            ("disabled", row.disabled == found.disabled),
            ("rateLimit", row.rate_limit == found.rate_limit),
            ("filterTypes", set(&row.event_types_ids) == found.filter_types),
            ("channels", set(&row.channels) == found.channels),
            ("metadata", metadata == found.metadata),
            ("headers", same_headers(row, &headers)),
            ("secret", in_force.as_deref() == secret["key"].as_str()),
        ]))
    }
}

fn body_of(row: &Endpoint, uid: &str, secrets: &Secrets) -> Result<Body, Failure> {
    let mut body = Body::default();
    body.set("uid", &uid)?;
    body.set("url", &row.url)?;
    body.set("description", &row.description)?;
    body.set("version", &row.version)?;
    body.set("disabled", &row.disabled)?;
    body.set_some("rateLimit", row.rate_limit.as_ref())?;
    body.set_some("filterTypes", row.event_types_ids.as_ref())?;
    body.set_some("channels", row.channels.as_ref())?;
    body.set_some("metadata", row.metadata.as_ref())?;
    body.set_some("headers", row.headers.as_ref())?;
    body.set_some("secret", secrets.first().map(|(oldest, _)| oldest.to_private_text()).as_ref())?;
    Ok(body)
}

/// Values of sensitive headers are not read back: their names must do.
fn same_headers(row: &Endpoint, found: &Headers) -> bool {
    let lower = |name: &String| name.to_ascii_lowercase();
    let hidden: BTreeSet<_> = found.sensitive.iter().map(lower).collect();
    let shown: BTreeMap<_, _> =
        found.headers.iter().map(|(name, value)| (lower(name), value)).collect();
    let wanted: BTreeMap<_, _> =
        row.headers.iter().flatten().map(|(name, value)| (lower(name), value)).collect();
    wanted.len() == shown.len() + hidden.len()
        && wanted
            .iter()
            .all(|(name, value)| hidden.contains(name) || shown.get(name) == Some(value))
}
