//! `peyk explain`: why a message is where it is, a sentence for each of its deliveries.
//!
//! Without `--app` the applications of the token are asked one after the other.
//! Never: a reason of its own; the server says why.

use clap::Args;
use http::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::api::Api;
use crate::failure::Failure;
use crate::safe::safe;
use crate::show::Out;

/// Rows of a page.
const ROWS: &str = "250";

/// Why a message is where it is.
#[derive(Debug, Args)]
pub(crate) struct Question {
    /// Id or eventId of the message.
    message: String,
    /// Id or uid of an endpoint; without it every endpoint of the message is asked for.
    endpoint: Option<String>,
    /// Id or uid of the application; without it the message is looked for in all of them.
    #[arg(long)]
    app: Option<String>,
}

/// A page of things that have an id.
#[derive(Deserialize)]
struct Named {
    data: Vec<Id>,
    #[serde(default)]
    iterator: Option<String>,
    #[serde(default)]
    done: bool,
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

/// Explains each delivery that is asked for.
pub(crate) async fn run(api: &Api, out: &Out, question: Question) -> Result<(), Failure> {
    let Question { message, endpoint, app } = question;
    let app = match app {
        Some(app) => app,
        None => app_of(api, &message).await?,
    };
    let endpoints = match endpoint {
        Some(endpoint) => vec![endpoint],
        None => ids(api, &["app", &app, "msg", &message, "endpoint"]).await?,
    };
    if endpoints.is_empty() {
        return out.note("the message goes to no endpoint: none wanted it when it was accepted");
    }
    for endpoint in endpoints {
        let path = ["app", &app, "msg", &message, "endpoint", &endpoint, "explain"];
        let answer = api.request(Method::GET, &path, &[], None).await?;
        if out.is_json() {
            out.json(&String::from_utf8_lossy(&answer.body))?;
            continue;
        }
        let said: Value = answer.read()?;
        let text = |name: &str| safe(said[name].as_str().unwrap_or("-"));
        out.line(&format!("{}  {}", text("endpointId"), text("sentence")))?;
    }
    Ok(())
}

/// The application that has the message.
async fn app_of(api: &Api, message: &str) -> Result<String, Failure> {
    for app in ids(api, &["app"]).await? {
        if api.find::<Id>(&["app", &app, "msg", message]).await?.is_some() {
            return Ok(app);
        }
    }
    Err(Failure::Other(format!("no application of this token has a message `{message}`")))
}

/// The ids of a list, all pages of it.
async fn ids(api: &Api, path: &[&str]) -> Result<Vec<String>, Failure> {
    let (mut all, mut iterator) = (Vec::new(), None::<String>);
    loop {
        let mut query = vec![("limit", ROWS)];
        query.extend(iterator.as_deref().map(|iterator| ("iterator", iterator)));
        let page: Named = api.request(Method::GET, path, &query, None).await?.read()?;
        all.extend(page.data.into_iter().map(|row| row.id));
        if page.done || page.iterator.is_none() || page.iterator == iterator {
            return Ok(all);
        }
        iterator = page.iterator;
    }
}
