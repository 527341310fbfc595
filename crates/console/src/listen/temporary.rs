//! The temporary endpoint: made, found again, taken away.
//!
//! Its metadata says what it is. A run that was killed leaves its endpoint behind; the next run
//! takes away those whose listener is gone.
//! Never: take away an endpoint that somebody listens on, or one without the mark.

use std::sync::Arc;

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use url::Url;
use webhook::WebhookVerifier;

use super::receive::BODY_BYTES_MAX;
use super::way::is_loopback;
use crate::api::Api;
use crate::failure::Failure;

/// The name in the metadata by which such an endpoint is known.
const MARK: &str = "peyk-listen";
const DESCRIPTION: &str =
    "Temporary: made by `peyk listen`, which takes it away when it ends. Safe to delete.";

/// One endpoint, until it is taken away.
pub(super) struct Temporary {
    api: Arc<Api>,
    app: String,
    id: String,
    url: Url,
}

#[derive(Deserialize)]
struct Endpoint {
    id: String,
    url: String,
    #[serde(default)]
    metadata: Value,
}

#[derive(Deserialize)]
struct Page<T> {
    data: Vec<T>,
    iterator: Option<String>,
    #[serde(default)]
    done: bool,
}

#[derive(Deserialize)]
struct Named {
    id: String,
    uid: Option<String>,
}

/// The only application there is.
pub(super) async fn only_app(api: &Api) -> Result<String, Failure> {
    if let Some(own) = api.app_of_token() {
        return Ok(own);
    }
    let answer = api.request(Method::GET, &["app"], &[("limit", "2")], None).await;
    let page: Page<Named> = match answer {
        Err(Failure::Refused(said)) => {
            return Err(Failure::Refused(format!("{said}; --app names the application")));
        }
        answer => answer?.read()?,
    };
    match &page.data[..] {
        [only] => Ok(only.uid.clone().unwrap_or_else(|| only.id.clone())),
        [] => Err(Failure::Usage("there is no application yet: `peyk app create`".to_owned())),
        _ => Err(Failure::Usage("there is more than one application: say --app".to_owned())),
    }
}

impl Temporary {
    /// Takes leftovers away and makes one.
    pub(super) async fn make(
        api: Arc<Api>,
        app: String,
        url: Url,
        events: &[String],
    ) -> Result<Self, Failure> {
        sweep(&api, &app, &url).await?;
        let types = if events.is_empty() { Value::Null } else { json!(events) };
        let body = json!({
            "url": url.as_str(),
            "description": DESCRIPTION,
            "metadata": {MARK: "temporary"},
            "filterTypes": types,
        });
        let path = ["app", &app, "endpoint"];
        let answer = api.request(Method::POST, &path, &[], Some(body.to_string().into())).await?;
        let made: Endpoint = answer.read()?;
        Ok(Self { api, app, id: made.id, url })
    }

    /// Its application.
    pub(super) fn app(&self) -> &str {
        &self.app
    }

    /// Where the server sends to.
    pub(super) const fn url(&self) -> &Url {
        &self.url
    }

    /// Checks what its secret signs.
    pub(super) async fn verifier(&self) -> Result<WebhookVerifier, Failure> {
        let path = ["app", &self.app, "endpoint", &self.id, "secret"];
        let secret: Value = self.api.request(Method::GET, &path, &[], None).await?.read()?;
        let text = secret["key"].as_str().unwrap_or_default();
        let builder = WebhookVerifier::standard();
        let builder = match text.starts_with(webhook::PUBLIC_PREFIX) {
            true => builder.public_key(text),
            false => builder.secret(text),
        };
        let failed = |why: &dyn std::fmt::Display| {
            Failure::Other(format!("the endpoint's secret cannot be used: {why}"))
        };
        let builder = builder.map_err(|fault| failed(&fault))?;
        builder.max_body(BODY_BYTES_MAX).build().map_err(|fault| failed(&fault))
    }

    /// Asks for a test to be sent to it, and gives the message's id.
    pub(super) async fn test(&self) -> Result<String, Failure> {
        let path = ["app", &self.app, "endpoint", &self.id, "send-example"];
        let body = json!({"eventType": "svix.ping"}).to_string();
        let answer = self.api.request(Method::POST, &path, &[], Some(body.into())).await?;
        let message: Value = answer.read()?;
        Ok(message["id"].as_str().unwrap_or_default().to_owned())
    }

    /// Why the newest attempt at a message failed: its kind, and in words.
    pub(super) async fn failure_of(
        &self,
        message: &str,
    ) -> Result<Option<(String, String)>, Failure> {
        let path = ["app", &self.app, "attempt", "msg", message];
        let query = [("with_content", "false")];
        let page: Page<Value> = self.api.request(Method::GET, &path, &query, None).await?.read()?;
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let failed = page.data.first().filter(|row| row["status"] != 0);
        Ok(failed.map(|row| (text(row, "errorKind"), text(row, "error"))))
    }

    /// Takes it away.
    pub(super) async fn remove(&self) -> Result<(), Failure> {
        remove(&self.api, &self.app, &self.id).await
    }

    /// What is said when it could not be taken away.
    pub(super) fn left_behind(&self) -> Failure {
        let (app, id) = (&self.app, &self.id);
        Failure::Other(format!("endpoint {id} is left: `peyk endpoint delete {app} {id}`"))
    }
}

async fn remove(api: &Api, app: &str, id: &str) -> Result<(), Failure> {
    let removed = api.request(Method::DELETE, &["app", app, "endpoint", id], &[], None).await;
    match removed {
        Err(Failure::Unreachable(said)) => {
            Err(Failure::Unreachable(format!("endpoint {id} of {app} is left behind: {said}")))
        }
        // Somebody else was faster.
        Err(Failure::Refused(said)) if said.contains("(not_found)") => Ok(()),
        removed => removed.map(drop),
    }
}

/// Takes away what killed runs left behind.
async fn sweep(api: &Api, app: &str, own: &Url) -> Result<(), Failure> {
    let near = is_loopback(api.base());
    let mut iterator = None;
    loop {
        let mut query = vec![("limit", "250")];
        query.extend(iterator.as_deref().map(|iterator| ("iterator", iterator)));
        let path = ["app", app, "endpoint"];
        let page: Page<Endpoint> = api.request(Method::GET, &path, &query, None).await?.read()?;
        for endpoint in page.data {
            if endpoint.metadata[MARK].is_string() && is_left(&endpoint.url, own, near).await {
                remove(api, app, &endpoint.id).await?;
            }
        }
        if page.done || page.iterator.is_none() {
            return Ok(());
        }
        iterator = page.iterator;
    }
}

/// Whether nobody listens there: this run has the address now, or the port of this machine, which
/// is the server's too, is closed.
async fn is_left(url: &str, own: &Url, near: bool) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    if url == *own {
        return true;
    }
    if !(near && is_loopback(&url)) {
        return false;
    }
    let Ok(addresses) = url.socket_addrs(|| None) else { return false };
    let tried = TcpStream::connect(&addresses[..]).await;
    tried.is_err_and(|fault| fault.kind() == std::io::ErrorKind::ConnectionRefused)
}
