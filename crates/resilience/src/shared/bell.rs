//! A wake-up call for one task, kept until it is heard.
//!
//! However often it was rung meanwhile, it is heard once.
//! Never: carry a message, hold the lock while a task is woken.

use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A bell that one task listens to.
#[derive(Debug, Default)]
pub(super) struct Bell(Mutex<Ringing>);

#[derive(Debug, Default)]
struct Ringing {
    rung: bool,
    listener: Option<Waker>,
}

impl Bell {
    /// Wakes the listener, now or when it next listens.
    pub(super) fn ring(&self) {
        let listener = {
            let mut ringing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            ringing.rung = true;
            ringing.listener.take()
        };
        if let Some(listener) = listener {
            listener.wake();
        }
    }

    /// Ready if it was rung since it was last heard.
    pub(super) fn poll_heard(&self, context: &Context<'_>) -> Poll<()> {
        let mut ringing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut ringing.rung) {
            return Poll::Ready(());
        }
        ringing.listener = Some(context.waker().clone());
        Poll::Pending
    }
}
