//! What a receiver verifies with: a shared HMAC key or an ed25519 public key.
//!
//! In comes a secret or its public text; out goes a yes or no on one decoded signature. Tags are
//! compared in constant time, ed25519 is checked strictly (no weak keys, no second encoding of the
//! same signature).
//!
//! Never: a private half kept, an early exit on the first differing byte.
//!
//! Source: Standard Webhooks, "Signature scheme".

use std::fmt;

use ed25519_dalek::{Signature, VerifyingKey};
use subtle::ConstantTimeEq as _;

use crate::secret::{
    HmacSecret, PUBLIC_KEY_BYTES, PUBLIC_PREFIX, Secret, SecretError, check_text, decode, encode,
};

/// A key that verifies signatures. `Debug` shows a public key but never a shared one.
#[derive(Clone)]
pub struct VerifyKey(Kind);

#[derive(Clone)]
enum Kind {
    Hmac(HmacSecret),
    Ed25519(VerifyingKey),
}

impl VerifyKey {
    /// Reads what a receiver was given: `whsec_…` or `whpk_…`. A sender's `whsk_…` is taken too,
    /// and only its public half kept.
    ///
    /// # Errors
    ///
    /// [`SecretError`], as [`Secret::parse`] and [`VerifyKey::from_public_text`].
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        if text.starts_with(PUBLIC_PREFIX) {
            return Self::from_public_text(text);
        }
        Secret::parse(text).map(|secret| Self::from(&secret))
    }

    /// Reads `whpk_` + base64 of a 32-byte ed25519 public key, padded or not.
    ///
    /// # Errors
    ///
    /// [`SecretError`], naming the first rule the text breaks; [`SecretError::PublicKeyInvalid`]
    /// also for the weak points, under which one signature fits many messages.
    pub fn from_public_text(text: &str) -> Result<Self, SecretError> {
        check_text(text)?;
        let encoded = text.strip_prefix(PUBLIC_PREFIX).ok_or(SecretError::PublicPrefix)?;
        let bytes = decode(encoded)?;
        let wrong_length = SecretError::PublicKeyLength { bytes: bytes.len() };
        let bytes: [u8; PUBLIC_KEY_BYTES] = bytes.try_into().map_err(|_| wrong_length)?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| SecretError::PublicKeyInvalid)?;
        if key.is_weak() {
            return Err(SecretError::PublicKeyInvalid);
        }
        Ok(Self(Kind::Ed25519(key)))
    }

    /// The signature version this key can check: `v1` or `v1a`.
    pub fn version(&self) -> &'static str {
        match self.0 {
            Kind::Hmac(_) => "v1",
            Kind::Ed25519(_) => "v1a",
        }
    }

    /// A shared HMAC key in the sender's own notation: the bytes are the key.
    ///
    /// # Errors
    ///
    /// [`SecretError::Empty`]: under an empty key anybody can sign.
    pub(crate) fn from_raw(key: &[u8]) -> Result<Self, SecretError> {
        if key.is_empty() {
            return Err(SecretError::Empty);
        }
        Ok(Self(Kind::Hmac(HmacSecret::keyed(key))))
    }

    /// Whether any of the decoded signatures of this key's version fits the signed text.
    pub(crate) fn matches_any<'s>(
        &self,
        content: &[&[u8]],
        signatures: impl Iterator<Item = &'s [u8]>,
    ) -> bool {
        // The text is hashed or joined once per key, and only if there is something to compare.
        let mut signatures = signatures.peekable();
        if signatures.peek().is_none() {
            return false;
        }
        match &self.0 {
            Kind::Hmac(secret) => {
                let tag = secret.tag(content);
                signatures.any(|signature| tag.ct_eq(signature).into())
            }
            Kind::Ed25519(key) => {
                let text = content.concat();
                signatures.any(|signature| {
                    Signature::from_slice(signature)
                        .is_ok_and(|signature| key.verify_strict(&text, &signature).is_ok())
                })
            }
        }
    }
}

impl From<&Secret> for VerifyKey {
    fn from(secret: &Secret) -> Self {
        Self(match secret {
            Secret::Hmac(secret) => Kind::Hmac(secret.clone()),
            Secret::Ed25519(secret) => Kind::Ed25519(secret.public()),
        })
    }
}

impl From<Secret> for VerifyKey {
    fn from(secret: Secret) -> Self {
        Self::from(&secret)
    }
}

impl fmt::Debug for VerifyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Hmac(_) => f.write_str("Hmac(<redacted>)"),
            Kind::Ed25519(key) => write!(f, "Ed25519({})", encode(PUBLIC_PREFIX, key.as_bytes())),
        }
    }
}
