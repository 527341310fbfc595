//! Tokens that are not good any more though their signature is, as the store keeps them.
//!
//! All of them are in memory, so that no request asks the store; what is added is stored first.
//! Never: forget one that could still be good.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use domain::ids::PublicId;
use resilience::Timestamp;
use store::revocations::{Expired, Revoked};

/// Revocations in force.
#[derive(Default)]
pub(crate) struct Revocations(RwLock<Known>);

#[derive(Default)]
struct Known {
    tokens: HashMap<[u8; 32], Timestamp>,
    apps: HashMap<PublicId, Vec<Expired>>,
}

/// What of a token tells whether it was revoked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<'a> {
    pub(crate) hash: &'a [u8; 32],
    pub(crate) app: Option<PublicId>,
    pub(crate) session: Option<&'a str>,
    /// A token that does not say when it was issued counts as older than any other.
    pub(crate) issued_at: Option<Timestamp>,
}

impl Revocations {
    /// Adds one token; those that have ended by themselves go.
    pub(crate) fn revoke(&self, token: &Revoked, now: Timestamp) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.tokens.retain(|_, until| *until >= now);
        known.tokens.insert(token.hash, token.until);
    }

    /// Adds tokens of an application; what they cover goes.
    pub(crate) fn expire(&self, tokens: Vec<Expired>, now: Timestamp) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for new in tokens {
            let of_app = known.apps.entry(new.app).or_default();
            of_app.retain(|old| !new.covers(old) && !old.is_over(now));
            of_app.push(new);
        }
    }

    /// Whether the token was revoked.
    pub(crate) fn hold(&self, token: Shown<'_>, now: Timestamp) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if known.tokens.contains_key(token.hash) {
            return true;
        }
        let of_app = token.app.and_then(|app| known.apps.get(&app));
        of_app.is_some_and(|expired| {
            expired.iter().any(|expired| {
                expired.from <= now
                    && expired.session.as_deref().is_none_or(|it| token.session == Some(it))
                    && token.issued_at.is_none_or(|at| at < expired.issued_before)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
    const APP: PublicId = PublicId::from_bytes([1; 20]);

    fn shown(session: Option<&'static str>, issued_at: Option<Timestamp>) -> Shown<'static> {
        Shown { hash: &[0; 32], app: Some(APP), session, issued_at }
    }

    fn later(secs: u64) -> Timestamp {
        NOW.plus(Duration::from_secs(secs))
    }

    #[test]
    fn a_token_is_known_by_its_hash() {
        let revocations = Revocations::default();
        let hold = |now| revocations.hold(shown(None, Some(NOW)), now);
        assert!(!hold(NOW));
        revocations.revoke(&Revoked { hash: [0; 32], until: later(5) }, NOW);
        assert!(hold(NOW));
        revocations.revoke(&Revoked { hash: [1; 32], until: later(9) }, later(6));
        assert!(!hold(later(6)), "it has ended by itself");
    }

    #[test]
    fn what_was_issued_before_is_refused_from_then_on() {
        let revocations = Revocations::default();
        let new = Expired { app: APP, session: None, issued_before: NOW, from: later(10) };
        revocations.expire(vec![new], NOW);
        let old = shown(Some("s"), Some(NOW.minus(Duration::from_micros(1))));
        assert!(!revocations.hold(old, later(9)) && revocations.hold(old, later(10)));
        assert!(!revocations.hold(shown(None, Some(NOW)), later(10)), "issued since");
        assert!(revocations.hold(shown(None, None), later(10)), "who knows when");
        let other = PublicId::from_bytes([2; 20]);
        assert!(!revocations.hold(Shown { app: Some(other), ..old }, later(10)));
        assert!(!revocations.hold(Shown { app: None, ..old }, later(10)));
    }

    #[test]
    fn a_session_ends_alone() {
        let revocations = Revocations::default();
        let session = Some("s".to_owned());
        let one = Expired { app: APP, session, issued_before: NOW, from: NOW };
        revocations.expire(vec![one], NOW);
        let at = Some(NOW.minus(Duration::from_secs(1)));
        assert!(revocations.hold(shown(Some("s"), at), NOW));
        assert!(!revocations.hold(shown(Some("t"), at), NOW));
        assert!(!revocations.hold(shown(None, at), NOW));
    }
}
