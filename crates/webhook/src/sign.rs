//! The signature header of one attempt: one signature per live secret.
//!
//! In come the secrets in the order they are to be written (newest first, so that a rotation
//! overlaps: receivers on either secret find theirs), the message id, the time of this attempt and
//! the body; out goes the header's value. A retry calls this again with its own time; nothing of
//! an earlier attempt is reused.
//!
//! Never: an empty header value, an order of its own, a limit on the number of secrets (whoever
//! keeps them bounds them).
//!
//! Source: Standard Webhooks, "Signature scheme" and "Webhook headers".

use crate::content::{Decimal, SignedContent};
use crate::secret::Secret;

/// The value of `webhook-signature` (and `svix-signature`, which is the same): the signatures of
/// all `secrets` over `id.timestamp.body`, in the given order, with single spaces between them.
///
/// `timestamp` is in unix seconds and must be the one sent in the timestamp header. `None` if
/// there is no secret: then no signature header may be sent at all.
pub fn signature_header<'a>(
    secrets: impl IntoIterator<Item = &'a Secret>,
    id: &str,
    timestamp: i64,
    body: &[u8],
) -> Option<String> {
    let timestamp = Decimal::new(timestamp);
    let content = SignedContent { id, timestamp: timestamp.as_str(), body };
    let mut header = String::new();
    for secret in secrets {
        if !header.is_empty() {
            header.push(' ');
        }
        secret.sign_into(&content, &mut header);
    }
    (!header.is_empty()).then_some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_gives_no_header() {
        assert_eq!(signature_header([], "msg_1", 1, b""), None);
    }

    #[test]
    fn one_secret_gives_its_bare_signature() {
        for secret in [Secret::from_random_hmac([1; 24]), Secret::from_random_ed25519([2; 32])] {
            let header = signature_header([&secret], "msg_1", 17, b"{}").unwrap();
            assert_eq!(header, secret.sign("msg_1", 17, b"{}"));
            assert_eq!(header.len(), header.capacity(), "one allocation, of the right size");
        }
    }

    #[test]
    fn sg_07_all_secrets_sign_in_the_given_order() {
        let newest = Secret::from_random_hmac([1; 24]);
        let older = Secret::from_random_ed25519([2; 32]);
        let oldest = Secret::from_random_hmac([3; 24]);
        let header = signature_header([&newest, &older, &oldest], "msg_1", 17, b"{}").unwrap();
        let each = [&newest, &older, &oldest].map(|secret| secret.sign("msg_1", 17, b"{}"));
        assert_eq!(header, each.join(" "));
    }

    #[test]
    fn sg_04_every_attempt_has_its_own_signature() {
        let secret = Secret::from_random_hmac([1; 24]);
        let first = signature_header([&secret], "msg_1", 17, b"{}");
        assert_ne!(first, signature_header([&secret], "msg_1", 22, b"{}"));
    }
}
