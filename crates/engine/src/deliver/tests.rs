//! What is signed is sent; what nobody signs is not.
//!
//! Never: the network.

use bytes::Bytes;
use domain::classify::{Class, classify};
use domain::endpoint::LiveSecret;
use domain::ids::PublicId;
use domain::policy::RetryOn;
use resilience::ManualClock;
use store::conformance::samples;
use webhook::Secret;

use super::*;
use crate::transport::scripted::{Script, ScriptedTransport};

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

fn endpoint(expires_at: &[Option<Timestamp>]) -> Arc<Endpoint> {
    let live = |expires_at: &Option<Timestamp>| LiveSecret {
        secret: Secret::from_random_hmac([7; 24]),
        expires_at: *expires_at,
    };
    Arc::new(Endpoint {
        secrets: expires_at.iter().map(live).collect(),
        ..samples::stored_endpoint(samples::endpoint())
    })
}

#[tokio::test]
async fn nothing_is_sent_that_nobody_signs() {
    let transport = Arc::new(ScriptedTransport::new(|_| Script::status(200)));
    let clock = Arc::new(ManualClock::new(NOW));
    let courier =
        Courier::new(&Settings::default(), Arc::clone(&transport) as _, clock, Tracing::default());
    let envelope = Envelope {
        id: PublicId::new(2, [0; 12]),
        payload: Bytes::from_static(b"{}"),
        content_type: ContentType::Json,
        trace: None,
    };
    let errand = Errand { number: 1, trigger: Trigger::Scheduled };
    for expired in [endpoint(&[]), endpoint(&[Some(NOW), Some(NOW.minus(Duration::from_secs(1)))])]
    {
        let attempt = courier.attempt(expired, &envelope, errand).await;
        assert_eq!(classify(&attempt, &RetryOn::All), Class::Internal, "{attempt:?}");
    }
    assert_eq!(transport.count(), 0);
    courier.attempt(endpoint(&[None, Some(NOW)]), &envelope, errand).await;
    let sent = transport.take().remove(0);
    let signature = sent.headers["webhook-signature"].to_str().unwrap();
    assert_eq!(signature.split(' ').count(), 1, "the expired one does not sign: {signature}");
}
