//! How a sender signs: which headers, which text, which notation. Published schemes, and the parts
//! to describe another one with.
//!
//! All are HMAC-SHA256. A scheme that would prove less than it seems to (an unsigned timestamp, an
//! ambiguous text) is refused before it is used.
//!
//! Never: a secret, or a request.

use crate::content::is_safe_byte;
use crate::error::ConfigError;

/// A way of signing with HMAC-SHA256.
///
/// ```
/// use webhook::{Encoding, Layout, Part, Scheme, TimestampIn, WebhookVerifier};
///
/// // `X-Sent-At: 1700000000`, `X-Signature: hmac=<base64 of HMAC(secret, "1700000000:" + body)>`
/// let scheme = Scheme {
///     signature_header: "X-Signature".into(),
///     layout: Layout::Prefixed("hmac=".into()),
///     encoding: Encoding::Base64,
///     timestamp: Some(TimestampIn::Header("X-Sent-At".into())),
///     id_header: None,
///     content: vec![Part::Timestamp, Part::Text(":".into()), Part::Body],
/// };
/// let verifier = WebhookVerifier::custom(scheme).secret("hush")?.build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// The header that carries the signature.
    pub signature_header: String,
    /// How it stands in there.
    pub layout: Layout,
    /// How its bytes are written.
    pub encoding: Encoding,
    /// Where the time of sending stands, in unix seconds; it must be part of the signed text.
    pub timestamp: Option<TimestampIn>,
    /// The header with the message id; it must be part of the signed text.
    pub id_header: Option<String>,
    /// The signed text, piece by piece.
    pub content: Vec<Part>,
}

/// How signatures stand in their header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// This text (it may be empty), then the signature, and nothing else.
    Prefixed(String),
    /// `name=value` pairs with commas between. Every field of this name is a signature, so that a
    /// secret can be rotated; fields of other names are skipped.
    Fields(String),
}

/// How the bytes of a signature are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Base 16, in either case.
    Hex,
    /// The standard alphabet, padded or not.
    Base64,
}

/// Where the timestamp stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimestampIn {
    /// Alone in the header of this name.
    Header(String),
    /// In the field of this name of the signature header; for [`Layout::Fields`].
    Field(String),
}

/// A piece of the signed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The message id, as sent.
    Id,
    /// The timestamp, as sent.
    Timestamp,
    /// The body, byte for byte.
    Body,
    /// A fixed text.
    Text(String),
}

impl Scheme {
    /// Stripe: `Stripe-Signature: t=…,v1=…` over `t.body`, in hex.
    ///
    /// Source: Stripe, "Verify webhook signatures manually".
    pub fn stripe() -> Self {
        Self {
            signature_header: "Stripe-Signature".into(),
            layout: Layout::Fields("v1".into()),
            encoding: Encoding::Hex,
            timestamp: Some(TimestampIn::Field("t".into())),
            id_header: None,
            content: vec![Part::Timestamp, Part::Text(".".into()), Part::Body],
        }
    }

    /// GitHub: `X-Hub-Signature-256: sha256=…` over the body, in hex. There is no timestamp, so a
    /// replay is only found by its `X-GitHub-Delivery`.
    ///
    /// Source: GitHub, "Validating webhook deliveries".
    pub fn github() -> Self {
        Self {
            signature_header: "X-Hub-Signature-256".into(),
            layout: Layout::Prefixed("sha256=".into()),
            encoding: Encoding::Hex,
            timestamp: None,
            id_header: None,
            content: vec![Part::Body],
        }
    }

    /// Slack: `X-Slack-Signature: v0=…` over `v0:timestamp:body`, in hex, with the timestamp in
    /// `X-Slack-Request-Timestamp`.
    ///
    /// Source: Slack, "Verifying requests from Slack".
    pub fn slack() -> Self {
        Self {
            signature_header: "X-Slack-Signature".into(),
            layout: Layout::Prefixed("v0=".into()),
            encoding: Encoding::Hex,
            timestamp: Some(TimestampIn::Header("X-Slack-Request-Timestamp".into())),
            id_header: None,
            content: vec![
                Part::Text("v0:".into()),
                Part::Timestamp,
                Part::Text(":".into()),
                Part::Body,
            ],
        }
    }

