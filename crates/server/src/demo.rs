//! `peyk demo`: a server on a scratch directory, receivers that behave badly, and what Peyk makes
//! of it, in lines.
//!
//! It goes by the API that everybody uses, so each step can be repeated by hand. Less than a
//! minute, then a summary.
//! Never: touch anything outside its scratch directory and its own ports.

mod client;
mod narrator;
mod receiver;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::app::{self, Peyk, Trouble};
use crate::config::raw::Raw;
use crate::config::{Settings, source};
use crate::http::tokens::DEFAULT_ORG;
use crate::telemetry::logs;
use client::Client;
use narrator::{Narrator, say};
use receiver::Receiver;

/// Between two sample events.
const EVENT_EVERY: Duration = Duration::from_millis(1_200);
/// After the heading of a step, so that it can be read.
const READING: Duration = Duration::from_secs(2);
/// How long a step may take before the demo goes on without it.
const STEP_MAX: Duration = Duration::from_secs(40);
/// The application of the demo.
const APP: &str = "demo";

/// Runs the demo; with `forever` it goes on with sample events until it is interrupted.
pub(crate) fn run(forever: bool) -> Result<(), String> {
    let scratch = source::scratch_directory()?;
    let result = app::runtime()?.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(|fault| fault.to_string())?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(|fault| fault.to_string())?;
        tokio::select! {
            told = told(&scratch, forever) => return told,
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        say("interrupted");
        Ok(())
    });
    let _left = std::fs::remove_dir_all(&scratch);
    result
}

async fn told(scratch: &Path, forever: bool) -> Result<(), String> {
    let receiver = Receiver::start().await?;
    let settings = settings(scratch.to_path_buf(), receiver.port())?;
    logs::start(&settings).map_err(|fault| fault.to_string())?;
    let narrator = Arc::new(Narrator::new(app::clock()));
    let peyk = Peyk::start(settings, Arc::clone(&narrator) as _).await.map_err(Trouble::said)?;
    let token = peyk.token(DEFAULT_ORG).ok_or("cannot make a token")?;
    let client = Client::new(peyk.address(), token);
    say(&format!(
        "Peyk listens on http://{} with its data in {}",
        peyk.address(),
        scratch.display()
    ));
    let story = Story { client, narrator, receiver };
    story.tell().await?;
    summary(&story);
    if forever {
        story.go_on().await?;
    }
    peyk.stop().await;
    Ok(())
}

fn settings(data_dir: PathBuf, port: u16) -> Result<Settings, String> {
    let variables = [
        ("PEYK_LISTEN_ADDRESS", "127.0.0.1:0".to_owned()),
        ("PEYK_DATA_DIR", data_dir.display().to_string()),
        ("PEYK_ALLOWED_TARGETS", format!("127.0.0.1/32:{port}")),
        ("PEYK_LOG__LEVEL", "error".to_owned()),
    ];
    let read = || {
        let mut raw = Raw::defaults()?;
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value));
        raw.overlay_environment(variables.collect())?;
        Settings::from_raw(&raw)
    };
    read().map_err(|fault| fault.to_string())
}

/// The steps of the demo and what they use.
struct Story {
    client: Client,
    narrator: Arc<Narrator>,
    receiver: Receiver,
}

impl Story {
    async fn tell(&self) -> Result<(), String> {
        self.set_up().await?;
        self.steady_and_flaky().await?;
        self.breaker().await?;
        self.dead_letter().await
    }

    async fn set_up(&self) -> Result<(), String> {
        say("\n1. One application, three endpoints: each takes its own type of event");
        self.client.post("/app", &json!({"name": "Demo", "uid": APP})).await?;
        say(&format!("      application {APP}"));
        for (name, policy, told) in [
            (
                "flaky",
                json!({"base": "800ms", "strategy": "full_jitter"}),
                "tried again after 0.8 s, 1.6 s and so on, less by chance",
            ),
            ("sick", json!({"base": "500ms", "cap": "2s"}), "tried again after 2 s at most"),
            ("strict", json!({}), "tried again as the server's settings say"),
        ] {
            let kind = json!({"name": format!("demo.{name}"), "description": "of the demo"});
            self.client.post("/event-type", &kind).await?;
            let endpoint = json!({"uid": name, "url": self.receiver.url(name),
                "eventTypes": [format!("demo.{name}")], "retryPolicy": policy,
                "breaker": {"failures": 5, "openFor": "5s", "openForMax": "20s"}});
            self.client.post(&format!("/app/{APP}/endpoint"), &endpoint).await?;
            say(&format!("      endpoint {name:<6} takes demo.{name}, {told}"));
        }
        tokio::time::sleep(READING).await;
        Ok(())
    }

