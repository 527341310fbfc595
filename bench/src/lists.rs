//! `bench lists`: pages of lists with a million messages and as many attempts stored.
//!
//! The state is made by peyk itself, over the API: half of the messages go to one application, a
//! quarter of all to one endpoint of it, one in eighteen to an endpoint that fails, whose
//! deliveries die of it. One message in a hundred thousand is rare: it has an event type, a channel
//! and a tag that no other has. Each list is then asked as a caller asks it: the newest page and
//! those behind it, and pages from the middle on.
//! Never: write into the database; what is measured is what peyk made.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api::Session;
use crate::child::Peyk;
use crate::fault::{Fault, Result};
use crate::load::Load;
use crate::pending::wait_seen;
use crate::scene::Scene;
use crate::stats::{Times, Verdict};

/// The bar of every list.
const P99_MS: f64 = 50.0;
/// Applications, and endpoints of each.
const APPS: u32 = 100;
const ENDPOINTS: u32 = 10;
/// Applications in turn: every other message is for the first.
const TURNS: u32 = 2 * (APPS - 1);
/// Event types in turn: every other message of an application is of the first.
const TYPES: u32 = 2 * (ENDPOINTS - 1);
/// One message in so many is rare, one in so many can be asked for by its number.
const RARE: u32 = 100_000;
/// Pages that are followed before a list is begun anew.
const WALK: u32 = 20;
/// A list that takes so long is not asked any more.
const LIST_MAX: Duration = Duration::from_secs(10);
/// Messages posted between two looks at how far the receiver is.
const PIECE: u32 = 20_000;
/// Unsent messages that may wait while the state is made.
const BEHIND_MAX: u32 = 50_000;

/// Settings under which the state is made: what fails once is dead, and nobody is kept waiting.
const FILL: [(&str, &str); 2] =
    [("PEYK_RETRY__ATTEMPTS_MAX", "1"), ("PEYK_BREAKER__ENABLED", "false")];

/// Options of `bench lists`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    peyk: Peyk,
    /// Messages, each with one attempt; 200,000 at least.
    #[arg(long, default_value_t = 1_000_000, value_parser = rows_parser())]
    rows: u32,
    /// Requests for each list.
    #[arg(long, default_value_t = 200)]
    requests: u32,
    /// Use, or make and keep, the state in this directory.
    #[arg(long)]
    state: Option<PathBuf>,
    /// Exit with 1 when a bar is missed.
    #[arg(long)]
    check: bool,
}

/// Fewer messages would hold no rare one on both sides of the middle.
fn rows_parser() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(2 * i64::from(RARE)..)
}

/// A list as it is asked for.
struct Asked {
    name: &'static str,
    path: String,
    query: String,
}

/// Makes the state and measures; `false` when a bar to be checked was missed.
pub(crate) async fn run(options: Options) -> Result<bool> {
    let scratch = options.peyk.data_dir()?;
    let dir = options.state.clone().unwrap_or_else(|| scratch.path().join("full"));
    if options.state.as_ref().is_some_and(|state| state.exists()) {
        println!("using the state in {}", dir.display());
    } else {
        std::fs::create_dir_all(&dir)?;
        fill(&options, &dir).await?;
    }
    let scene = Scene::start(&options.peyk, &dir, &[], 0).await?;
    let mut session = scene.api.session().await?;
    let number = options.rows / 2 / RARE * RARE;
    let middle = session.get(&format!("/api/v1/app/lists-0/msg/nr-{number}")).await?;
    let middle =
        Middle { time: text(&middle, "timestamp")?.replace('+', "%2B"), id: text(&middle, "id")? };
    let mut met = true;
    for asked in lists(&middle) {
        met &= measure(&mut session, &asked, options.requests.max(1)).await?;
    }
    scene.child.stop().await?;
    Ok(met || !options.check)
}

/// A message in the middle of the first application.
struct Middle {
    time: String,
    id: String,
}

