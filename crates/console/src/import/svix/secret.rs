//! Signing secrets as Svix keeps them.
//!
//! 24 bytes are an HMAC key of an early version. Else the first byte says the kind, and by its
//! highest bit whether what follows is sealed: a nonce of 24 bytes and XChaCha20-Poly1305, under a
//! key that is the HMAC-SHA256 of `main` by the server's `main_secret`.
//! Never: shown; errors say what is wrong, not with which bytes.

use chacha20poly1305::aead::Aead as _;
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use webhook::Secret;

/// A key of an early version, which has no byte before it.
const EARLY_BYTES: usize = 24;
const NONCE_BYTES: usize = 24;
const SEALED: u8 = 0b1000_0000;
const HMAC: u8 = 1;
const ED25519: u8 = 2;

/// Opens what a Svix server sealed.
pub(crate) struct MainSecret(XChaCha20Poly1305);

impl MainSecret {
    /// From `main_secret` as it stands in the server's settings.
    pub(crate) fn new(text: &str) -> Self {
        // HMAC takes a key of any length.
        let mac =
            Hmac::<Sha256>::new_from_slice(text.as_bytes()).map(|mac| mac.chain_update(b"main"));
        let key = mac.map(|mac| mac.finalize().into_bytes()).unwrap_or_default();
        Self(XChaCha20Poly1305::new(&key))
    }

    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        self.0.decrypt(&XNonce::from(*nonce), sealed).ok()
    }
}

/// The secret in force, of the column `key`.
pub(crate) fn in_force(column: &str, main: Option<&MainSecret>) -> Result<Secret, String> {
    let hex = column.strip_prefix("\\x").ok_or("the key is not read as hexadecimal digits")?;
    let bytes = HEXLOWER_PERMISSIVE.decode(hex.as_bytes());
    of_bytes(&bytes.map_err(|_| "the key is not hexadecimal")?, main)
}

/// A replaced secret, of the column `old_keys`.
pub(crate) fn replaced(text: &str, main: Option<&MainSecret>) -> Result<Secret, String> {
    // Early versions wrote the secret as its owner knows it.
    if text.starts_with(webhook::SECRET_PREFIX) {
        return Secret::parse(text).map_err(|fault| fault.to_string());
    }
    let bytes = BASE64.decode(text.as_bytes()).map_err(|_| "an old key is not base64")?;
    of_bytes(&bytes, main)
}

fn of_bytes(bytes: &[u8], main: Option<&MainSecret>) -> Result<Secret, String> {
    if bytes.len() == EARLY_BYTES {
        return secret(HMAC, bytes);
    }
    let (&mark, rest) = bytes.split_first().ok_or("the key is empty")?;
    if bytes.len() < EARLY_BYTES {
        return Err("the key is too short".to_owned());
    }
    if mark & SEALED == 0 {
        return secret(mark, rest);
    }
    let main = main.ok_or("the secret is encrypted: --main-secret must be Svix's main_secret")?;
    let plain = main.open(rest).ok_or("--main-secret does not open the secret")?;
    secret(mark & !SEALED, &plain)
}

fn secret(kind: u8, key: &[u8]) -> Result<Secret, String> {
    let prefix = match kind {
        HMAC => webhook::SECRET_PREFIX,
        ED25519 => webhook::SIGNING_PREFIX,
        _ => return Err("the key is of an unknown kind".to_owned()),
    };
    let text = format!("{prefix}{}", BASE64.encode(key));
    Secret::parse(&text).map_err(|fault| fault.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        format!("\\x{}", data_encoding::HEXLOWER.encode(bytes))
    }

    fn text(secret: Result<Secret, String>) -> String {
        secret.unwrap().to_private_text()
    }

    fn sealed(mark: u8, key: &[u8], main: &str) -> Vec<u8> {
        let nonce = [7; NONCE_BYTES];
        let cipher = MainSecret::new(main).0;
        let mut bytes = vec![mark | SEALED];
        bytes.extend(nonce);
        bytes.extend(cipher.encrypt(&XNonce::from(nonce), key).unwrap());
        bytes
    }

    #[test]
    fn every_way_of_keeping_a_secret_is_read() {
        let key = [9; 24];
        let whsec = Secret::from_random_hmac(key).to_private_text();
        let mut marked = vec![HMAC];
        marked.extend(key);
        assert_eq!(text(in_force(&hex(&key), None)), whsec);
        assert_eq!(text(in_force(&hex(&marked), None)), whsec);
        assert_eq!(text(replaced(&whsec, None)), whsec);
        assert_eq!(text(replaced(&BASE64.encode(&marked), None)), whsec);
        let main = MainSecret::new("main");
        let closed = sealed(HMAC, &key, "main");
        assert_eq!(text(in_force(&hex(&closed), Some(&main))), whsec);
        let pair = Secret::from_random_ed25519([5; 32]).to_private_text();
        let bytes = BASE64.decode(pair.strip_prefix("whsk_").unwrap().as_bytes()).unwrap();
        let mut marked = vec![ED25519];
        marked.extend(&bytes);
        assert_eq!(text(in_force(&hex(&marked), None)), pair);
        assert_eq!(text(in_force(&hex(&sealed(ED25519, &bytes, "main")), Some(&main))), pair);
    }

    /// The same function of another library: `HMAC_SHA256(key = main_secret, "main")`.
    #[test]
    fn the_sealing_key_is_a_known_one() {
        let mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        let mac = mac.chain_update(b"what do ya want for nothing?").finalize().into_bytes();
        // RFC 4231, test case 2: the order of key and text is as there.
        assert!(hex(&mac).starts_with("\\x5bdcc146bf60754e"));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let closed = hex(&sealed(HMAC, &[9; 24], "main"));
        let other = MainSecret::new("other");
        for (column, main, said) in [
            ("", None, "hexadecimal"),
            ("\\xzz", None, "hexadecimal"),
            ("\\x", None, "empty"),
            ("\\x0102", None, "short"),
            (&*hex(&[3; 40]), None, "unknown kind"),
            (&*closed, None, "--main-secret must"),
            (&*closed, Some(&other), "does not open"),
        ] {
            let fault = in_force(column, main).unwrap_err();
            assert!(fault.contains(said), "{column}: {fault}");
        }
    }
}
