//! A breaker in the hands of an operator.
//!
//! Never: make calls.

use std::fmt;
use std::sync::Arc;

use super::core::{BreakerView, Core};
use super::observer::Cause;
use crate::breaker::{Forced, State};

/// Forces and resets a breaker, whatever its rules say.
#[derive(Clone)]
pub struct BreakerHandle {
    core: Arc<Core>,
}

impl BreakerHandle {
    pub(super) const fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Nothing goes through until [`BreakerHandle::auto`].
    pub fn force_open(&self) {
        self.core.force(Some(Forced::Open));
    }

    /// Everything goes through until [`BreakerHandle::auto`].
    pub fn force_closed(&self) {
        self.core.force(Some(Forced::Closed));
    }

    /// Its rules decide again, from where they were; an open time may meanwhile have run out.
    pub fn auto(&self) {
        self.core.force(None);
    }

    /// Closed, unforced, and with nothing counted; what is out counts no more.
    pub fn reset(&self) {
        self.core.reset(Cause::ByHand);
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.core.state()
    }

    /// Everything about it.
    pub fn snapshot(&self) -> BreakerView {
        self.core.view()
    }
}

impl fmt::Debug for BreakerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BreakerHandle").field(&self.core.name()).finish()
    }
}
