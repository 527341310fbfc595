//! Standard Webhooks: the secrets, the signature a sender writes, and the check a receiver makes;
//! the same check for Stripe, GitHub, Slack and others who sign with HMAC-SHA256.
//!
//! Source: the Standard Webhooks specification
//! (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>).
//! In come secrets as text, a message id, a unix time in seconds and the body as bytes; out go
//! header values and verdicts. The body is never parsed: what is signed is byte for byte what is
//! sent, be it JSON, binary or nothing at all.
//!
//! Never: I/O, a runtime, a clock, a source of chance, or key material in an error or in `Debug`.
//!
//! ```
//! use webhook::{Secret, WebhookVerifier, signature_header};
//!
//! let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
//! let signature = signature_header([&secret], "msg_1", 1_700_000_000, b"{}").expect("a secret");
//!
//! let verifier = WebhookVerifier::standard().key(&secret).build()?;
//! let headers = [
//!     ("Webhook-Id", "msg_1"),
//!     ("Webhook-Timestamp", "1700000000"),
//!     ("Webhook-Signature", signature.as_str()),
//! ];
//! let verified = verifier.verify(headers, b"{}", 1_700_000_004)?;
//! assert_eq!(verified.id.as_deref(), Some("msg_1"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builder;
mod claim;
mod content;
mod custom;
mod error;
mod headers;
mod key;
mod scheme;
mod secret;
mod sign;
mod verify;

pub use builder::{BODY_BYTES_MAX_DEFAULT, VerifierBuilder};
pub use content::{ID_BYTES_MAX, is_safe_id};
pub use error::{ConfigError, Name, SIGNATURES_MAX, VerifyError};
pub use headers::{
    SVIX_ID, SVIX_SIGNATURE, SVIX_TIMESTAMP, WEBHOOK_ID, WEBHOOK_SIGNATURE, WEBHOOK_TIMESTAMP,
};
pub use key::VerifyKey;
pub use scheme::{Encoding, Layout, Part, Scheme, TimestampIn};
pub use secret::{
    Ed25519Secret, HMAC_BYTES_MAX, HMAC_BYTES_MIN, HmacSecret, KEY_PAIR_BYTES, PUBLIC_KEY_BYTES,
    PUBLIC_PREFIX, SECRET_PREFIX, SIGNING_PREFIX, Secret, SecretError,
};
pub use sign::signature_header;
pub use verify::{TOLERANCE_SECS_DEFAULT, Tolerance, Verified, WebhookVerifier};
