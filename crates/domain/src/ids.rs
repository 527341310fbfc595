//! Names of things: small inner keys, and the public ids that the API shows.
//!
//! An inner message or attempt key is 64 bits: 40 bits of time in 4 ms steps since
//! [`KSUID_EPOCH_SECS`], a 16-bit counter, an 8-bit node slot. A public id is a prefix and 27
//! base62 characters of 20 bytes: for messages and attempts the key and 12 random bytes, so that no
//! second index is needed to find one by its public id.
//! Never: draw chance or read the clock; both are passed in.

use std::fmt;

use resilience::Timestamp;

/// Seconds since the Unix epoch at which the time part of every id is zero.
pub const KSUID_EPOCH_SECS: i64 = 1_400_000_000;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TEXT_LEN: usize = 27;
const FIVE_DIGITS: u64 = 62_u64.pow(5);

macro_rules! key {
    ($(#[$doc:meta])* $name:ident, $inner:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);
    };
}

key!(
    /// An application inside one installation.
    AppKey, i64);
key!(
    /// An endpoint inside one installation.
    EndpointKey, i64);
key!(
    /// A message; ordered by acceptance.
    MessageKey, u64);
key!(
    /// An attempt; ordered by when its record was committed.
    AttemptKey, u64);

impl MessageKey {
    /// When the key was drawn, to 4 ms.
    pub fn time(self) -> Timestamp {
        key_time(self.0)
    }
}

/// The time part of a 64-bit key, to 4 ms.
pub fn key_time(key: u64) -> Timestamp {
    let ticks = i64::try_from(key >> 24).unwrap_or(i64::MAX);
    let (secs, quarter) = (ticks >> 8, ticks & 0xFF);
    Timestamp::from_micros((secs + KSUID_EPOCH_SECS) * 1_000_000 + quarter * 4_000)
}

/// The smallest key whose time is `at`, for bounds by time; 0 before the epoch.
pub fn key_floor(at: Timestamp) -> u64 {
    let micros = at.as_micros() - KSUID_EPOCH_SECS * 1_000_000;
    let Ok(micros) = u64::try_from(micros) else { return 0 };
    let (secs, rest) = (micros / 1_000_000, micros % 1_000_000);
    let ticks = (secs << 8) | (rest / 4_000);
    if ticks >= 1 << 40 { u64::MAX } else { ticks << 24 }
}

/// Draws keys that only ever grow, even when the clock steps back.
#[derive(Debug)]
pub struct KeyMaker {
    last: u64,
    node: u8,
}

impl KeyMaker {
    /// Continues after `last`, the largest key ever drawn here (0 for none), for the slot `node`.
    pub const fn new(last: u64, node: u8) -> Self {
        Self { last, node }
    }

    /// The next key, carrying the time `now` unless that would not grow.
    pub fn draw(&mut self, now: Timestamp) -> u64 {
        let fresh = key_floor(now) | u64::from(self.node);
        let next = (self.last & !0xFF).saturating_add(0x100) | u64::from(self.node);
        self.last = fresh.max(next);
        self.last
    }
}

/// What kind of thing a public id names; decides its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `org_`
    Organisation,
    /// `app_`
    Application,
    /// `ep_`
    Endpoint,
    /// `msg_`
    Message,
    /// `atmpt_`
    Attempt,
    /// `evtype_`
    EventType,
    /// `qtask_`
    Task,
    /// `dl_`
    DeadLetter,
    /// `run_`
    Run,
    /// `inc_`
    Incident,
    /// `sil_`
    Silence,
}

impl Kind {
    /// The prefix, underscore included.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Organisation => "org_",
            Self::Application => "app_",
            Self::Endpoint => "ep_",
            Self::Message => "msg_",
            Self::Attempt => "atmpt_",
            Self::EventType => "evtype_",
            Self::Task => "qtask_",
            Self::DeadLetter => "dl_",
            Self::Run => "run_",
            Self::Incident => "inc_",
            Self::Silence => "sil_",
        }
    }
}

/// The 20 bytes behind a public id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicId([u8; 20]);

impl fmt::Debug for PublicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Kind::Task).replace("qtask_", ""))
    }
}

