//! Secrets at rest: sealed with a main key when there is one.
//!
//! In: the text of the main key, bytes, and what they belong to. Out: bytes that only the same key
//! and the same owner open again.
//! Never: show the key, accept an altered or moved secret, or choose a nonce twice but by chance
//! (192 bits of it).

use std::fmt;

use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use resilience::FromOs;
use sha2::{Digest as _, Sha256};

use crate::StoreError;

/// Bytes of a nonce, which stands before what was sealed.
const NONCE_BYTES: usize = 24;
/// Keeps this use of the main key apart from any other.
const PURPOSE: &[u8] = b"peyk endpoint secrets v1\0";

/// Seals and opens secrets (XChaCha20-Poly1305).
#[derive(Clone)]
pub struct Cipher(XChaCha20Poly1305);

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher")
    }
}

impl Cipher {
    /// From the main key as it stands in the settings: any text; it must hold the entropy itself,
    /// nothing stretches it.
    pub fn from_main_key(text: &str) -> Self {
        let digest = Sha256::new().chain_update(PURPOSE).chain_update(text.as_bytes()).finalize();
        Self(XChaCha20Poly1305::new(&digest))
    }

    /// Seals `plain` for `owner`.
    pub fn seal(&self, plain: &[u8], owner: &[u8]) -> Result<Vec<u8>, StoreError> {
        let mut nonce = [0_u8; NONCE_BYTES];
        let failed = || StoreError::Unavailable("a secret could not be encrypted".into());
        FromOs::fill(&mut nonce).map_err(|_| failed())?;
        let payload = Payload { msg: plain, aad: owner };
        let sealed = self.0.encrypt(&XNonce::from(nonce), payload).map_err(|_| failed())?;
        let mut bytes = nonce.to_vec();
        bytes.extend_from_slice(&sealed);
        Ok(bytes)
    }

    /// Opens what was sealed for `owner` with the same key.
    pub fn open(&self, sealed: &[u8], owner: &[u8]) -> Result<Vec<u8>, StoreError> {
        let failed = || {
            StoreError::Corrupt(
                "a stored secret does not open with this main key: it was sealed with another one, or altered".into(),
            )
        };
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>().ok_or_else(failed)?;
        let payload = Payload { msg: sealed, aad: owner };
        self.0.decrypt(&XNonce::from(*nonce), payload).map_err(|_| failed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_for_its_key_and_owner() {
        let cipher = Cipher::from_main_key("correct horse");
        let sealed = cipher.seal(b"whsec_x", b"ep_1").unwrap();
        assert_eq!(cipher.open(&sealed, b"ep_1").unwrap(), b"whsec_x");
        assert_ne!(sealed, cipher.seal(b"whsec_x", b"ep_1").unwrap(), "a nonce of its own");
        assert!(cipher.open(&sealed, b"ep_2").is_err());
        assert!(Cipher::from_main_key("correct horsf").open(&sealed, b"ep_1").is_err());
        assert!(cipher.open(&sealed[..10], b"ep_1").is_err());
        let mut altered = sealed;
        altered[30] ^= 1;
        assert!(cipher.open(&altered, b"ep_1").is_err());
        assert_eq!(format!("{cipher:?}"), "Cipher");
    }
}
