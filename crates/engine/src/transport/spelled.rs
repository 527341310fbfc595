//! Names of custom headers as their owner spelled them.
//!
//! HTTP takes a name in any case, but some receivers do not, and the HTTP library writes all of
//! them in lower case. In: the endpoint whose request is written next, then the bytes of its head.
//! Out: as many bytes, with the names respelled.
//! Never: change a value, or the length of anything.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use domain::endpoint::Endpoint;

const END: &[u8] = b"\r\n\r\n";

/// Whose request is written next on a connection, if its names are not in lower case anyway.
#[derive(Clone, Default)]
pub(super) struct Spelling(Arc<Next>);

#[derive(Default)]
struct Next {
    is_set: AtomicBool,
    endpoint: Mutex<Option<Arc<Endpoint>>>,
}

impl Spelling {
    /// A request to this endpoint is about to be written, or one to nobody's.
    pub(super) fn set(&self, endpoint: Option<&Arc<Endpoint>>) {
        let is_upper = |name: &str| name.bytes().any(|byte| byte.is_ascii_uppercase());
        let spells = |of: &&Arc<Endpoint>| of.spec.headers.iter().any(|(name, _)| is_upper(name));
        let wanted = endpoint.filter(spells).cloned();
        let is_wanted = wanted.is_some();
        if !is_wanted && !self.0.is_set.load(Ordering::Relaxed) {
            return;
        }
        *self.0.endpoint.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
        self.0.is_set.store(is_wanted, Ordering::Relaxed);
    }

    /// The head at the beginning of these bytes, respelled; `None` if it may go as it is.
    pub(super) fn head(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        if bytes.is_empty() || !self.0.is_set.swap(false, Ordering::Relaxed) {
            return None;
        }
        let endpoint = self.0.endpoint.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let end = bytes.windows(END.len()).position(|window| window == END);
        let mut head = bytes[..end.unwrap_or(bytes.len())].to_vec();
        respell(&mut head, &endpoint.spec.headers);
        Some(head)
    }
}

/// Writes names as they are spelled here.
fn respell(head: &mut [u8], spelled: &[(String, String)]) {
    for line in head.split_mut(|&byte| byte == b'\n').skip(1) {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let name = &mut line[..colon];
        let mut spelled = spelled.iter().map(|(own, _)| own);
        if let Some(own) = spelled.find(|own| name.eq_ignore_ascii_case(own.as_bytes())) {
            name.copy_from_slice(own.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelled_anew_and_nothing_else() {
        let own = [("X-OnE", "1"), ("y", "2"), ("X-Two", "3")];
        let own: Vec<_> = own.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let mut head =
            *b"POST /x-one: HTTP/1.1\r\nx-one: x-one: a\r\nY: x-two\r\nx-two:\r\nx-one-more: 4";
        respell(&mut head, &own);
        let expected =
            b"POST /x-one: HTTP/1.1\r\nX-OnE: x-one: a\r\ny: x-two\r\nX-Two:\r\nx-one-more: 4";
        assert_eq!(head.as_slice(), expected.as_slice());
    }
}