impl PublicId {
    /// A key followed by its 12 random bytes.
    pub fn new(key: u64, random: [u8; 12]) -> Self {
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&key.to_be_bytes());
        bytes[8..].copy_from_slice(&random);
        Self(bytes)
    }

    /// From the stored bytes.
    pub const fn from_bytes(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }

    /// The bytes to store.
    pub const fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    /// The first 8 bytes: the inner key of a message or attempt.
    pub fn key(&self) -> u64 {
        let mut key = [0; 8];
        key.copy_from_slice(&self.0[..8]);
        u64::from_be_bytes(key)
    }

    /// The last 12 bytes.
    pub fn random(&self) -> [u8; 12] {
        let mut random = [0; 12];
        random.copy_from_slice(&self.0[8..]);
        random
    }

    /// The public text, prefix included.
    pub fn text(&self, kind: Kind) -> String {
        let mut digits = [b'0'; TEXT_LEN];
        let mut words = [0_u32; 5];
        for (word, four) in words.iter_mut().zip(self.0.chunks_exact(4)) {
            *word = u32::from_be_bytes([four[0], four[1], four[2], four[3]]);
        }
        // Five digits a pass over the words: 62^5 is the largest power that fits 32 bits.
        for five in digits.rchunks_mut(5) {
            let mut rest = 0_u64;
            for word in &mut words {
                let wide = (rest << 32) | u64::from(*word);
                *word = u32::try_from(wide / FIVE_DIGITS).unwrap_or(u32::MAX);
                rest = wide % FIVE_DIGITS;
            }
            for digit in five.iter_mut().rev() {
                *digit = BASE62[usize::try_from(rest % 62).unwrap_or(0)];
                rest /= 62;
            }
        }
        let mut text = String::with_capacity(kind.prefix().len() + TEXT_LEN);
        text.push_str(kind.prefix());
        text.push_str(std::str::from_utf8(&digits).unwrap_or_default());
        text
    }

    /// Reads a public text; `None` if the prefix, the length, a character or the size is wrong.
    pub fn parse(kind: Kind, text: &str) -> Option<Self> {
        let digits = text.strip_prefix(kind.prefix())?.as_bytes();
        if digits.len() != TEXT_LEN {
            return None;
        }
        let mut words = [0_u32; 5];
        for &digit in digits {
            let mut carry = u64::from(value_of(digit)?);
            for word in words.iter_mut().rev() {
                let wide = u64::from(*word) * 62 + carry;
                *word = u32::try_from(wide & 0xFFFF_FFFF).unwrap_or(u32::MAX);
                carry = wide >> 32;
            }
            if carry != 0 {
                return None;
            }
        }
        let mut bytes = [0; 20];
        for (four, word) in bytes.chunks_exact_mut(4).zip(words) {
            four.copy_from_slice(&word.to_be_bytes());
        }
        Some(Self(bytes))
    }
}

fn value_of(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'Z' => Some(digit - b'A' + 10),
        b'a'..=b'z' => Some(digit - b'a' + 36),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_ids_survive_the_round_trip() {
        for (key, fill) in [(0, 0), (u64::MAX, 0xFF), (0x0123_4567_89AB_CDEF, 0x5A)] {
            let id = PublicId::new(key, [fill; 12]);
            let text = id.text(Kind::Message);
            assert_eq!(text.len(), 31, "{text}");
            assert_eq!(PublicId::parse(Kind::Message, &text), Some(id));
            assert_eq!((id.key(), id.random()), (key, [fill; 12]));
        }
    }

    #[test]
    fn foreign_ids_are_refused() {
        let text = PublicId::new(1, [1; 12]).text(Kind::Message);
        assert_eq!(PublicId::parse(Kind::Endpoint, &text), None);
        assert_eq!(PublicId::parse(Kind::Message, &text[..30]), None);
        assert_eq!(PublicId::parse(Kind::Message, &text.replace('0', "-")), None);
        assert_eq!(
            PublicId::parse(Kind::Message, "msg_zzzzzzzzzzzzzzzzzzzzzzzzzzz"),
            None,
            "too big"
        );
        assert!(PublicId::parse(Kind::Organisation, "org_00000000000SvixManagement00").is_some());
    }

    #[test]
    fn keys_grow_though_the_clock_steps_back() {
        let mut keys = KeyMaker::new(0, 3);
        let late = Timestamp::from_secs(1_800_000_000);
        let first = keys.draw(late);
        let second = keys.draw(Timestamp::from_secs(1_700_000_000));
        assert!(second > first);
        assert_eq!(first & 0xFF, 3);
        assert_eq!(key_time(first), late);
        assert!(key_floor(late) <= first);
        assert_eq!(key_floor(Timestamp::from_secs(5)), 0);
        assert_eq!(key_floor(Timestamp::MAX), u64::MAX);
    }
}
