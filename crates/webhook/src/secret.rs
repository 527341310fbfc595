//! Signing secrets: read from text, written back as text, used to sign.
//!
//! In comes `whsec_…` (HMAC-SHA256) or `whsk_…` (ed25519 key pair); out go signatures and the text
//! for storage or for show. A secret that exists is usable: length, alphabet and the match of the
//! two key halves are checked once, here, and the HMAC key block is hashed once, here.
//!
//! Never: an empty or short key, a secret in `Debug` or in an error, chance of its own.
//!
//! Source: Standard Webhooks, "Signature scheme" and "Secret serialization".

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_PAD_INDIFFERENT};
use ed25519_dalek::ed25519::signature::MultipartSigner as _;
use ed25519_dalek::{SigningKey, VerifyingKey};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::content::{Decimal, SignedContent};

#[cfg(test)]
mod tests;

/// Prefix of an HMAC secret, in storage and in public: both sides hold the same key.
pub const SECRET_PREFIX: &str = "whsec_";
/// Prefix of an ed25519 key pair; only the sender ever holds it.
pub const SIGNING_PREFIX: &str = "whsk_";
/// Prefix of an ed25519 public key; what receivers are given.
pub const PUBLIC_PREFIX: &str = "whpk_";

/// Fewest bytes of an HMAC key. Source: Standard Webhooks, "between 24 bytes and 64 bytes".
pub const HMAC_BYTES_MIN: usize = 24;
/// Most bytes of an HMAC key. The specification ends at 64; Svix servers take up to 75, and
/// secrets that were imported there must be importable here.
pub const HMAC_BYTES_MAX: usize = 75;
/// Bytes of an ed25519 key pair: the seed (32), then the public key (32).
pub const KEY_PAIR_BYTES: usize = 64;
/// Bytes of an ed25519 public key.
pub const PUBLIC_KEY_BYTES: usize = 32;

/// Bytes of `v1,` and the base64 of 32 bytes.
const HMAC_SIGNATURE_BYTES: usize = 3 + 44;
/// Bytes of `v1a,` and the base64 of 64 bytes.
const ED25519_SIGNATURE_BYTES: usize = 4 + 88;
/// Bytes of the longest base64 read, larger than [`HMAC_BYTES_MAX`] needs, so that a key a little
/// too long is still decoded and the error can name its exact length.
const BASE64_BYTES_MAX: usize = 1024;

/// Why a secret or a public key was refused. The text names the broken rule and never quotes the
/// key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Nothing was given.
    #[error("the secret is empty")]
    Empty,
    /// A space, tab or line end anywhere in the text, usually copied along with it.
    #[error("the secret contains white space or a line end; give the text alone")]
    WhiteSpace,
    /// A secret must say what it is.
    #[error("the secret must start with whsec_ (HMAC-SHA256) or whsk_ (ed25519 key pair)")]
    SecretPrefix,
    /// A public key must say what it is.
    #[error("the public key must start with whpk_")]
    PublicPrefix,
    /// Not the standard alphabet, bad padding, or stray bits in the last character.
    #[error("the text after the prefix must be standard base64, padded or not")]
    Base64,
    /// An HMAC key outside [`HMAC_BYTES_MIN`] to [`HMAC_BYTES_MAX`].
    #[error(
        "an HMAC secret must have {HMAC_BYTES_MIN} to {HMAC_BYTES_MAX} bytes before base64, not \
         {bytes}"
    )]
    HmacLength {
        /// Decoded length, in bytes.
        bytes: usize,
    },
    /// An ed25519 key pair that is not [`KEY_PAIR_BYTES`] long.
    #[error(
        "an ed25519 key pair must have {KEY_PAIR_BYTES} bytes before base64 (seed, then public \
         key), not {bytes}"
    )]
    KeyPairLength {
        /// Decoded length, in bytes.
        bytes: usize,
    },
    /// The second half of a key pair is not the public key of the first half.
    #[error("the public half of the ed25519 key pair does not belong to its seed")]
    KeyPairMismatch,
    /// An ed25519 public key that is not [`PUBLIC_KEY_BYTES`] long.
    #[error("an ed25519 public key must have {PUBLIC_KEY_BYTES} bytes before base64, not {bytes}")]
    PublicKeyLength {
        /// Decoded length, in bytes.
        bytes: usize,
    },
    /// Not a point on the curve, or one of the weak points under which anything verifies.
    #[error("the ed25519 public key is not a usable point on the curve")]
    PublicKeyInvalid,
}

