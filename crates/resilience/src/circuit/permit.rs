//! Leave for one call, that gives itself back.
//!
//! Never: count twice; be lost with a task that is dropped.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::core::{Core, Pass};
use crate::classify::Vote;

enum Owner<'a> {
    Borrowed(&'a Core),
    Owned(Arc<Core>),
}

/// Leave for one call. Tell it how the call ended; dropped untold, as when the task is cancelled or
/// panics, it says nothing about the receiver and frees its place.
#[must_use = "a permit that is dropped at once guards no call"]
pub struct Permit<'a> {
    owner: Owner<'a>,
    pass: Pass,
    told: bool,
}

impl<'a> Permit<'a> {
    pub(super) const fn borrowed(core: &'a Core, pass: Pass) -> Self {
        Self { owner: Owner::Borrowed(core), pass, told: false }
    }

    /// The call succeeded.
    pub fn success(self) {
        self.record(Vote::Success);
    }

    /// The call failed, with this error for whoever watches.
    pub fn failure(self, error: &(dyn Error + 'static)) {
        self.end(Vote::Failure, Some(error));
    }

    /// The call ended with this vote.
    pub fn record(self, vote: Vote) {
        self.end(vote, None);
    }

    /// Whether this call decides if a half-open breaker closes.
    pub const fn is_probe(&self) -> bool {
        self.pass.permit.is_probe()
    }

    /// The generation in which the call was begun.
    pub const fn generation(&self) -> u64 {
        self.pass.permit.generation()
    }

    fn end(mut self, vote: Vote, error: Option<&(dyn Error + 'static)>) {
        self.told = true;
        self.core().record(self.pass, vote, error);
    }

    fn core(&self) -> &Core {
        match &self.owner {
            Owner::Borrowed(core) => core,
            Owner::Owned(core) => core,
        }
    }
}

impl Permit<'static> {
    pub(super) const fn owned(core: Arc<Core>, pass: Pass) -> Self {
        Self { owner: Owner::Owned(core), pass, told: false }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if !self.told {
            self.core().record(self.pass, Vote::Ignore, None);
        }
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("breaker", &self.core().name())
            .field("generation", &self.generation())
            .field("is_probe", &self.is_probe())
            .finish()
    }
}
