//! What comes in: checked, forwarded, printed, answered as the target answered.
//!
//! Never: a delivery that is held longer than the target takes, or forwarded unsigned.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use resilience::Clock;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore, watch};
use url::Url;
use webhook::WebhookVerifier;

use super::forward::{Answered, Forward};
use crate::api::Api;
use crate::failure::Failure;
use crate::moment::second_of;
use crate::safe::safe;
use crate::show::Out;

/// Larger than any payload that a server may be set to take.
pub(super) const BODY_BYTES_MAX: usize = 8 << 20;
/// Deliveries under way; the server has a window per endpoint that is smaller.
const UNDER_WAY_MAX: u32 = 256;

/// Takes deliveries in.
pub(super) struct Receiver {
    api: Arc<Api>,
    app: String,
    forward: Forward,
    clock: Arc<dyn Clock>,
    out: Out,
    verifier: OnceLock<WebhookVerifier>,
    /// The id of the test, empty if there is none, `None` until that is known.
    test: watch::Sender<Option<String>>,
    arrived: Notify,
    under_way: Semaphore,
}

/// What the headers say of a delivery.
struct Delivery {
    id: String,
    attempt: String,
}

impl Receiver {
    /// Forwards deliveries of this application to a target.
    pub(super) fn new(
        api: Arc<Api>,
        app: &str,
        (target, clock): (Url, Arc<dyn Clock>),
        out: Out,
    ) -> Self {
        Self {
            api,
            app: app.to_owned(),
            forward: Forward::new(target),
            clock,
            out,
            verifier: OnceLock::new(),
            test: watch::Sender::new(None),
            arrived: Notify::new(),
            under_way: Semaphore::new(UNDER_WAY_MAX as usize),
        }
    }

    /// What this checks is forwarded; before, nothing is.
    pub(super) fn trust(&self, verifier: WebhookVerifier) {
        let _set_once = self.verifier.set(verifier);
    }

    /// Where lines go.
    pub(super) const fn out(&self) -> &Out {
        &self.out
    }

    /// Where deliveries go.
    pub(super) const fn target(&self) -> &Url {
        self.forward.target()
    }

    /// This message is a test; with an empty id none is.
    pub(super) fn expect_test(&self, id: &str) {
        self.test.send_replace(Some(id.to_owned()));
    }

    /// Waits for the test.
    pub(super) async fn test_arrived(&self) {
        self.arrived.notified().await;
    }

    /// Waits until nothing is under way.
    pub(super) async fn idle(&self) {
        let _closed = self.under_way.acquire_many(UNDER_WAY_MAX).await;
    }

    async fn take(&self, request: Request) -> Response {
        let Ok(_under_way) = self.under_way.acquire().await else {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        };
        let (parts, body) = request.into_parts();
        let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else {
            return StatusCode::PAYLOAD_TOO_LARGE.into_response();
        };
        let body = body.to_bytes();
        let delivery = Delivery::of(&parts.headers);
        if let Err(why) = self.verify(&parts.headers, &body) {
            let said = format!("not forwarded: {why}");
            self.print(&delivery, "-", &Answered::refused(said.clone()), Duration::ZERO);
            return (StatusCode::UNAUTHORIZED, said).into_response();
        }
        if self.is_test(&delivery.id).await {
            self.arrived.notify_one();
            return StatusCode::NO_CONTENT.into_response();
        }
        let begun = self.clock.now();
        let (answered, event_type) =
            tokio::join!(self.forward.send(&parts.headers, body), self.event_type(&delivery.id));
        let took = self.clock.now().since(begun);
        self.print(&delivery, event_type.as_deref().unwrap_or("-"), &answered, took);
        let mut response = Response::new(Body::from(answered.body));
        *response.status_mut() = answered.status;
        *response.headers_mut() = answered.headers;
        response
    }

    fn verify(&self, headers: &HeaderMap, body: &[u8]) -> Result<(), String> {
        let Some(verifier) = self.verifier.get() else {
            return Err("not ready yet".to_owned());
        };
        let pairs = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let verified = verifier.verify(pairs, body, self.clock.now().as_secs());
        verified.map(drop).map_err(|fault| fault.to_string())
    }

    async fn is_test(&self, id: &str) -> bool {
        let mut test = self.test.subscribe();
        // A test may be here before its id is.
        let known = test.wait_for(Option::is_some).await;
        known.is_ok_and(|known| known.as_deref() == Some(id))
    }

    /// No header names it, so that the server is asked.
    async fn event_type(&self, message: &str) -> Result<String, Failure> {
        let path = ["app", &self.app, "msg", message];
        let query = [("with_content", "false")];
        let answer = self.api.request(Method::GET, &path, &query, None).await?;
        let message: Value = answer.read()?;
        Ok(message["eventType"].as_str().unwrap_or("-").to_owned())
    }

    fn print(&self, delivery: &Delivery, event_type: &str, answered: &Answered, took: Duration) {
        let (time, status) = (second_of(self.clock.now()), answered.status.as_u16());
        let (id, attempt, ms) = (&delivery.id, &delivery.attempt, took.as_millis());
        let _closed = if self.out.is_json() {
            let line = json!({
                "time": time, "eventType": event_type, "id": id, "attempt": attempt.parse::<u32>().ok(),
                "status": status, "tookMs": u64::try_from(ms).ok(), "error": answered.error,
            });
            self.out.json(&line.to_string())
        } else {
            let error = answered.error.as_ref().map(|said| format!("  {said}")).unwrap_or_default();
            let line = format!("{time}  {event_type}  {id}  #{attempt}  {status}  {ms} ms{error}");
            self.out.line(&safe(&line))
        };
    }
}

impl Delivery {
    fn of(headers: &HeaderMap) -> Self {
        let text = |names: &[&str]| {
            let found = names.iter().find_map(|name| headers.get(*name)?.to_str().ok());
            found.unwrap_or("-").to_owned()
        };
        let id = text(&[webhook::WEBHOOK_ID, webhook::SVIX_ID]);
        Self { id, attempt: text(&["webhook-attempt"]) }
    }
}

/// Takes every path and method: what is signed is a delivery, whatever a tunnel made of its path.
pub(super) fn router(receiver: Arc<Receiver>) -> Router {
    Router::new().fallback(take).with_state(receiver)
}

async fn take(State(receiver): State<Arc<Receiver>>, request: Request) -> Response {
    receiver.take(request).await
}