/// A secret that signs: symmetric (HMAC-SHA256, `v1`) or asymmetric (ed25519, `v1a`).
///
/// `Debug` shows the kind only. To tell two secrets apart, compare [`Secret::to_private_text`].
#[derive(Clone, Debug)]
pub enum Secret {
    /// Both sides hold the key.
    Hmac(HmacSecret),
    /// The sender holds the key pair, receivers the public key.
    Ed25519(Ed25519Secret),
}

impl Secret {
    /// Reads `whsec_` + base64 of 24 to 75 bytes, or `whsk_` + base64 of a 64-byte key pair.
    ///
    /// Base64 is the standard alphabet, padded or not. Nothing is trimmed or guessed.
    ///
    /// # Errors
    ///
    /// [`SecretError`], naming the first rule the text breaks. A public key (`whpk_…`) is not a
    /// secret and is refused as [`SecretError::SecretPrefix`].
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        check_text(text)?;
        if let Some(encoded) = text.strip_prefix(SECRET_PREFIX) {
            return HmacSecret::new(&decode(encoded)?).map(Self::Hmac);
        }
        if let Some(encoded) = text.strip_prefix(SIGNING_PREFIX) {
            return Ed25519Secret::from_key_pair(&decode(encoded)?).map(Self::Ed25519);
        }
        Err(SecretError::SecretPrefix)
    }

    /// A new HMAC secret from 24 bytes of the caller's chance.
    pub fn from_random_hmac(bytes: [u8; HMAC_BYTES_MIN]) -> Self {
        Self::Hmac(HmacSecret::keyed(&bytes))
    }

    /// A new ed25519 key pair from 32 bytes of the caller's chance.
    pub fn from_random_ed25519(seed: [u8; 32]) -> Self {
        Self::Ed25519(Ed25519Secret { pair: SigningKey::from_bytes(&seed) })
    }

    /// The whole secret as text, `whsec_…` or `whsk_…`, padded: for storage only.
    /// [`Secret::parse`] reads it back.
    pub fn to_private_text(&self) -> String {
        match self {
            Self::Hmac(secret) => encode(SECRET_PREFIX, &secret.key),
            Self::Ed25519(secret) => encode(SIGNING_PREFIX, &secret.pair.to_keypair_bytes()),
        }
    }

    /// What a receiver needs in order to verify, as text, padded: `whsec_…` for HMAC (the same
    /// key), `whpk_…` for ed25519.
    pub fn to_public_text(&self) -> String {
        match self {
            Self::Hmac(secret) => encode(SECRET_PREFIX, &secret.key),
            Self::Ed25519(secret) => encode(PUBLIC_PREFIX, secret.public().as_bytes()),
        }
    }

    /// One signature over `id.timestamp.body`: `v1,` + base64 of 32 bytes, or `v1a,` + base64 of
    /// 64 bytes. `timestamp` is in unix seconds. The caller answers for the id, see
    /// [`is_safe_id`](crate::is_safe_id).
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let timestamp = Decimal::new(timestamp);
        let content = SignedContent { id, timestamp: timestamp.as_str(), body };
        let mut signature = String::new();
        self.sign_into(&content, &mut signature);
        signature
    }

    /// Appends one signature to `out`, growing it once at most.
    pub(crate) fn sign_into(&self, content: &SignedContent<'_>, out: &mut String) {
        match self {
            Self::Hmac(secret) => {
                out.reserve(HMAC_SIGNATURE_BYTES);
                out.push_str("v1,");
                STANDARD.encode_string(secret.tag(&content.parts()), out);
            }
            Self::Ed25519(secret) => {
                out.reserve(ED25519_SIGNATURE_BYTES);
                out.push_str("v1a,");
                STANDARD.encode_string(secret.signature(content), out);
            }
        }
    }
}

