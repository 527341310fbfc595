//! What the tests share.
//!
//! Never: a behaviour of its own.

pub(crate) mod mail_server;
pub(crate) mod raw;
pub(crate) mod receiver;
pub(crate) mod server;

use std::time::Duration;

use resilience::Timestamp;
use serde_json::Value;

pub(crate) use raw::{Raw, Step};
pub(crate) use receiver::{Gate, Receiver, Reply};
pub(crate) use server::Server;

/// Nothing that works takes longer, on a machine that is busy with other things too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Asks until there is an answer, and fails once patience is over.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut ask: impl FnMut() -> F,
) -> T {
    let asking = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(10));
        loop {
            ticks.tick().await;
            if let Some(found) = ask().await {
                return found;
            }
        }
    };
    let found = tokio::time::timeout(PATIENCE, asking).await;
    found.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

/// A time as the API writes it.
#[track_caller]
pub(crate) fn time(value: &Value) -> Timestamp {
    let text = value.as_str().unwrap_or_else(|| panic!("no time: {value}"));
    assert!(text.ends_with('Z'), "{text} is not UTC");
    let time: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_micros(time.as_microsecond())
}
