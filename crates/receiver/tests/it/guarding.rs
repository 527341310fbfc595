//! Verify, then dedupe, then handle.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::routing::post;
use http::{Request, Response};
use receiver::webhook::{Secret, Verified, WebhookVerifier};
use receiver::{IdempotencyLayer, MemoryIdempotencyStore, WebhookVerifyLayer};
use resilience::{Clock, ManualClock, Timestamp};

use crate::support::{Handler, Reply, Server};

const NOW: i64 = 1_700_000_000;

struct World {
    server: Server,
    secret: Secret,
    clock: Arc<ManualClock>,
    handler: Handler,
}

async fn world() -> World {
    world_with(Handler::new()).await
}

async fn world_with(handler: Handler) -> World {
    let secret = Secret::from_random_hmac([7; 24]);
    let clock = Arc::new(ManualClock::new(Timestamp::from_secs(NOW)));
    let verifier = WebhookVerifier::standard().key(&secret).max_body(1_000).build().unwrap();
    let verify = WebhookVerifyLayer::new(verifier).clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let counted = handler.clone();
    let handle = move |request: Request<Body>| {
        let handler = counted.clone();
        async move {
            let run = handler.enter().await;
            let id = request.extensions().get::<Verified>().unwrap().id.clone().unwrap();
            let body = to_bytes(request.into_body(), 1_000).await.unwrap();
            let said = [format!("{run} {id} ").as_bytes(), &body].concat();
            Response::new(Body::from(said))
        }
    };
    let idempotency = IdempotencyLayer::webhook_id(MemoryIdempotencyStore::default());
    let app = Router::new().route("/", post(handle)).layer(idempotency).layer(verify);
    World { server: Server::start(app).await, secret, clock, handler }
}

impl World {
    /// Sends `body` under a signature over `signed`, in the headers of this naming.
    async fn send(&self, naming: &str, id: &str, signed: &[u8], body: &[u8]) -> Reply {
        let now = self.clock.now().as_secs();
        let request = self.server.request("POST", "/");
        let request = request
            .header(format!("{naming}-id"), id)
            .header(format!("{naming}-timestamp"), NOW.to_string())
            .header(format!("{naming}-signature"), self.secret.sign(id, NOW, signed));
        assert!(now >= NOW);
        self.server.send(request, body).await
    }
}

/// SG-03, PL-02: the handler gets the bytes that were signed, whatever they are.
#[tokio::test]
async fn genuine_bytes_reach_the_handler_unchanged() {
    let world = world().await;
    for (run, body) in
        [&b"{\"a\":1,\"a\":2}"[..], b"\xff\x00\xfe", b"", "e\u{301}\u{2028}".as_bytes()]
            .into_iter()
            .enumerate()
    {
        let id = format!("msg_{run}");
        let reply = world.send("webhook", &id, body, body).await;
        let expected = [format!("{} {id} ", run + 1).as_bytes(), body].concat();
        assert_eq!((reply.status.as_u16(), &reply.body[..]), (200, &expected[..]));
    }
}

#[tokio::test]
async fn a_repeat_is_answered_and_not_handled() {
    let world = world().await;
    for naming in ["webhook", "svix", "Webhook"] {
        let reply = world.send(naming, "msg_1", b"body", b"body").await;
        assert_eq!((reply.text().as_str(), world.handler.runs()), ("1 msg_1 body", 1));
    }
    // A sender's fault, not a repeat: the same id for something else.
    let other = world.send("webhook", "msg_1", b"other", b"other").await;
    assert_eq!(other.status, 422);
}

/// A sender that is told 409 would give the message up, though the handler may yet fail.
#[tokio::test]
async fn a_repeat_in_progress_is_told_to_come_back() {
    let world = Arc::new(world_with(Handler::gated()).await);
    let first = Arc::clone(&world);
    let first = tokio::spawn(async move { first.send("webhook", "m", b"body", b"body").await });
    world.handler.entered(1).await;
    let repeat = world.send("webhook", "m", b"body", b"body").await;
    assert_eq!((repeat.status.as_u16(), repeat.text().as_str()), (503, "request_in_progress"));
    assert_eq!(repeat.headers["retry-after"], "1");
    world.handler.release();
    assert_eq!(first.await.unwrap().text(), "1 m body");
}

#[tokio::test]
async fn what_is_not_genuine_is_refused_without_a_word() {
    let world = world().await;
    let forged = world.send("webhook", "msg_1", b"body", b"BODY").await;
    let ambiguous = world.send("webhook", "msg.1", b"body", b"body").await;
    let unsigned = world.server.send(world.server.request("POST", "/"), b"body").await;
    world.clock.advance(Duration::from_secs(301));
    let stale = world.send("webhook", "msg_1", b"body", b"body").await;
    for refused in [forged, ambiguous, unsigned, stale] {
        assert_eq!(refused.status, 401);
        let said = r#"{"type":"about:blank","title":"Unauthorized","status":401}"#;
        assert_eq!(refused.text(), said);
    }
    assert_eq!(world.handler.runs(), 0);
}

#[tokio::test]
async fn the_body_is_bounded_before_it_is_hashed() {
    let world = world().await;
    let most = [b'a'; 1_000];
    assert_eq!(world.send("webhook", "msg_1", &most, &most).await.status, 200);
    let more = [b'a'; 1_001];
    assert_eq!(world.send("webhook", "msg_2", &more, &more).await.status, 413);
}