/// An HMAC-SHA256 key of 24 to 75 bytes, with the key block already hashed.
#[derive(Clone)]
pub struct HmacSecret {
    key: Box<[u8]>,
    keyed: Hmac<Sha256>,
}

impl HmacSecret {
    /// Takes the key as it is, in bytes.
    ///
    /// # Errors
    ///
    /// [`SecretError::HmacLength`] outside [`HMAC_BYTES_MIN`] to [`HMAC_BYTES_MAX`].
    pub fn new(key: &[u8]) -> Result<Self, SecretError> {
        if !(HMAC_BYTES_MIN..=HMAC_BYTES_MAX).contains(&key.len()) {
            return Err(SecretError::HmacLength { bytes: key.len() });
        }
        Ok(Self::keyed(key))
    }

    /// Only for keys whose length is known to be right, or not ours to judge.
    pub(crate) fn keyed(key: &[u8]) -> Self {
        // HMAC is defined for keys of every length; the error exists for other kinds of MAC.
        let keyed = Hmac::new_from_slice(key).expect("HMAC takes a key of any length");
        Self { key: key.into(), keyed }
    }

    /// The 32 bytes of HMAC-SHA256 over the signed text.
    pub(crate) fn tag(&self, content: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.keyed.clone();
        for part in content {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for HmacSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

/// An ed25519 key pair.
#[derive(Clone)]
pub struct Ed25519Secret {
    pair: SigningKey,
}

impl Ed25519Secret {
    /// Takes a seed (32 bytes) followed by its public key (32 bytes).
    ///
    /// # Errors
    ///
    /// [`SecretError::KeyPairLength`] for any other length, [`SecretError::KeyPairMismatch`] if
    /// the public key is not the one of the seed.
    pub fn from_key_pair(bytes: &[u8]) -> Result<Self, SecretError> {
        let wrong_length = SecretError::KeyPairLength { bytes: bytes.len() };
        let bytes: &[u8; KEY_PAIR_BYTES] = bytes.try_into().map_err(|_| wrong_length)?;
        let pair = SigningKey::from_keypair_bytes(bytes);
        Ok(Self { pair: pair.map_err(|_| SecretError::KeyPairMismatch)? })
    }

    /// The public half.
    pub(crate) fn public(&self) -> VerifyingKey {
        self.pair.verifying_key()
    }

    fn signature(&self, content: &SignedContent<'_>) -> [u8; 64] {
        self.pair.multipart_sign(&content.parts()).to_bytes()
    }
}

impl fmt::Debug for Ed25519Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

/// The two rules every key text shares.
pub(crate) fn check_text(text: &str) -> Result<(), SecretError> {
    if text.is_empty() {
        return Err(SecretError::Empty);
    }
    if text.contains(char::is_whitespace) {
        return Err(SecretError::WhiteSpace);
    }
    Ok(())
}

/// Base64 of a key, padded or not.
pub(crate) fn decode(encoded: &str) -> Result<Vec<u8>, SecretError> {
    if encoded.len() > BASE64_BYTES_MAX {
        return Err(SecretError::Base64);
    }
    STANDARD_PAD_INDIFFERENT.decode(encoded).map_err(|_| SecretError::Base64)
}

/// Prefix and base64, padded.
pub(crate) fn encode(prefix: &str, bytes: &[u8]) -> String {
    let mut text = String::with_capacity(prefix.len() + bytes.len().div_ceil(3) * 4);
    text.push_str(prefix);
    STANDARD.encode_string(bytes, &mut text);
    text
}
