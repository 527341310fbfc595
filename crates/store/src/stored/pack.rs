//! Small lists and overrides in one column: numbers as varints, texts with their length before
//! them.
//!
//! The columns that lists are searched by stay columns; what is only read whole is packed.
//! Never: trust what is read back; a length beyond the end is an unreadable row.

use std::time::Duration;

use super::fault::unreadable;
use crate::StoreError;

/// Builds a packed value.
#[derive(Default)]
pub(crate) struct Packer(Vec<u8>);

impl Packer {
    pub(crate) fn number(&mut self, mut value: u64) -> &mut Self {
        loop {
            let low = u8::try_from(value & 0x7F).unwrap_or(0);
            value >>= 7;
            if value == 0 {
                self.0.push(low);
                return self;
            }
            self.0.push(low | 0x80);
        }
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.number(u64::try_from(text.len()).unwrap_or(u64::MAX));
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    /// So many bytes as the reader knows of.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// 0 when there is none, else 1 and the value.
    pub(crate) fn maybe<T>(
        &mut self,
        value: Option<T>,
        pack: impl FnOnce(&mut Self, T),
    ) -> &mut Self {
        self.number(u64::from(value.is_some()));
        if let Some(value) = value {
            pack(self, value);
        }
        self
    }

    pub(crate) fn span(&mut self, span: Duration) -> &mut Self {
        self.number(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
    }

    /// The number of items, then each.
    pub(crate) fn list<T>(
        &mut self,
        items: &[T],
        mut pack: impl FnMut(&mut Self, &T),
    ) -> &mut Self {
        self.number(u64::try_from(items.len()).unwrap_or(u64::MAX));
        for item in items {
            pack(self, item);
        }
        self
    }

    pub(crate) fn done(self) -> Vec<u8> {
        self.0
    }
}

/// Reads a packed value.
pub(crate) struct Unpacker<'a>(&'a [u8]);

impl<'a> Unpacker<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn number(&mut self) -> Result<u64, StoreError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or_else(unreadable)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(unreadable())
    }

    pub(crate) fn small<T: TryFrom<u64>>(&mut self) -> Result<T, StoreError> {
        T::try_from(self.number()?).map_err(|_| unreadable())
    }

    pub(crate) fn text(&mut self) -> Result<String, StoreError> {
        let length = self.small::<usize>()?;
        let (text, rest) = self.0.split_at_checked(length).ok_or_else(unreadable)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).map_err(|_| unreadable())
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(unreadable)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub(crate) fn maybe<T>(
        &mut self,
        unpack: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        if self.number()? == 0 { Ok(None) } else { unpack(self).map(Some) }
    }

    pub(crate) fn span(&mut self) -> Result<Duration, StoreError> {
        self.number().map(Duration::from_micros)
    }

    pub(crate) fn list<T>(
        &mut self,
        mut unpack: impl FnMut(&mut Self) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let length = self.number()?;
        (0..length).map(|_| unpack(self)).collect()
    }
}

/// A list of texts.
pub(crate) fn texts(items: &[String]) -> Vec<u8> {
    let mut packer = Packer::default();
    packer.list(items, |packer, item| {
        packer.text(item);
    });
    packer.done()
}

/// Reads a list of texts.
pub(crate) fn read_texts(bytes: &[u8]) -> Result<Vec<String>, StoreError> {
    Unpacker::new(bytes).list(Unpacker::text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_out_as_they_went_in() {
        let mut packer = Packer::default();
        packer.number(0).number(u64::MAX).text("a\0é").span(Duration::from_micros(300));
        packer.maybe(None::<u64>, |packer, value| {
            packer.number(value);
        });
        let bytes = packer.done();
        let mut unpacker = Unpacker::new(&bytes);
        assert_eq!(unpacker.number(), Ok(0));
        assert_eq!(unpacker.number(), Ok(u64::MAX));
        assert_eq!(unpacker.text().as_deref(), Ok("a\0é"));
        assert_eq!(unpacker.span(), Ok(Duration::from_micros(300)));
        assert_eq!(unpacker.maybe(Unpacker::number), Ok(None));
        assert!(unpacker.number().is_err());
        assert_eq!(read_texts(&texts(&["x".into(), String::new()])).map(|list| list.len()), Ok(2));
    }

    #[test]
    fn damage_is_an_error_not_a_panic() {
        for bytes in [&[0x80_u8; 20][..], &[5, b'a'], &[0xFF, 0xFF, 0x7F, 1], &[1, 1, 0xFF]] {
            assert!(read_texts(bytes).is_err());
        }
    }
}
