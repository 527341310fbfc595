//! One breaker for many processes: the state is in a store, each process keeps a mirror of it.
//!
//! A store carries out whole steps of the state machine, each at once: never "read, think, write",
//! and never a lock around a call. Time is the store's own, so that clocks need not agree.
//! Never: fail a call because the store is down.

mod bell;
mod breaker;
mod builder;
#[cfg(feature = "conformance")]
pub mod conformance;
mod exchange;
mod inner;
mod memory;
mod mirror;
mod permit;
mod runs;
mod store;
mod watch;

pub use breaker::SharedBreaker;
pub use builder::SharedBuilder;
pub use inner::{Sharing, StoreFailure};
pub use memory::MemoryBreakerStore;
pub use permit::SharedPermit;
pub use runs::Runs;
pub use store::{
    Admit, BreakerStore, InstanceId, Report, SharedRules, StoreError, Transition, View,
};
pub use watch::{Changes, Watch};
