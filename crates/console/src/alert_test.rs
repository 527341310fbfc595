//! `peyk alert test`: sends a trial on a route of alerts, and says what it was answered.
//!
//! Never: a word of its own to a channel; the server sends the trial as it would an alert.

use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::api::Api;
use crate::call::View;
use crate::failure::Failure;
use crate::safe::safe;
use crate::show::Out;

/// The route is looked at so often …
const LOOKS: u32 = 40;
/// … so far apart.
const APART: Duration = Duration::from_millis(500);

/// What is looked at of a route.
#[derive(Deserialize)]
struct Route {
    channel: String,
    delivery: Option<Delivery>,
}

#[derive(Deserialize)]
struct Delivery {
    #[serde(default)]
    disabled: bool,
    #[serde(rename = "lastAttempt")]
    last_attempt: Option<Value>,
}

impl Route {
    fn last(&self) -> Option<&Value> {
        self.delivery.as_ref()?.last_attempt.as_ref()
    }

    fn is_disabled(&self) -> bool {
        self.delivery.as_ref().is_some_and(|delivery| delivery.disabled)
    }
}

/// Sends it, and waits for an attempt.
pub(crate) async fn run(api: &Api, out: &Out, name: &str) -> Result<(), Failure> {
    let path = ["alert", "route", name];
    let read = async || api.request(Method::GET, &path, &[], None).await?.read::<Route>();
    let before = read().await?;
    if before.is_disabled() {
        let name = safe(name);
        let said = format!("{name} is disabled since it answered 410: set it anew to enable it");
        return Err(Failure::Other(said));
    }
    let sent = api.request(Method::POST, &["alert", "route", name, "test"], &[], None).await?;
    if out.is_json() {
        out.answer(&sent, &View::One)?;
    }
    if before.channel == "email" {
        return out.note("a trial is on its way; whether it arrives is seen in the mailbox");
    }
    for _ in 0..LOOKS {
        tokio::time::sleep(APART).await;
        let now = read().await?;
        let Some(last) = now.last().filter(|last| Some(*last) != before.last()) else { continue };
        let channel = safe(&now.channel);
        let error = safe(last["error"].as_str().unwrap_or_default());
        return match (last["statusCode"].as_u64().unwrap_or(0), last["errorKind"].as_str()) {
            (code @ 200..=299, _) => out.note(&format!("{channel} answered {code}")),
            (0, Some("forbidden")) => {
                Err(Failure::Other(format!("{channel} is a forbidden_target: {error}")))
            }
            (0, _) if error.is_empty() => Err(Failure::Other(format!("{channel} did not answer"))),
            (0, _) => Err(Failure::Other(format!("{channel} did not answer: {error}"))),
            (code, _) => Err(Failure::Other(format!("{channel} answered {code}"))),
        };
    }
    Err(Failure::Other("nothing was sent yet; see `peyk alert route get`".to_owned()))
}
