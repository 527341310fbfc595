//! The demo's receivers, one per path: flaky, sick until it is healed, strict until it is mended.
//!
//! Never: listen on anything but the loopback.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use tokio::net::TcpListener;

#[derive(Debug, Default)]
struct Mood {
    events: AtomicU32,
    is_well: AtomicBool,
    is_mended: AtomicBool,
}

/// All receivers.
pub(super) struct Receiver {
    port: u16,
    mood: Arc<Mood>,
}

impl Receiver {
    /// Listens on a free port.
    pub(super) async fn start() -> Result<Self, String> {
        let failed = |fault: std::io::Error| format!("cannot start a receiver: {fault}");
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let mood = Arc::new(Mood::default());
        let router = Router::new()
            .route("/flaky", post(flaky))
            .route("/sick", post(sick))
            .route("/strict", post(strict))
            .with_state(Arc::clone(&mood));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { port, mood })
    }

    /// Its port.
    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// The URL of one of them.
    pub(super) fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}", self.port)
    }

    /// `sick` takes events from now on.
    pub(super) fn heal(&self) {
        self.mood.is_well.store(true, Ordering::Relaxed);
    }

    /// `strict` takes events from now on.
    pub(super) fn mend(&self) {
        self.mood.is_mended.store(true, Ordering::Relaxed);
    }
}

/// Every second event fails twice before it is taken.
async fn flaky(State(mood): State<Arc<Mood>>, headers: HeaderMap) -> StatusCode {
    let send = headers.get("webhook-attempt").and_then(|value| value.to_str().ok());
    match send {
        Some("1") if mood.events.fetch_add(1, Ordering::Relaxed) % 2 == 1 => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        Some("2") => StatusCode::BAD_GATEWAY,
        _ => StatusCode::OK,
    }
}

async fn sick(State(mood): State<Arc<Mood>>) -> StatusCode {
    if mood.is_well.load(Ordering::Relaxed) {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

async fn strict(State(mood): State<Arc<Mood>>) -> StatusCode {
    if mood.is_mended.load(Ordering::Relaxed) {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    }
}
