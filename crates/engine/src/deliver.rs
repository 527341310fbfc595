//! Stage 3: turns one admitted delivery into one attempt.
//!
//! In: endpoint, envelope and the number of this send. Out: an `Attempt`, which is a fact: what was
//! sent, what came back, how long it took. A refused connection is an attempt like any other, so
//! nothing here returns an error.
//! Never: send unsigned, read or write the store, decide about retries, look at the breaker. `run`
//! hands the attempt to `record`.

use std::sync::Arc;
use std::time::Duration;

use domain::attempt::{Attempt, Failure, FailureKind, Outcome};
use domain::delivery::Trigger;
use domain::endpoint::Endpoint;
use domain::idempotency;
use domain::ids::Kind;
use domain::message::{ContentType, Envelope};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use resilience::{Clock, Timestamp};

use crate::settings::{HeaderFamilies, Settings};
use crate::trace::Tracing;
use crate::transport::{Check, Outbound, Sent, Transport};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const WEBHOOK: [HeaderName; 3] = [
    HeaderName::from_static("webhook-id"),
    HeaderName::from_static("webhook-timestamp"),
    HeaderName::from_static("webhook-signature"),
];
const SVIX: [HeaderName; 3] = [
    HeaderName::from_static("svix-id"),
    HeaderName::from_static("svix-timestamp"),
    HeaderName::from_static("svix-signature"),
];
const ATTEMPT: HeaderName = HeaderName::from_static("webhook-attempt");
const KEYS: [HeaderName; 2] =
    [HeaderName::from_static("idempotency-key"), HeaderName::from_static("x-idempotency-key")];

/// What all sends share.
pub struct Courier {
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    tracing: Tracing,
    families: HeaderFamilies,
    user_agent: HeaderValue,
    installation: [u8; 16],
    deadline: Duration,
    connect_timeout: Duration,
}

/// One send to make.
#[derive(Clone, Copy, Debug)]
pub struct Errand {
    /// Which send of the delivery this is, from 1.
    pub number: u32,
    /// Why it is made.
    pub trigger: Trigger,
}

impl Courier {
    /// From the engine's settings.
    pub fn new(
        settings: &Settings,
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
        tracing: Tracing,
    ) -> Self {
        let user_agent = HeaderValue::from_str(&settings.user_agent)
            .unwrap_or_else(|_| HeaderValue::from_static("Peyk"));
        Self {
            transport,
            clock,
            tracing,
            families: settings.header_families,
            user_agent,
            installation: settings.installation,
            deadline: settings.attempt_deadline,
            connect_timeout: settings.connect_timeout,
        }
    }

    /// How long an attempt at this endpoint may take.
    pub fn deadline_of(&self, endpoint: &Endpoint) -> Duration {
        endpoint.spec.timeout.unwrap_or(self.deadline)
    }

    /// Makes one attempt.
    pub async fn attempt(
        &self,
        endpoint: Arc<Endpoint>,
        envelope: &Envelope,
        errand: Errand,
    ) -> Attempt {
        let started_at = self.clock.now();
        let ahead = self.tracing.ahead(envelope, &endpoint.id, errand.number);
        let headers = self.headers(&endpoint, envelope, errand.number, started_at);
        let sent = match headers {
            Some(mut headers) => {
                if let Some(ahead) = &ahead {
                    self.tracing.tell(ahead, &mut headers);
                }
                self.send(Arc::clone(&endpoint), headers, envelope).await
            }
            None => unsigned(&endpoint),
        };
        let attempt = Attempt {
            number: errand.number,
            started_at,
            took: sent.took,
            trigger: errand.trigger,
            outcome: sent.outcome,
            resent: sent.resent,
        };
        if let Some(ahead) = &ahead {
            self.tracing.attempted(ahead, envelope, (&endpoint, &attempt));
        }
        attempt
    }

