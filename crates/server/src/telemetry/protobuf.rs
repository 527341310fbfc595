//! The few shapes of Protocol Buffers that are written here: nested messages, texts, numbers.
//!
//! Never: read a message, or know what one means.

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

const VARINT: u64 = 0;
const FIXED: u64 = 1;
const BYTES: u64 = 2;
const FIXED_SMALL: u64 = 5;

impl Message {
    /// A field of text.
    pub(super) fn text(mut self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes());
        self
    }

    /// A field that is a message itself.
    pub(super) fn message(mut self, field: u64, message: Self) -> Self {
        self.bytes(field, &message.0);
        self
    }

    /// A field of messages.
    pub(super) fn messages(self, field: u64, messages: impl IntoIterator<Item = Self>) -> Self {
        messages.into_iter().fold(self, |message, one| message.message(field, one))
    }

    /// A field of bytes.
    pub(super) fn blob(mut self, field: u64, bytes: &[u8]) -> Self {
        self.bytes(field, bytes);
        self
    }

    /// A number, an enum or a flag.
    pub(super) fn number(mut self, field: u64, number: u64) -> Self {
        self.varint(field << 3 | VARINT);
        self.varint(number);
        self
    }

    /// A number of eight bytes.
    pub(super) fn fixed(mut self, field: u64, number: u64) -> Self {
        self.varint(field << 3 | FIXED);
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// A number of four bytes.
    pub(super) fn fixed_small(mut self, field: u64, number: u32) -> Self {
        self.varint(field << 3 | FIXED_SMALL);
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// A floating number.
    pub(super) fn double(self, field: u64, number: f64) -> Self {
        self.fixed(field, number.to_bits())
    }

    /// Numbers of eight bytes, packed.
    pub(super) fn all_fixed(mut self, field: u64, numbers: impl IntoIterator<Item = u64>) -> Self {
        let packed: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
        self.bytes(field, &packed);
        self
    }

    /// The bytes.
    pub(super) fn done(self) -> Vec<u8> {
        self.0
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | BYTES);
        self.varint(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.0.extend_from_slice(bytes);
    }

    fn varint(&mut self, mut number: u64) {
        while number > 0x7F {
            self.0.push(u8::try_from(number & 0x7F).unwrap_or(0) | 0x80);
            number >>= 7;
        }
        self.0.push(u8::try_from(number).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_encoding_has_them() {
        let inner = Message::default().number(1, 150);
        let message = Message::default().text(2, "testing").message(3, inner).double(4, 1.0);
        let expected = [
            &[0x12, 0x07][..],
            b"testing",
            &[0x1A, 0x03, 0x08, 0x96, 0x01],
            &[0x21, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F],
        ];
        assert_eq!(message.done(), expected.concat());
        let packed = Message::default().all_fixed(6, [1, 2]).done();
        assert_eq!(packed[..3], [0x32, 16, 1]);
    }
}
