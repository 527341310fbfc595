//! Revocations, in the reference model.
//!
//! Never: a token.

use super::MemoryStore;
use crate::Reply;
use crate::recall::Once;
use crate::revocations::{Expired, Revocations, Revoked};

impl Revocations for MemoryStore {
    fn revoke(&self, token: Revoked) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            let now = tx.now;
            tx.state.revoked.retain(|_, until| *until >= now);
            tx.state.revoked.insert(token.hash, token.until);
            tx.rows += 1;
            Ok(())
        })
    }

    fn expire_once(&self, tokens: Vec<Expired>, once: Once<()>) -> Reply<'static, ()> {
        self.shared.write_once(once, move |tx| {
            let now = tx.now;
            for new in tokens {
                tx.state.expired.retain(|old| !new.covers(old));
                if !tx.state.expired.iter().any(|old| old.covers(&new)) {
                    tx.state.expired.push(new);
                }
                tx.rows += 1;
            }
            tx.state.expired.retain(|old| !old.is_over(now));
            Ok(())
        })
    }

    fn revocations(&self) -> Reply<'_, (Vec<Revoked>, Vec<Expired>)> {
        self.read(|state| {
            let revoked = state.revoked.iter();
            let revoked = revoked.map(|(hash, until)| Revoked { hash: *hash, until: *until });
            let mut expired = state.expired.clone();
            expired.sort_by_key(|it| (it.app, it.session.clone(), it.issued_before));
            (revoked.collect(), expired)
        })
    }
}
