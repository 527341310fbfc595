//! The payload of every message here: a JSON object of a fixed size that carries a number and the
//! time it was sent.
//!
//! Both stand at fixed places in fixed widths, so that writing is two copies and reading is two
//! slices.
//! Never: change its size; the number is the identity of a message for sender and receiver.

use std::ops::Range;

use crate::fault::{Fault, Result};

/// Smallest size that holds the two fields.
pub(crate) const BYTES_MIN: usize = 64;

const OPEN: &[u8] = b"{\"seq\":\"";
const SEQ: Range<usize> = 8..18;
const MIDDLE: &[u8] = b"\",\"at\":\"";
const AT: Range<usize> = 26..42;
const PAD: &[u8] = b"\",\"pad\":\"";
const CLOSE: &[u8] = b"\"}";

/// What a payload says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// Which message of this run.
    pub(crate) seq: u32,
    /// When it was sent, see `machine::now_us`.
    pub(crate) at_us: u64,
}

/// A payload of `bytes` bytes with both numbers zero.
pub(crate) fn blank(bytes: usize) -> Result<Vec<u8>> {
    if bytes < BYTES_MIN {
        return Err(Fault::new(format!("a payload has at least {BYTES_MIN} bytes, not {bytes}")));
    }
    let mut text = Vec::with_capacity(bytes);
    text.extend_from_slice(OPEN);
    text.resize(SEQ.end, b'0');
    text.extend_from_slice(MIDDLE);
    text.resize(AT.end, b'0');
    text.extend_from_slice(PAD);
    text.resize(bytes - CLOSE.len(), b'x');
    text.extend_from_slice(CLOSE);
    Ok(text)
}

/// Writes both numbers into a payload made by `blank`.
pub(crate) fn write(payload: &mut [u8], said: Said) {
    digits(&mut payload[SEQ], u64::from(said.seq));
    digits(&mut payload[AT], said.at_us);
}

/// Reads them; `None` when it is no payload of ours.
pub(crate) fn read(payload: &[u8]) -> Option<Said> {
    if payload.len() < BYTES_MIN || !payload.starts_with(OPEN) {
        return None;
    }
    let seq = u32::try_from(number(&payload[SEQ])?).ok()?;
    Some(Said { seq, at_us: number(&payload[AT])? })
}

/// Writes a number right-aligned with leading zeros.
pub(crate) fn digits(place: &mut [u8], mut value: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

fn number(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0_u64, |sum, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_is_json() {
        let mut payload = blank(256).unwrap();
        let said = Said { seq: 1_234_567, at_us: 9_876_543_210 };
        write(&mut payload, said);
        assert_eq!(payload.len(), 256);
        assert_eq!(read(&payload), Some(said));
        let json: serde_json::Value = serde_json::from_slice(&payload).unwrap();
        assert_eq!(json["seq"], "0001234567");
        assert_eq!(json["at"], "0000009876543210");
    }

    #[test]
    fn other_bodies_are_strangers() {
        assert!(blank(10).is_err());
        assert_eq!(read(b"{}"), None);
        let mut payload = blank(BYTES_MIN).unwrap();
        payload[10] = b'x';
        assert_eq!(read(&payload), None);
    }
}
