//! A breaker in a real Redis: what asking costs beside a bare round trip, and that a closed breaker
//! which need not ask does not.
//!
//! Never: another server than one of this measurement's own.

use std::time::Duration;

use ::shared::RedisBreakerStore;
use redis::aio::ConnectionManager;
use redis::{Client, Script};
use resilience::shared::{SharedBreaker, Sharing};
use resilience::{TokioSleeper, Vote};
use testparts::Redis;
use tokio::time::Instant;

use crate::fault::{Fault, Result, While as _};
use crate::stats::{Times, Verdict};

type Breaker = SharedBreaker<RedisBreakerStore, TokioSleeper>;

/// A strict admission beside a script that does nothing.
const ASK_RATIO: f64 = 1.3;
const CLOSED_CALLS: u32 = 100_000;

/// Measures `asks` admissions and as many bare round trips, in turn.
pub(super) async fn measure(asks: u32) -> Result<Vec<Verdict>> {
    let redis = tokio::task::spawn_blocking(Redis::start).await?;
    let client = Client::open(redis.url()).while_("opening the client")?;
    let connection = ConnectionManager::new(client).await.while_("connecting to Redis")?;
    let strict = breaker("strict", &connection, Sharing::Strict)?;
    let (mut pings, mut scripts, mut admits) = (Vec::new(), Vec::new(), Vec::new());
    let nothing = Script::new("return 1");
    let mut bare = connection.clone();
    // The first tenth warms up.
    for ask in 0..asks + asks / 10 {
        let begun = Instant::now();
        let () = redis::cmd("PING").query_async(&mut bare).await.while_("PING")?;
        let pinged = Instant::now();
        let _one: u8 = nothing.invoke_async(&mut bare).await.while_("EVALSHA")?;
        let ran = Instant::now();
        let permit = strict.acquire().await.while_("asking")?;
        let asked = Instant::now();
        permit.record(Vote::Ignore).await;
        if ask >= asks / 10 {
            pings.push(nanos(pinged - begun));
            scripts.push(nanos(ran - pinged));
            admits.push(nanos(asked - ran));
        }
    }
    let [ping, script, admit] = [pings, scripts, admits].map(p50_us);
    println!(
        "\nRedis, p50: PING {ping:.1} us, EVALSHA of nothing {script:.1} us, admit {admit:.1} us"
    );
    let sent = closed_calls(&connection).await?;
    println!("commands that {CLOSED_CALLS} closed calls sent, eventually shared: {sent}");
    Ok(vec![
        Verdict::at_most("strict admit / EVALSHA of nothing", admit / script, ASK_RATIO),
        Verdict::that("closed calls, eventually shared, send nothing", sent == 0),
    ])
}

fn breaker(key: &str, connection: &ConnectionManager, sharing: Sharing) -> Result<Breaker> {
    let store = RedisBreakerStore::new(connection.clone());
    let builder = SharedBreaker::builder(key, store, TokioSleeper::new()).sharing(sharing);
    builder.store_timeout(Duration::from_secs(5)).build().while_("building the breaker")
}

/// Commands that Redis has seen on account of closed calls.
async fn closed_calls(connection: &ConnectionManager) -> Result<u64> {
    let hour = Duration::from_secs(3_600);
    let sharing = Sharing::Eventual { flush: hour, max_stale: hour };
    let breaker = breaker("eventual", connection, sharing)?;
    breaker.refresh().await;
    let before = commands(connection).await?;
    for _ in 0..CLOSED_CALLS {
        breaker.acquire().await.while_("calling")?.success().await;
    }
    // Each look at the count is a command itself.
    Ok(commands(connection).await? - before - 1)
}

async fn commands(connection: &ConnectionManager) -> Result<u64> {
    let mut connection = connection.clone();
    let info: String =
        redis::cmd("INFO").arg("stats").query_async(&mut connection).await.while_("INFO")?;
    let line = info.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
    let count = line.and_then(|count| count.trim().parse().ok());
    count.ok_or_else(|| Fault::new("no total_commands_processed in INFO"))
}

fn nanos(took: Duration) -> u32 {
    u32::try_from(took.as_nanos()).unwrap_or(u32::MAX)
}

/// Kept in nanoseconds, since a microsecond would be several per cent.
fn p50_us(nanos: Vec<u32>) -> f64 {
    f64::from(Times::new(nanos).percentile_us(50.0)) / 1_000.0
}
