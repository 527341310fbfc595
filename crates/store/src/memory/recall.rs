//! Answers under idempotency keys, in the reference model.
//!
//! Never: an answer without its change, or the other way round.

use std::sync::Arc;

use domain::idempotency::IngestKey;

use super::MemoryStore;
use super::writer::{Shared, Tx};
use crate::recall::{Kept, Once, Recall, Told};
use crate::{Reply, StoreError};

impl Recall for MemoryStore {
    fn recall(&self, scope: [u8; 16]) -> Reply<'_, Option<Kept>> {
        self.read(move |state| state.answers.get(&scope).cloned())
    }

    fn keep(&self, key: IngestKey, told: Told) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            keep(tx, key, told);
            Ok(())
        })
    }
}

impl Shared {
    /// Queues `apply`, and keeps its answer with it.
    pub(super) fn write_once<T: Send + 'static>(
        self: &Arc<Self>,
        once: Once<T>,
        apply: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Reply<'static, T> {
        self.write(move |tx| {
            let made = apply(tx)?;
            let told = once.and_then(|it| Some((it.key, (it.tell)(&made)?)));
            if let Some((key, told)) = told {
                keep(tx, key, told);
            }
            Ok(made)
        })
    }
}

fn keep(tx: &mut Tx<'_>, key: IngestKey, told: Told) {
    let kept = Kept { body: key.body, at: tx.now, told };
    tx.state.answers.insert(key.scope, kept);
    tx.rows += 1;
}