    /// The first rule this scheme breaks.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let count = |part: &Part| self.content.iter().filter(|own| *own == part).count();
        if count(&Part::Body) != 1 {
            return Err(ConfigError::BodyNotSigned);
        }
        if count(&Part::Timestamp) != usize::from(self.timestamp.is_some()) {
            return Err(ConfigError::TimestampNotSigned);
        }
        if count(&Part::Id) != usize::from(self.id_header.is_some()) {
            return Err(ConfigError::IdNotSigned);
        }
        if self.names().any(str::is_empty) {
            return Err(ConfigError::EmptyName);
        }
        if let (Some(TimestampIn::Field(_)), Layout::Prefixed(_)) = (&self.timestamp, &self.layout)
        {
            return Err(ConfigError::TimestampNotSigned);
        }
        if self.content.windows(2).any(is_ambiguous) {
            return Err(ConfigError::Ambiguous);
        }
        Ok(())
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let timestamp = self.timestamp.as_ref().map(|place| match place {
            TimestampIn::Header(name) | TimestampIn::Field(name) => name.as_str(),
        });
        let field = match &self.layout {
            Layout::Prefixed(_) => None,
            Layout::Fields(name) => Some(name.as_str()),
        };
        let header = Some(self.signature_header.as_str());
        [header, timestamp, field, self.id_header.as_deref()].into_iter().flatten()
    }
}

/// Whether the border between two neighbours cannot be found again in the joined text.
fn is_ambiguous(pair: &[Part]) -> bool {
    let varies = |part: &Part| matches!(part, Part::Id | Part::Timestamp);
    let splits = |byte: Option<&u8>| byte.is_some_and(|byte| !is_safe_byte(*byte));
    match pair {
        [first, Part::Text(text)] if varies(first) => !splits(text.as_bytes().first()),
        [Part::Text(text), second] if varies(second) => !splits(text.as_bytes().last()),
        [first, second] => varies(first) || varies(second),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Scheme)) -> ConfigError {
        let mut scheme = Scheme::stripe();
        change(&mut scheme);
        scheme.check().unwrap_err()
    }

    fn text(text: &str) -> Part {
        Part::Text(text.into())
    }

    #[test]
    fn published_schemes_keep_the_rules() {
        for scheme in [Scheme::stripe(), Scheme::github(), Scheme::slack()] {
            assert_eq!(scheme.check(), Ok(()), "{scheme:?}");
        }
    }

    #[test]
    fn what_is_not_signed_is_refused() {
        use ConfigError::{BodyNotSigned, EmptyName, IdNotSigned, TimestampNotSigned};
        assert_eq!(refused(|s| s.content.truncate(2)), BodyNotSigned);
        assert_eq!(refused(|s| s.content.push(Part::Body)), BodyNotSigned);
        assert_eq!(refused(|s| s.content = vec![Part::Body]), TimestampNotSigned);
        assert_eq!(refused(|s| s.timestamp = None), TimestampNotSigned);
        assert_eq!(refused(|s| s.layout = Layout::Prefixed("v0=".into())), TimestampNotSigned);
        assert_eq!(refused(|s| s.id_header = Some("x-id".into())), IdNotSigned);
        assert_eq!(refused(|s| s.signature_header = String::new()), EmptyName);
        assert_eq!(refused(|s| s.layout = Layout::Fields(String::new())), EmptyName);
    }

    #[test]
    fn sg_13_an_ambiguous_text_is_refused() {
        for content in [
            vec![Part::Timestamp, Part::Body],
            vec![Part::Body, Part::Timestamp],
            vec![Part::Timestamp, text("v0:"), Part::Body],
            vec![text("v0"), Part::Timestamp, text(":"), Part::Body],
            vec![Part::Timestamp, text(""), Part::Body],
        ] {
            let named = format!("{content:?}");
            assert_eq!(refused(|s| s.content = content), ConfigError::Ambiguous, "{named}");
        }
    }
}
