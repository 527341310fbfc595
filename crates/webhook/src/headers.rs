//! Names of the signature headers, and finding them among the headers of a request.
//!
//! In comes any list of (name, value) pairs; out goes one complete trio of id, timestamp and
//! signatures. The `webhook-*` trio is taken if complete, else the `svix-*` one; names match
//! without regard to case (RFC 9110 section 5.1).
//!
//! Never: parts of two trios mixed, or one of two differing ids picked. An application that
//! afterwards reads the id from the headers itself must find the one that was verified.

use crate::error::{SIGNATURES_MAX, VerifyError};

/// Message id, the same for every attempt. Source: Standard Webhooks, "Webhook headers".
pub const WEBHOOK_ID: &str = "webhook-id";
/// Time of the attempt, unix seconds in decimal. Source: Standard Webhooks, "Webhook headers".
pub const WEBHOOK_TIMESTAMP: &str = "webhook-timestamp";
/// Signatures, with spaces between. Source: Standard Webhooks, "Webhook headers".
pub const WEBHOOK_SIGNATURE: &str = "webhook-signature";
/// [`WEBHOOK_ID`] as Svix names it.
pub const SVIX_ID: &str = "svix-id";
/// [`WEBHOOK_TIMESTAMP`] as Svix names it.
pub const SVIX_TIMESTAMP: &str = "svix-timestamp";
/// [`WEBHOOK_SIGNATURE`] as Svix names it.
pub const SVIX_SIGNATURE: &str = "svix-signature";

/// One complete set of signature headers.
#[derive(Debug)]
pub(crate) struct Trio<V> {
    pub(crate) id: V,
    pub(crate) timestamp: V,
    /// Usually one line; several count as if joined by a space.
    pub(crate) signatures: Vec<V>,
}

impl<V: AsRef<[u8]>> Trio<V> {
    /// Finds the trio to verify.
    ///
    /// # Errors
    ///
    /// [`VerifyError::ConflictingHeader`] if ids or timestamps differ, on repeated lines or
    /// between the two trios; [`VerifyError::MissingHeader`] if neither trio is complete.
    pub(crate) fn find<N: AsRef<str>>(
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, VerifyError> {
        let mut webhook = Family::new([WEBHOOK_ID, WEBHOOK_TIMESTAMP, WEBHOOK_SIGNATURE]);
        let mut svix = Family::new([SVIX_ID, SVIX_TIMESTAMP, SVIX_SIGNATURE]);
        for (name, value) in headers {
            if let Some(value) = webhook.take(name.as_ref(), value)? {
                svix.take(name.as_ref(), value)?;
            }
        }
        if differ(&webhook.id, &svix.id) {
            return Err(VerifyError::ConflictingHeader(WEBHOOK_ID.into()));
        }
        if differ(&webhook.timestamp, &svix.timestamp) {
            return Err(VerifyError::ConflictingHeader(WEBHOOK_TIMESTAMP.into()));
        }
        let nothing_of_webhook = webhook.is_empty();
        webhook.complete().or_else(|missing| {
            let svix_started = nothing_of_webhook && !svix.is_empty();
            svix.complete()
                .map_err(|svix_missing| if svix_started { svix_missing } else { missing })
        })
    }
}

/// The headers of one naming, as far as they were found.
struct Family<V> {
    /// Id, timestamp, signature.
    names: [&'static str; 3],
    id: Option<V>,
    timestamp: Option<V>,
    signatures: Vec<V>,
}

impl<V: AsRef<[u8]>> Family<V> {
    fn new(names: [&'static str; 3]) -> Self {
        Self { names, id: None, timestamp: None, signatures: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.id.is_none() && self.timestamp.is_none() && self.signatures.is_empty()
    }

    /// Keeps the value if the name is one of ours, gives it back if not.
    fn take(&mut self, name: &str, value: V) -> Result<Option<V>, VerifyError> {
        let [id, timestamp, signature] = self.names;
        if name.eq_ignore_ascii_case(id) {
            set(&mut self.id, value, id)?;
        } else if name.eq_ignore_ascii_case(timestamp) {
            set(&mut self.timestamp, value, timestamp)?;
        } else if name.eq_ignore_ascii_case(signature) {
            if self.signatures.len() == SIGNATURES_MAX {
                return Err(VerifyError::TooManySignatures);
            }
            self.signatures.push(value);
        } else {
            return Ok(Some(value));
        }
        Ok(None)
    }

    fn complete(self) -> Result<Trio<V>, VerifyError> {
        let [id, timestamp, signature] = self.names;
        let id = self.id.ok_or_else(|| VerifyError::MissingHeader(id.into()))?;
        let timestamp =
            self.timestamp.ok_or_else(|| VerifyError::MissingHeader(timestamp.into()))?;
        if self.signatures.is_empty() {
            return Err(VerifyError::MissingHeader(signature.into()));
        }
        Ok(Trio { id, timestamp, signatures: self.signatures })
    }
}

/// Fills the slot; a second line is allowed only if it says the same.
pub(crate) fn set<V: AsRef<[u8]>>(
    slot: &mut Option<V>,
    value: V,
    name: &str,
) -> Result<(), VerifyError> {
    match slot {
        Some(first) if first.as_ref() != value.as_ref() => {
            Err(VerifyError::ConflictingHeader(name.to_owned().into()))
        }
        _ => {
            *slot = Some(value);
            Ok(())
        }
    }
}

fn differ<V: AsRef<[u8]>>(one: &Option<V>, other: &Option<V>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one.as_ref() != other.as_ref())
}