/// Every list, with what it can be filtered by.
fn lists(middle: &Middle) -> Vec<Asked> {
    let app = "/api/v1/app/lists-0";
    let before = format!("before={}", middle.time);
    let after = format!("after={}", middle.time);
    let message = &middle.id;
    let mut all = Vec::new();
    let mut ask = |name, path: &str, query: &str| {
        all.push(Asked { name, path: path.to_owned(), query: query.to_owned() });
    };
    let messages = format!("{app}/msg");
    ask("messages", &messages, "");
    ask("messages, 250 without content", &messages, "limit=250&with_content=false");
    ask("messages, before", &messages, &before);
    ask("messages, after", &messages, &after);
    ask("messages, one type in 18", &messages, "event_types=lists.type-1");
    ask(
        "messages, one type in 18, before",
        &messages,
        &format!("event_types=lists.type-1&{before}"),
    );
    ask("messages, channel", &messages, "channel=one-in-18");
    ask("messages, tag", &messages, "tag=one-in-18");
    ask("messages, rare type", &messages, "event_types=lists.rare");
    ask("messages, rare channel", &messages, "channel=rare");
    ask("messages, rare tag, before", &messages, &format!("tag=rare&{before}"));
    ask("messages, tag of none", &messages, "tag=none");
    let to = format!("{app}/attempt/endpoint/lists-0-0");
    ask("attempts", &to, "");
    ask("attempts, 250 without content", &to, "limit=250&with_content=false");
    ask("attempts, before", &to, &before);
    ask("attempts, after", &to, &after);
    ask("attempts, status=0", &to, "status=0");
    ask("attempts, none failed", &to, "status=2");
    ask("attempts, none of class 500", &to, "status_code_class=500");
    ask("attempts, rare type", &to, "event_types=lists.rare");
    ask("attempts, rare channel, before", &to, &format!("channel=rare&{before}"));
    let failed = format!("{app}/attempt/endpoint/lists-0-9");
    ask("attempts of a failing endpoint, class 500", &failed, "status_code_class=500");
    ask("attempts of a message", &format!("{app}/attempt/msg/{message}"), "");
    ask("endpoints of a message", &format!("{app}/msg/{message}/endpoint"), "");
    let sent = format!("{app}/endpoint/lists-0-0/msg");
    ask("messages of an endpoint", &sent, "");
    ask("messages of an endpoint, before", &sent, &before);
    ask("messages of an endpoint, none failed", &sent, "status=2");
    ask("messages of an endpoint, rare tag", &sent, "tag=rare");
    ask("messages of an endpoint, one in 18", &format!("{app}/endpoint/lists-0-1/msg"), "");
    let dead = format!("{app}/dead-letter");
    ask("dead letters of all", "/api/v1/dead-letter", "");
    ask("dead letters", &dead, "");
    ask("dead letters, before", &dead, &before);
    ask("dead letters, endpoint", &dead, "endpoint_id=lists-0-9");
    ask("dead letters, type of none", &dead, "event_types=lists.rare");
    ask("dead letters, reason of none", &dead, "reason=expired");
    ask("background tasks", "/api/v1/background-task", "");
    ask("applications", "/api/v1/app", "");
    ask("endpoints", &format!("{app}/endpoint"), "");
    all
}

/// Asks for one list again and again; whether it cleared the bar.
async fn measure(session: &mut Session, asked: &Asked, requests: u32) -> Result<bool> {
    let (mut took, mut rows, mut iterator) = (Vec::new(), 0, None);
    let began = Instant::now();
    for request in 0..requests {
        if began.elapsed() > LIST_MAX {
            break;
        }
        if request.is_multiple_of(WALK) {
            iterator = None;
        }
        let on = iterator.map(|text| format!("&iterator={text}")).unwrap_or_default();
        let (page, us) = session.timed(&format!("{}?{}{on}", asked.path, asked.query)).await?;
        took.push(us);
        rows += page["data"].as_array().map_or(0, Vec::len);
        iterator = match page["done"].as_bool() {
            Some(true) | None => None,
            Some(false) => page["iterator"].as_str().map(str::to_owned),
        };
    }
    let asked_times = took.len();
    let times = Times::new(took);
    let name = format!(
        "{:<42} {asked_times:>3} pages, {:>5.1} rows each, p50 {:>7.2} ms; p99, ms",
        asked.name,
        rows as f64 / asked_times as f64,
        times.percentile_ms(50.0),
    );
    let verdict = Verdict::below(&name, times.percentile_ms(99.0), P99_MS);
    println!("{verdict}");
    Ok(verdict.met())
}

