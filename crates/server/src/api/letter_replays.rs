//! Many dead letters put back at once: counted first, or by a background task.
//!
//! Never: count letters of endpoints that are gone or, of all, switched off; nothing is sent to
//! those.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::application::AppSnapshot;
use domain::dead_letter::DeadReason;
use domain::endpoint::Endpoint;
use domain::error::Invalid;
use domain::ids::{EndpointKey, MessageKey};
use domain::limits::{REPLAY_IDS_MAX, REPLAY_RATE_MAX};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use store::dead_letters::DeadFilter;
use store::tasks::{Letters, TaskSpec, Work};

use super::inputs::task::DeadLettersReplayIn;
use super::operation::Operation;
use super::own;
use super::replays::{during, spec, type_names};
use super::resend::endpoint_disabled;
use super::tasks::begin;
use super::views::dead_letter::{NO_RUN, keys_of, run_of};
use super::views::task::TaskOut;
use crate::http::auth::Auth;
use crate::http::extract::{Place, Received};
use crate::http::fields::{Fields, flag, text, texts, whole};
use crate::http::idempotency::Answer;
use crate::http::problem::Problem;
use crate::spelling::one_of;
use crate::state::Shared;

/// How many there are, of a dry run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DeadLetterCountOut")]
struct CountOut {
    count: u64,
}

/// What was asked for.
pub(super) struct Asked {
    endpoint: Option<String>,
    /// The endpoint of the run that was named.
    of_run: Option<EndpointKey>,
    letters: Letters,
    rate_per_s: Option<u32>,
    is_dry: bool,
}

pub(super) const REPLAY_MANY: Operation =
    Operation::new("v1.dead-letter.bulk-replay", "Puts many back at a rate, or counts them.")
        .may_take::<DeadLettersReplayIn>()
        .once()
        .gives::<CountOut>(200)
        .gives::<TaskOut>(202)
        .or("conflict")
        .or("endpoint_disabled");

/// `POST /app/{app}/dead-letter/replay`
pub(super) async fn replay_many(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(app): Place<String>,
    received: Received,
) -> Result<Response, Problem> {
    let asked = read(&received.body)?;
    let app = own::app(&shared, &caller, &app).await?;
    let named = match &asked.endpoint {
        None => None,
        Some(text) => Some(own::endpoint_of(&app, text)?),
    };
    let endpoint = match asked.of_run {
        None => named,
        Some(key) if named.as_ref().is_some_and(|named| named.key != key) => {
            return Err(Invalid::new("runId", "must be of that endpoint").into());
        }
        // Of an endpoint that is gone or another's there is nothing to put back.
        Some(key) => {
            Some(app.endpoints.iter().find(|it| it.key == key).cloned().ok_or_else(own::missing)?)
        }
    };
    let count = count(&shared, &app, (endpoint.as_deref(), &asked.letters)).await?;
    if asked.is_dry {
        return Ok(Answer::json(StatusCode::OK, &CountOut { count }).into_response());
    }
    if endpoint.as_ref().is_some_and(|endpoint| endpoint.spec.disabled.is_some()) {
        return Err(endpoint_disabled());
    }
    let spec = TaskSpec {
        endpoint: endpoint.map(|endpoint| endpoint.key),
        rate_per_s: asked.rate_per_s,
        total: Some(count),
        ..spec(&caller, &app, Work::DeadLetters(asked.letters))
    };
    begin(&shared, (&caller, &received), spec).await
}

