//! A webhook receiver in axum: verify, then dedupe, then handle.
//!
//! ```sh
//! cargo run -p peyk-receiver --example axum_receiver -- whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
//! ```
//!
//! Then give `http://127.0.0.1:9100/webhooks` and the same secret to a sender. A message that is
//! sent again is answered again and not handled again.
//! Never: a body parsed before its signature was checked.

use std::error::Error;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Extension;
use axum::routing::post;
use receiver::webhook::{Verified, WebhookVerifier};
use receiver::{IdempotencyLayer, MemoryIdempotencyStore, WebhookVerifyLayer};

const ADDRESS: &str = "127.0.0.1:9100";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let secret =
        std::env::args().nth(1).ok_or("usage: axum_receiver SECRET (whsec_… or whpk_…)")?;
    let verifier = WebhookVerifier::standard();
    let verifier = if secret.starts_with("whpk_") {
        verifier.public_key(&secret)?
    } else {
        verifier.secret(&secret)?
    };

    // In memory, so a restart forgets what was handled. More than one process, or a handler that
    // must not run again after a restart, needs the Redis or the PostgreSQL store.
    let store = MemoryIdempotencyStore::default();
    let app = Router::new()
        .route("/webhooks", post(handle))
        // The layer added last is the outermost.
        .layer(IdempotencyLayer::webhook_id(store))
        .layer(WebhookVerifyLayer::new(verifier.build()?));

    let listener = tokio::net::TcpListener::bind(ADDRESS).await?;
    eprintln!("receiving at http://{ADDRESS}/webhooks");
    axum::serve(listener, app).await?;
    Ok(())
}

/// Runs once for each message; the body is what was signed, byte for byte.
async fn handle(Extension(verified): Extension<Verified>, body: Bytes) -> &'static str {
    let id = verified.id.unwrap_or_default();
    eprintln!("{id}: {} bytes", body.len());
    "handled\n"
}
