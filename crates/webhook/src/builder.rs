//! Putting a verifier together: a scheme, keys, and bounds.
//!
//! In come texts and settings; out goes a verifier that can verify something, or the rule that was
//! broken.
//!
//! Never: a verifier without a key, or with a scheme that proves less than it seems to.

use crate::claim::ED25519;
use crate::error::ConfigError;
use crate::key::VerifyKey;
use crate::scheme::Scheme;
use crate::secret::SecretError;
use crate::verify::{Kind, Tolerance, WebhookVerifier};

/// Most bytes of a body, unless set otherwise.
pub const BODY_BYTES_MAX_DEFAULT: usize = 1 << 20;
/// GitHub sends bodies of up to 25 MB.
const GITHUB_BODY_BYTES_MAX: usize = 25 << 20;

impl WebhookVerifier {
    /// For senders that follow Standard Webhooks, and for Svix.
    pub fn standard() -> VerifierBuilder {
        VerifierBuilder::standard()
    }

    /// For Stripe; `secret` is the endpoint's `whsec_…`, whose text is the key.
    ///
    /// # Errors
    ///
    /// [`SecretError::Empty`].
    pub fn stripe(secret: &str) -> Result<VerifierBuilder, SecretError> {
        VerifierBuilder::custom(Scheme::stripe()).secret(secret)
    }

    /// For GitHub.
    ///
    /// # Errors
    ///
    /// [`SecretError::Empty`].
    pub fn github(secret: &str) -> Result<VerifierBuilder, SecretError> {
        VerifierBuilder::github().secret(secret)
    }

    /// For Slack; `secret` is the application's signing secret.
    ///
    /// # Errors
    ///
    /// [`SecretError::Empty`].
    pub fn slack(secret: &str) -> Result<VerifierBuilder, SecretError> {
        VerifierBuilder::custom(Scheme::slack()).secret(secret)
    }

    /// For everybody else who signs with HMAC-SHA256.
    pub fn custom(scheme: Scheme) -> VerifierBuilder {
        VerifierBuilder::custom(scheme)
    }
}

/// Collects what a [`WebhookVerifier`] needs.
#[derive(Clone, Debug)]
#[must_use = "nothing is verified before `build`"]
pub struct VerifierBuilder {
    kind: Kind,
    keys: Vec<VerifyKey>,
    tolerance: Tolerance,
    body_bytes_max: usize,
}

impl VerifierBuilder {
    pub(crate) fn standard() -> Self {
        Self::of(Kind::Standard)
    }

    pub(crate) fn custom(scheme: Scheme) -> Self {
        Self::of(Kind::Custom(scheme))
    }

    pub(crate) fn github() -> Self {
        Self::custom(Scheme::github()).max_body(GITHUB_BODY_BYTES_MAX)
    }

    fn of(kind: Kind) -> Self {
        let tolerance = Tolerance::default();
        Self { kind, keys: Vec::new(), tolerance, body_bytes_max: BODY_BYTES_MAX_DEFAULT }
    }

    /// Adds a secret, as the sender shows it; during a rotation, call it for the new and the old
    /// one. Standard Webhooks: `whsec_…`, or a key pair `whsk_…` of which only the public half is
    /// kept. Every other scheme: the text is the key.
    ///
    /// # Errors
    ///
    /// [`SecretError`], naming the rule that the text breaks.
    pub fn secret(self, text: &str) -> Result<Self, SecretError> {
        let key = match self.kind {
            Kind::Standard => VerifyKey::parse(text),
            Kind::Custom(_) => VerifyKey::from_raw(text.as_bytes()),
        };
        key.map(|key| self.key(key))
    }

    /// Adds a public key, `whpk_…`.
    ///
    /// # Errors
    ///
    /// [`SecretError`], as [`VerifyKey::from_public_text`].
    pub fn public_key(self, text: &str) -> Result<Self, SecretError> {
        VerifyKey::from_public_text(text).map(|key| self.key(key))
    }

    /// Adds a key that has been read before.
    pub fn key(mut self, key: impl Into<VerifyKey>) -> Self {
        self.keys.push(key.into());
        self
    }

    /// How far the timestamp may lie from the present;
    /// [`TOLERANCE_SECS_DEFAULT`](crate::TOLERANCE_SECS_DEFAULT) both ways if never called.
    pub fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Most bytes of a body; [`BODY_BYTES_MAX_DEFAULT`] if never called, 25 MiB for GitHub.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.body_bytes_max = bytes;
        self
    }

    /// The verifier.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], naming the setting and the rule it breaks.
    pub fn build(self) -> Result<WebhookVerifier, ConfigError> {
        if self.keys.is_empty() {
            return Err(ConfigError::NoKeys);
        }
        if self.body_bytes_max == 0 {
            return Err(ConfigError::NoBody);
        }
        if let Kind::Custom(scheme) = &self.kind {
            scheme.check()?;
            if self.keys.iter().any(|key| key.version() == ED25519) {
                return Err(ConfigError::PublicKey);
            }
        }
        let Self { kind, keys, tolerance, body_bytes_max } = self;
        Ok(WebhookVerifier { kind, keys, tolerance, body_bytes_max })
    }
}
