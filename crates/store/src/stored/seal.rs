//! What must not be read in the file: sealed where there is a cipher, and marked either way.
//!
//! Never: give out what was sealed for another owner.

use std::borrow::Cow;

use super::fault::{corrupt, unreadable};
use crate::StoreError;
use crate::cipher::Cipher;

/// What the first byte of what is stored says.
const PLAIN: u8 = 0;
const SEALED: u8 = 1;

/// Seals `plain` with the cipher, if there is one.
pub(crate) fn seal(
    plain: &[u8],
    owner: &[u8],
    cipher: Option<&Cipher>,
) -> Result<Vec<u8>, StoreError> {
    let (tag, bytes) = match cipher {
        Some(cipher) => (SEALED, Cow::Owned(cipher.seal(plain, owner)?)),
        None => (PLAIN, Cow::Borrowed(plain)),
    };
    Ok([&[tag], &bytes[..]].concat())
}

/// Opens what [`seal`] made.
pub(crate) fn open<'s>(
    stored: &'s [u8],
    owner: &[u8],
    cipher: Option<&Cipher>,
) -> Result<Cow<'s, [u8]>, StoreError> {
    match (stored.split_first(), cipher) {
        (Some((&PLAIN, plain)), _) => Ok(Cow::Borrowed(plain)),
        (Some((&SEALED, sealed)), Some(cipher)) => cipher.open(sealed, owner).map(Cow::Owned),
        (Some((&SEALED, _)), None) => Err(corrupt(
            "the secrets in this database are encrypted: the main key they were sealed with is missing",
        )),
        _ => Err(unreadable()),
    }
}