    async fn steady_and_flaky(&self) -> Result<(), String> {
        heading("2. `flaky` refuses every second event twice: it is tried again, a little later")
            .await;
        for number in 1..=8 {
            self.event("demo.flaky", number).await?;
            tokio::time::sleep(EVENT_EVERY).await;
        }
        self.narrator.wait(STEP_MAX, |seen| seen.delivered >= 8).await;
        Ok(())
    }

    async fn breaker(&self) -> Result<(), String> {
        heading("3. `sick` is down: after 5 failures its breaker opens, and events wait in place")
            .await;
        let before = self.narrator.seen().delivered;
        for number in 1..=6 {
            self.event("demo.sick", number).await?;
        }
        self.narrator.wait(STEP_MAX, |seen| seen.opened >= 1).await;
        let breaker = self.client.get(&format!("/app/{APP}/endpoint/sick/breaker")).await?;
        say(&format!("      the breaker says: {breaker}"));
        say(
            "   one probe at a time finds out whether it is back; each that fails doubles the wait",
        );
        self.narrator.wait(STEP_MAX, |seen| seen.opened >= 2).await;
        tokio::time::sleep(READING).await;
        say("   now `sick` is well again: one probe decides, then everything that waited goes out");
        self.receiver.heal();
        self.narrator.wait(STEP_MAX, |seen| seen.delivered >= before + 6).await;
        Ok(())
    }

    async fn dead_letter(&self) -> Result<(), String> {
        heading("4. `strict` refuses an event for good: no retries, a dead letter with all kept")
            .await;
        let before = self.narrator.seen().delivered;
        self.event("demo.strict", 1).await?;
        self.narrator.wait(STEP_MAX, |seen| seen.buried >= 1).await;
        let list = self.client.get(&format!("/app/{APP}/dead-letter")).await?;
        let letter = &list["data"][0];
        say(&format!(
            "      {} reason={} lastStatusCode={}",
            letter["id"].as_str().unwrap_or_default(),
            letter["reason"].as_str().unwrap_or_default(),
            letter["lastStatusCode"]
        ));
        tokio::time::sleep(EVENT_EVERY * 2).await;
        say(
            "   `strict` is mended, and the dead letter replayed: the same webhook-id, signed afresh",
        );
        self.receiver.mend();
        let id = letter["id"].as_str().unwrap_or_default();
        self.client.post(&format!("/app/{APP}/dead-letter/{id}/replay"), &json!({})).await?;
        self.narrator.wait(STEP_MAX, |seen| seen.delivered > before).await;
        Ok(())
    }

    async fn event(&self, event_type: &str, number: u32) -> Result<(), String> {
        let message = json!({"eventType": event_type, "payload": {"number": number}});
        self.client.post(&format!("/app/{APP}/msg"), &message).await.map(drop)
    }

    async fn go_on(&self) -> Result<(), String> {
        say("\nGoing on with sample events; end it with Ctrl-C");
        for number in 1.. {
            self.event("demo.flaky", number).await?;
            tokio::time::sleep(EVENT_EVERY).await;
        }
        Ok(())
    }
}

async fn heading(text: &str) {
    say(&format!("\n{text}"));
    tokio::time::sleep(READING).await;
}

fn summary(story: &Story) {
    let seen = story.narrator.seen();
    say(&format!(
        "\nIn short:\n  \
         {} events were delivered with {} sends, {} of which failed.\n  \
         A breaker opened {} time(s) and closed {} time(s).\n  \
         {} dead letter(s) were kept and replayed.\n  \
         Nothing was lost, and no receiver was hammered.",
        seen.delivered, seen.sends, seen.failed, seen.opened, seen.closed, seen.buried
    ));
    say("\nTo go on by yourself:\n  \
         `peyk serve` starts a server, `peyk token` prints a token for it.\n  \
         Create an application and an endpoint with curl or any Svix SDK.\n  \
         `peyk demo --forever` keeps this one running.\n  \
         config.default.toml explains every setting.");
}