/// The body may be left out, for all there is.
pub(super) fn read(body: &[u8]) -> Result<Asked, Problem> {
    let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
    let mut fields = Fields::parse(body)?;
    let run = fields.nullable(&["runId"], None, |name, value| {
        run_of(&text(name, value)?).ok_or_else(|| Invalid::new(name, NO_RUN))
    });
    let asked = Asked {
        endpoint: fields.nullable(&["endpointId"], None, text),
        letters: Letters {
            reasons: asked_reasons(&mut fields),
            event_types: some_event_types(&mut fields),
            during: during(&mut fields),
            ids: fields.nullable(&["ids"], None, ids).unwrap_or_default(),
            run: run.map(|(_, since)| since),
        },
        of_run: run.map(|(endpoint, _)| endpoint),
        rate_per_s: fields.nullable(&["ratePerS"], None, whole(1..=u64::from(REPLAY_RATE_MAX))),
        is_dry: fields.firm("dryRun", None, Some(false), flag).unwrap_or_default(),
    };
    fields.finish()?;
    Ok(asked)
}

/// Reads `eventTypes`; none for all, so that an empty list is a mistake.
fn some_event_types(fields: &mut Fields<'_>) -> Vec<String> {
    let names = fields
        .nullable(&["eventTypes"], None, |name, value| filled(name, type_names(name, value)?));
    names.unwrap_or_default()
}

/// Reads `reason` or `reasons`; none for all.
fn asked_reasons(fields: &mut Fields<'_>) -> Vec<DeadReason> {
    let one = fields.nullable(&["reason"], None, |name, value| named(name, &text(name, value)?));
    let many = fields.nullable(&["reasons"], None, |name, value| {
        let names = filled(name, texts(name, value)?)?;
        names.iter().map(|text| named(name, text)).collect::<Result<Vec<_>, _>>()
    });
    if one.is_some() && many.is_some() {
        fields.fail("reason", "must not be given together with `reasons`");
    }
    many.unwrap_or_else(|| one.into_iter().collect())
}

/// A list that none would be a mistake of.
fn filled<T>(name: &str, list: Vec<T>) -> Result<Vec<T>, Invalid> {
    if list.is_empty() { Err(Invalid::new(name, "must not be empty")) } else { Ok(list) }
}

fn named(name: &str, text: &str) -> Result<DeadReason, Invalid> {
    let found = DeadReason::from_name(text);
    found.ok_or_else(|| Invalid::new(name, one_of(&DeadReason::ALL.map(DeadReason::name))))
}

fn ids(name: &str, value: &Value) -> Result<Vec<(EndpointKey, MessageKey)>, Invalid> {
    let ids = texts(name, value)?;
    if ids.is_empty() || ids.len() > REPLAY_IDS_MAX {
        return Err(Invalid::new(name, format!("must have 1 to {REPLAY_IDS_MAX} entries")));
    }
    let keys = ids.iter().map(|id| keys_of(id).map(|(message, endpoint)| (endpoint, message)));
    let keys: Option<Vec<_>> = keys.collect();
    let mut keys = keys.ok_or_else(|| Invalid::new(name, "must be ids of dead letters"))?;
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

/// How many dead letters are put back.
async fn count(
    shared: &Shared,
    app: &AppSnapshot,
    (only, letters): (Option<&Endpoint>, &Letters),
) -> Result<u64, Problem> {
    let dead_letters = &shared.engine.stores().dead_letters;
    let mut count = 0;
    for endpoint in &app.endpoints {
        let is_meant = match only {
            Some(only) => only.key == endpoint.key,
            None => endpoint.spec.disabled.is_none(),
        };
        if !is_meant {
            continue;
        }
        if letters.ids.is_empty() {
            let filter = DeadFilter {
                app: Some(app.app.key),
                endpoint: Some(endpoint.key),
                reasons: letters.reasons.clone(),
                event_types: letters.event_types.clone(),
                before: letters.during.until,
                after: letters.during.since,
                run: letters.run,
            };
            count += dead_letters.count(app.app.org, filter).await?;
            continue;
        }
        for (_, message) in letters.ids.iter().filter(|(key, _)| *key == endpoint.key) {
            let found = dead_letters.dead_letter(*message, endpoint.key).await?;
            let found = found.filter(|letter| letters.takes(letter));
            count += u64::from(found.is_some());
        }
    }
    Ok(count)
}
