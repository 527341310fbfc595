//! The reference model as the suites see it: what it finds after a restart is its crash image.
//!
//! Never: part of a build without the suites.

use std::sync::Arc;

use super::MemoryStore;
use crate::commits::Commits;
use crate::conformance::{Backend, Stores};

impl Backend for Arc<MemoryStore> {
    fn stores(&self) -> Stores {
        Stores::of(self)
    }

    fn attach(&self, commits: Arc<dyn Commits>) {
        MemoryStore::attach(self, commits);
    }

    fn reopen(&mut self) {
        *self = self.crash_image();
    }
}
