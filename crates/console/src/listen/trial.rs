//! Whether the server gets through: a test message, before anybody waits in vain.
//!
//! Never: forwarded; the receiver keeps it.

use std::net::IpAddr;
use std::time::Duration;

use url::{Host, Url};

use super::receive::Receiver;
use super::temporary::Temporary;
use crate::failure::Failure;

/// Between two looks at what became of it.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The server is given up after so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sends a test and waits until it is here.
pub(super) async fn pass(made: &Temporary, receiver: &Receiver) -> Result<(), Failure> {
    let message = match made.test().await {
        Ok(message) => message,
        Err(Failure::Refused(said)) => {
            receiver.expect_test("");
            let said = format!("not tested whether the server gets through: {said}");
            return receiver.out().note(&said);
        }
        Err(fault) => return Err(fault),
    };
    receiver.expect_test(&message);
    let looked = async {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            if let Some((kind, said)) = made.failure_of(&message).await? {
                return Err(refused(made.url(), &kind, &said));
            }
        }
    };
    let waited = async {
        tokio::select! {
            () = receiver.test_arrived() => Ok(()),
            ended = looked => ended,
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.unwrap_or_else(|_| {
        let said = format!("the server did not send a test to {} in time", made.url());
        Err(Failure::Other(said))
    })
}

fn refused(url: &Url, kind: &str, said: &str) -> Failure {
    if kind != "forbidden" {
        let said = crate::safe::safe(said).into_owned();
        return Failure::Other(format!("the server does not get through to {url}: {said}"));
    }
    let range = match url.host() {
        Some(Host::Ipv4(ip)) if ip.is_loopback() => "127.0.0.0/8".to_owned(),
        Some(Host::Ipv4(ip)) => format!("{}/32", IpAddr::V4(ip)),
        Some(Host::Ipv6(ip)) => format!("{}/128", IpAddr::V6(ip)),
        _ => "its network".to_owned(),
    };
    Failure::Refused(format!(
        "the server may not send to {url}: start it with PEYK_ALLOWED_TARGETS={range} \
         (`allowed_targets` in peyk.toml), or say --public-url with a public address"
    ))
}