/// Makes applications, endpoints, messages and attempts, and stops the server.
async fn fill(options: &Options, dir: &Path) -> Result<()> {
    let began = Instant::now();
    let mut scene = Scene::start(&options.peyk, dir, &FILL, options.rows).await?;
    directory(&scene).await?;
    let apps = (0..TURNS).map(|turn| format!("lists-{}", app_of(turn))).collect();
    let load = Load { kind, idempotency: false, ..scene.load(&apps) };
    let mut posted = 0;
    while posted < options.rows {
        let piece = PIECE.min(options.rows - posted);
        scene.flood_as(&load, piece).await?;
        posted += piece;
        wait_seen(&scene, posted, BEHIND_MAX).await?;
    }
    wait_seen(&scene, posted, 0).await?;
    scene.child.stop().await?;
    println!("made {posted} messages and attempts in {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// Event types, applications, and endpoints of which each takes another type.
async fn directory(scene: &Scene) -> Result<()> {
    let mut session = scene.api.session().await?;
    let names = (0..ENDPOINTS).map(|of| format!("lists.type-{of}"));
    for name in names.chain(["lists.rare".to_owned()]) {
        session.post("/api/v1/event-type", &json!({"name": name, "description": ""})).await?;
    }
    for app in 0..APPS {
        let uid = format!("lists-{app}");
        session.post("/api/v1/app", &json!({"name": uid, "uid": uid})).await?;
        for of in 0..ENDPOINTS {
            let path = if of == ENDPOINTS - 1 { "/status/500" } else { "/ok" };
            let mut types = vec![format!("lists.type-{of}")];
            types.extend((of == 0).then(|| "lists.rare".to_owned()));
            let endpoint = json!({
                "uid": format!("{uid}-{of}"),
                "url": scene.url(&format!("{path}/{app}/{of}")),
                "filterTypes": types,
            });
            session.post(&format!("/api/v1/app/{uid}/endpoint"), &endpoint).await?;
        }
    }
    Ok(())
}

/// The application of a message: the first for every other one.
const fn app_of(seq: u32) -> u32 {
    let turn = seq % TURNS;
    if turn.is_multiple_of(2) { 0 } else { turn / 2 + 1 }
}

/// Event type, channels and tags of a message.
fn kind(seq: u32, members: &mut String) {
    let of = (seq / TURNS % TYPES).saturating_sub(ENDPOINTS - 2);
    let (event_type, label) = match (seq % RARE, of) {
        (at, _) if at == RARE / 2 => ("lists.rare".to_owned(), "rare"),
        (_, 1) => ("lists.type-1".to_owned(), "one-in-18"),
        _ => (format!("lists.type-{of}"), "many"),
    };
    members.push_str(&format!(
        "\"eventType\":\"{event_type}\",\"channels\":[\"{label}\"],\"tags\":[\"{label}\"],"
    ));
    if seq.is_multiple_of(RARE) {
        members.push_str(&format!("\"eventId\":\"nr-{seq}\","));
    }
}

fn text(value: &Value, name: &str) -> Result<String> {
    let text = value[name].as_str().map(str::to_owned);
    text.ok_or_else(|| Fault::new(format!("a message without {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_and_numbered_messages_are_of_the_first_application() {
        let mut shares = [0; 3];
        for seq in 0..1_000_000 {
            let mut members = String::new();
            kind(seq, &mut members);
            let first = app_of(seq) == 0;
            let special = members.contains("rare") || members.contains("eventId");
            assert!(first || !special, "{seq}");
            assert!(app_of(seq) < APPS);
            shares[0] += u32::from(first);
            shares[1] += u32::from(first && members.contains("type-0"));
            shares[2] += u32::from(members.contains("rare"));
            assert!(!members.contains("type-10"), "{members}");
        }
        assert_eq!((shares[0], shares[2]), (500_000, 10));
        assert!((240_000..260_000).contains(&shares[1]), "{shares:?}");
    }
}
