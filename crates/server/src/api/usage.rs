//! What an organisation's endpoints subscribe to, application by application.
//!
//! The SDKs take this for a background task. It is done when it is answered, so that the answer
//! carries what a finished task would.
//! Never: count anything; it reads the directory.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::application::AppSnapshot;
use domain::ids::{Kind, PublicId, key_floor};
use http::StatusCode;
use serde::Serialize;
use store::page::{Direction, PageOf};

use super::views::time;
use crate::http::auth::Auth;
use crate::http::idempotency::Answer;
use crate::http::problem::Problem;
use crate::state::{Shared, random};

/// Applications looked at; an organisation with more is told so.
const APPS_MAX: usize = 10_000;
/// Applications read at once.
const PAGE: usize = 250;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AggregateOut {
    id: String,
    status: &'static str,
    task: &'static str,
    updated_at: String,
    data: AggregateData,
}

#[derive(Serialize)]
struct AggregateData {
    event_types: Vec<SubscribedOut>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubscribedOut {
    app_id: String,
    explicitly_subscribed_event_types: BTreeSet<String>,
    has_catch_all_endpoint: bool,
}

/// `PUT /stats/usage/event-types`
pub(super) async fn event_types(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
) -> Result<Response, Problem> {
    caller.org_only()?;
    let directory = &shared.engine.stores().directory;
    let (mut found, mut beyond) = (Vec::new(), None);
    loop {
        let page = PageOf { beyond, direction: Direction::Ascending, limit: PAGE };
        let apps = directory.apps(caller.org, page).await?;
        beyond = apps.last().map(|app| app.id);
        for app in &apps {
            // One that was deleted meanwhile subscribes to nothing.
            found.extend(directory.app_by_key(app.key).await?.as_ref().map(subscribed));
        }
        if found.len() > APPS_MAX {
            let detail = format!("This counts at most {APPS_MAX} applications");
            return Err(Problem::bad_request("limit_reached", detail));
        }
        if apps.len() < PAGE {
            break;
        }
    }
    let now = shared.now();
    let shown = AggregateOut {
        id: PublicId::new(key_floor(now), random()?).text(Kind::Task),
        status: "finished",
        task: "event-type.aggregate",
        updated_at: time(now),
        data: AggregateData { event_types: found },
    };
    Ok(Answer::json(StatusCode::OK, &shown).into_response())
}

fn subscribed(app: &AppSnapshot) -> SubscribedOut {
    let named = app.endpoints.iter().filter_map(|to| to.spec.event_types.as_ref());
    SubscribedOut {
        app_id: app.app.id.text(Kind::Application),
        explicitly_subscribed_event_types: named.flatten().cloned().collect(),
        has_catch_all_endpoint: app.endpoints.iter().any(|to| to.spec.event_types.is_none()),
    }
}
