//! Iterators: places in a list, sealed so that they lead nowhere else.
//!
//! In: a list, by its name and by whose it is, and the text of a place. Out: the place, a tilde and
//! a checksum of both under a key of this installation. What was read holds though the row of the
//! place is gone by then.
//! Never: take a seal of another list, or keep the place secret.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::ids::{Kind, PublicId};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// Between a place and its seal; no id, name or number holds it, and no URL escapes it.
const MARK: char = '~';
/// Of a checksum, 64 bits.
const SEAL_BYTES: usize = 8;

/// Seals the iterators of all lists.
pub(crate) struct Iterators(Hmac<Sha256>);

/// Seals the iterators of one list.
#[derive(Clone, Debug)]
pub(crate) struct Seal(Hmac<Sha256>);

/// An iterator as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Iterator<'a> {
    /// A place that was sealed for this list.
    Sealed(&'a str),
    /// A text without a seal, which a caller may have put together.
    Bare(&'a str),
}

impl Iterators {
    /// Under the secret that tokens are signed with, so that whoever shares it shares iterators.
    pub(crate) fn new(secret: &str) -> Self {
        let mut key = [0; 64];
        key[..32].copy_from_slice(&Sha256::digest(format!("iterators of {secret}")));
        Self(Hmac::new(&key.into()))
    }

    /// The list `name` of an organisation; `within` it, the keys of what it belongs to.
    pub(crate) fn of(&self, name: &str, org: PublicId, within: &[u64]) -> Seal {
        let mut seal = self.0.clone();
        for part in [name.as_bytes(), org.text(Kind::Organisation).as_bytes()] {
            seal.update(part);
            seal.update(&[0]);
        }
        seal.update(&[u8::try_from(within.len()).unwrap_or(u8::MAX)]);
        within.iter().for_each(|key| seal.update(&key.to_be_bytes()));
        Seal(seal)
    }
}

impl Seal {
    /// The iterator of a place.
    pub(crate) fn put(&self, place: &str) -> String {
        let whole = self.over(place).finalize().into_bytes();
        let seal = URL_SAFE_NO_PAD.encode(&whole[..SEAL_BYTES]);
        format!("{place}{MARK}{seal}")
    }

    /// Reads an iterator; `None` if it was sealed for another list, or spoilt.
    pub(crate) fn read<'a>(&self, text: &'a str) -> Option<Iterator<'a>> {
        let Some((place, seal)) = text.split_once(MARK) else { return Some(Iterator::Bare(text)) };
        let seal = URL_SAFE_NO_PAD.decode(seal).ok().filter(|seal| seal.len() == SEAL_BYTES)?;
        let is_ours = self.over(place).verify_truncated_left(&seal).is_ok();
        is_ours.then_some(Iterator::Sealed(place))
    }

    fn over(&self, place: &str) -> Hmac<Sha256> {
        let mut whole = self.0.clone();
        whole.update(place.as_bytes());
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORG: PublicId = PublicId::from_bytes([1; 20]);

    #[test]
    fn a_seal_holds_for_its_list_alone() {
        let all = Iterators::new("secret");
        let seal = all.of("messages", ORG, &[7]);
        let text = seal.put("msg_1");
        assert!(text.starts_with("msg_1~") && text.len() == "msg_1~".len() + 11, "{text}");
        assert_eq!(seal.read(&text), Some(Iterator::Sealed("msg_1")));
        assert_eq!(all.of("messages", ORG, &[7]).put("msg_1"), text, "the same again");
        for other in [
            all.of("attempts", ORG, &[7]),
            all.of("messages", PublicId::from_bytes([2; 20]), &[7]),
            all.of("messages", ORG, &[8]),
            all.of("messages", ORG, &[7, 0]),
            all.of("messages", ORG, &[]),
            Iterators::new("other").of("messages", ORG, &[7]),
        ] {
            assert_eq!(other.read(&text), None);
        }
    }

    #[test]
    fn what_was_spoilt_is_no_iterator() {
        let seal = Iterators::new("secret").of("messages", ORG, &[7]);
        let text = seal.put("msg_1");
        for at in 1..text.len() {
            let cut = &text[..at];
            assert!(!matches!(seal.read(cut), Some(Iterator::Sealed(_))), "{cut}");
        }
        for spoilt in [
            text.replace("msg_1", "msg_2"),
            format!("{text}A"),
            format!("{text}~"),
            format!("{text}="),
            "msg_1~AAAAAAAAAAA".to_owned(),
            "msg_1~é".to_owned(),
            "~".to_owned(),
        ] {
            assert_eq!(seal.read(&spoilt), None, "{spoilt}");
        }
        assert_eq!(seal.read("msg_1"), Some(Iterator::Bare("msg_1")));
        assert_eq!(seal.read(""), Some(Iterator::Bare("")));
    }
}
