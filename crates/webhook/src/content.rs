//! The text that is signed: `id.timestamp.body`, laid out once for signer and verifier.
//!
//! In come the three parts, out goes a list of slices that hash like the joined text, so that no
//! body is ever copied to be signed. Here too is the rule that keeps the joined text unambiguous:
//! neither id nor timestamp may hold a full stop.
//!
//! Never: looks into the body, or allocates for a signature.

/// Most bytes an id may have to pass [`is_safe_id`]. A header line stays far below the limits of
/// common receivers with it.
pub const ID_BYTES_MAX: usize = 256;

/// Whether `id` can be sent as a message id: 1 to [`ID_BYTES_MAX`] bytes of `[A-Za-z0-9_-]`.
///
/// Signing cannot refuse an id; whoever lets somebody else choose one asks here first. A full stop
/// would let one signature stand for two different (id, timestamp, body) triples; a line end or a
/// space would not survive the header. Source: Standard Webhooks, "Signature scheme": neither id
/// nor timestamp should hold a full stop.
pub fn is_safe_id(id: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(is_safe_byte)
}

/// A byte that a safe id may hold, and so cannot stand for a border beside one.
pub(crate) fn is_safe_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// The three parts of the signed text, borrowed. The timestamp is text because a verifier must
/// hash the digits it was sent, not digits it wrote itself.
#[derive(Clone, Copy)]
pub(crate) struct SignedContent<'a> {
    pub(crate) id: &'a str,
    pub(crate) timestamp: &'a str,
    pub(crate) body: &'a [u8],
}

impl<'a> SignedContent<'a> {
    /// The slices whose concatenation is `id.timestamp.body`.
    pub(crate) fn parts(&self) -> [&'a [u8]; 5] {
        [self.id.as_bytes(), b".", self.timestamp.as_bytes(), b".", self.body]
    }
}

/// An `i64` as decimal text, held on the stack.
pub(crate) struct Decimal {
    digits: [u8; Self::BYTES_MAX],
    start: usize,
}

impl Decimal {
    /// `-9223372036854775808` has 20 bytes.
    const BYTES_MAX: usize = 20;

    pub(crate) fn new(value: i64) -> Self {
        let mut decimal = Self { digits: [b'0'; Self::BYTES_MAX], start: Self::BYTES_MAX };
        let mut rest = value.unsigned_abs();
        loop {
            decimal.push_front(b'0' + (rest % 10) as u8);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            decimal.push_front(b'-');
        }
        decimal
    }

    pub(crate) fn as_str(&self) -> &str {
        // Only ASCII digits and a sign are ever written, so the fallback is out of reach.
        std::str::from_utf8(&self.digits[self.start..]).unwrap_or_default()
    }

    fn push_front(&mut self, byte: u8) {
        self.start -= 1;
        self.digits[self.start] = byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_writes_what_the_standard_library_writes() {
        for value in [0, 1, 9, 10, 99, 100, 1_614_265_330, -1, -10, i64::MAX, i64::MIN] {
            assert_eq!(Decimal::new(value).as_str(), value.to_string());
        }
    }

    #[test]
    fn the_parts_join_to_the_signed_text() {
        let content = SignedContent { id: "msg_1", timestamp: "17", body: b"a.b" };
        assert_eq!(content.parts().concat(), b"msg_1.17.a.b");
    }

    #[test]
    fn sg_13_only_plain_ids_are_safe() {
        let longest = "a".repeat(ID_BYTES_MAX);
        for id in ["msg_p5jXN8AQM9LWM0D4loKWxJek", "A-z_0", longest.as_str()] {
            assert!(is_safe_id(id), "{id}");
        }
        let too_long = "a".repeat(1000);
        for id in ["", "msg_1.1700000000", "a b", "a\nb", "a,b", "naïve", "a\0", &too_long] {
            assert!(!is_safe_id(id), "{id:?}");
        }
    }
}