    /// Asks at the endpoint's health-check URL whether it is well. It is not told who asks but to
    /// whom deliveries go: custom headers, which may be credentials, reach no other origin.
    pub async fn is_well(&self, endpoint: &Endpoint) -> bool {
        let Some(target) = endpoint.spec.health_check.clone() else { return false };
        let mut headers = HeaderMap::new();
        if target.origin() == endpoint.spec.target.origin() {
            custom(&mut headers, endpoint);
        }
        headers.insert(USER_AGENT, self.user_agent.clone());
        let deadline = self.deadline_of(endpoint);
        let connect_timeout = self.connect_timeout.min(deadline);
        self.transport.check(Check { target, headers, deadline, connect_timeout }).await
    }

    async fn send(&self, endpoint: Arc<Endpoint>, headers: HeaderMap, envelope: &Envelope) -> Sent {
        let deadline = self.deadline_of(&endpoint);
        let request = Outbound {
            headers,
            endpoint,
            body: envelope.payload.clone(),
            deadline,
            connect_timeout: self.connect_timeout.min(deadline),
        };
        self.transport.send(request).await
    }

    /// `None` when nothing signs.
    fn headers(
        &self,
        endpoint: &Endpoint,
        envelope: &Envelope,
        number: u32,
        now: Timestamp,
    ) -> Option<HeaderMap> {
        let mut headers = HeaderMap::with_capacity(12 + endpoint.spec.headers.len());
        // Custom headers first: should one slip past validation, ours replace it.
        custom(&mut headers, endpoint);
        let content_type = match &envelope.content_type {
            ContentType::Json => JSON,
            other @ ContentType::Other(_) => HeaderValue::from_str(other.as_str()).unwrap_or(JSON),
        };
        headers.insert(CONTENT_TYPE, content_type);
        headers.insert(USER_AGENT, self.user_agent.clone());
        self.sign(&mut headers, endpoint, envelope, now)?;
        let key = idempotency::delivery_key(&self.installation, &envelope.id, &endpoint.id);
        if let Ok(key) = HeaderValue::try_from(key) {
            let [plain, prefixed] = KEYS;
            headers.insert(plain, key.clone());
            headers.insert(prefixed, key);
        }
        headers.insert(ATTEMPT, HeaderValue::from(number));
        Some(headers)
    }

    fn sign(
        &self,
        headers: &mut HeaderMap,
        endpoint: &Endpoint,
        envelope: &Envelope,
        now: Timestamp,
    ) -> Option<()> {
        let id = envelope.id.text(Kind::Message);
        let secs = now.as_secs();
        let signature =
            webhook::signature_header(endpoint.signing(now), &id, secs, &envelope.payload);
        let (id, signature) =
            (HeaderValue::try_from(id).ok()?, HeaderValue::try_from(signature?).ok()?);
        let trio = [id, HeaderValue::from(secs), signature];
        if self.families != HeaderFamilies::Svix {
            for (name, value) in WEBHOOK.into_iter().zip(trio.iter().cloned()) {
                headers.insert(name, value);
            }
        }
        if self.families != HeaderFamilies::Webhook {
            for (name, value) in SVIX.into_iter().zip(trio) {
                headers.insert(name, value);
            }
        }
        Some(())
    }
}

fn custom(headers: &mut HeaderMap, endpoint: &Endpoint) {
    for (name, value) in &endpoint.spec.headers {
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()))
        {
            headers.insert(name, value);
        }
    }
}

/// An endpoint always has a secret that signs; if one has not, the fault is ours, and nothing is
/// sent.
fn unsigned(endpoint: &Endpoint) -> Sent {
    tracing::error!(endpoint = endpoint.key.0, "not sent: no secret of the endpoint signs");
    let text = "no secret of the endpoint signs".to_owned();
    let outcome = Outcome::Failed(Failure { kind: FailureKind::Internal, text });
    Sent { outcome, took: Duration::ZERO, resent: false }
}

#[cfg(test)]
mod tests;
