//! `peyk explain`: why a message is where it is, a sentence for each of its deliveries.
//!
//! Without `--app` the applications of the token are asked one after the other. With `--json` an
//! error is an object on standard output too: the server's, if it said one.
//! Never: a reason of its own; the server says why.

use bytes::Bytes;
use clap::Args;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{Answer, Api, accepted};
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

/// Why nothing is explained, and the server's words for it.
struct Unexplained {
    failure: Failure,
    body: Option<Bytes>,
}

impl From<Failure> for Unexplained {
    fn from(failure: Failure) -> Self {
        Self { failure, body: None }
    }
}

impl Unexplained {
    /// As an object.
    fn json(&self) -> String {
        let known =
            self.body.as_deref().filter(|body| serde_json::from_slice::<Value>(body).is_ok());
        match known {
            Some(body) => String::from_utf8_lossy(body).into_owned(),
            None => {
                json!({"code": "not_explained", "detail": self.failure.to_string()}).to_string()
            }
        }
    }
}

/// Explains each delivery that is asked for.
pub(crate) async fn run(api: &Api, out: &Out, question: Question) -> Result<(), Failure> {
    let Err(why) = explained(api, out, question).await else { return Ok(()) };
    if out.is_json() {
        out.json(&why.json())?;
    }
    Err(why.failure)
}

async fn explained(api: &Api, out: &Out, question: Question) -> Result<(), Unexplained> {
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
        let said = "the message goes to no endpoint: none wanted it when it was accepted";
        if out.is_json() {
            out.json(&json!({"code": "not_routed", "detail": said}).to_string())?;
        }
        return Ok(out.note(said)?);
    }
    for endpoint in endpoints {
        let path = ["app", &app, "msg", &message, "endpoint", &endpoint, "explain"];
        let answer = asked(api, &path, &[]).await?;
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
async fn app_of(api: &Api, message: &str) -> Result<String, Unexplained> {
    for app in ids(api, &["app"]).await? {
        if api.find::<Id>(&["app", &app, "msg", message]).await?.is_some() {
            return Ok(app);
        }
    }
    Err(Failure::Other(format!("no application of this token has a message `{message}`")).into())
}

/// An answer that is no refusal; of a refusal its body is kept.
async fn asked(api: &Api, path: &[&str], query: &[(&str, &str)]) -> Result<Answer, Unexplained> {
    let answer = api.answer(Method::GET, path, query).await?;
    let body = answer.body.clone();
    accepted(answer).map_err(|failure| Unexplained { failure, body: Some(body) })
}

/// The ids of a list, all pages of it.
async fn ids(api: &Api, path: &[&str]) -> Result<Vec<String>, Unexplained> {
    let (mut all, mut iterator) = (Vec::new(), None::<String>);
    loop {
        let mut query = vec![("limit", ROWS)];
        query.extend(iterator.as_deref().map(|iterator| ("iterator", iterator)));
        let page: Named = asked(api, path, &query).await?.read()?;
        all.extend(page.data.into_iter().map(|row| row.id));
        if page.done || page.iterator.is_none() || page.iterator == iterator {
            return Ok(all);
        }
        iterator = page.iterator;
    }
}
