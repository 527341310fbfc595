//! Answers after a commit: from the writer's thread to everybody who waits, over one task.
//!
//! Waking a task from a thread outside the runtime costs far more than from a task inside it, so a
//! batch of answers crosses over as one message.
//! Never: answer before the commit; the writer hands answers over after it.

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::door::{Answer, Finish};
use crate::StoreError;
use crate::inbox::Accepted;
use crate::ledger::Recorded;

/// So few answers are given straight from the writer's thread.
const FEW: usize = 2;

type Batch = (Vec<Waiting>, Option<StoreError>);

/// An answer that waits for the commit.
pub(super) enum Waiting {
    Accept(Answer<Accepted>, Result<Accepted, StoreError>),
    Record(Answer<Vec<Recorded>>, Result<Vec<Recorded>, StoreError>),
    Change(Finish),
}

impl Waiting {
    /// Answers, with `fault` in place of what was to be said if there is one.
    fn answer(self, fault: Option<&StoreError>) {
        match self {
            Self::Accept(caller, made) => {
                drop(caller.send(fault.map_or(made, |fault| Err(fault.clone()))));
            }
            Self::Record(caller, made) => {
                drop(caller.send(fault.map_or(made, |fault| Err(fault.clone()))));
            }
            Self::Change(finish) => finish(fault),
        }
    }
}

/// The way back to the callers.
pub(super) struct Answers(Option<UnboundedSender<Batch>>);

impl Answers {
    /// Over a task of the current runtime; without one, straight from the writer's thread.
    pub(super) fn new() -> Self {
        Self(Handle::try_current().ok().map(|runtime| {
            let (sender, batches) = unbounded_channel();
            runtime.spawn(give_all(batches));
            sender
        }))
    }

    /// Answers everybody of one batch.
    pub(super) fn give(&self, waiting: Vec<Waiting>, fault: Option<StoreError>) {
        let batch = match &self.0 {
            Some(task) if waiting.len() > FEW => match task.send((waiting, fault)) {
                Ok(()) => return,
                // The runtime is gone.
                Err(unsent) => unsent.0,
            },
            _ => (waiting, fault),
        };
        give(batch);
    }
}

async fn give_all(mut batches: UnboundedReceiver<Batch>) {
    while let Some(batch) = batches.recv().await {
        give(batch);
    }
}

fn give((waiting, fault): Batch) {
    for waiting in waiting {
        waiting.answer(fault.as_ref());
    }
}
