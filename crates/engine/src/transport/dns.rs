//! Names to addresses: the trait, and a fixed table that implements it.
//!
//! In: a host name. Out: all its addresses, in the order in which to try them, or why it has none.
//! Never: judge addresses; the guard does, on what is dialled.

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

pub mod cache;
pub mod system;

/// Why a name has no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolveError {
    /// The name does not exist, has no address, or its servers fail: a fault of the name.
    Unresolved(String),
    /// No name can be resolved from here: a fault of ours.
    Broken(String),
}

/// A lookup under way.
pub type Resolving = Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, ResolveError>> + Send>>;

/// Resolves host names.
pub trait Resolve: Send + Sync {
    /// All addresses of `name`; an empty list counts as [`ResolveError::Unresolved`].
    fn resolve(&self, name: String) -> Resolving;
}

/// A fixed table of names, for tests.
#[derive(Debug, Default)]
pub struct StaticResolver {
    answers: HashMap<String, Result<Vec<IpAddr>, ResolveError>>,
    asked: Mutex<Vec<String>>,
}

impl StaticResolver {
    /// Knows no name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also knows the addresses of `name`.
    #[must_use]
    pub fn with(mut self, name: &str, addresses: &[IpAddr]) -> Self {
        self.answers.insert(name.to_owned(), Ok(addresses.to_vec()));
        self
    }

    /// Also fails for `name`.
    #[must_use]
    pub fn failing(mut self, name: &str, error: ResolveError) -> Self {
        self.answers.insert(name.to_owned(), Err(error));
        self
    }

    /// The names it was asked for.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Resolve for StaticResolver {
    fn resolve(&self, name: String) -> Resolving {
        let unknown = || Err(ResolveError::Unresolved("the host name does not exist".to_owned()));
        let answer = self.answers.get(&name).cloned().unwrap_or_else(unknown);
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        Box::pin(std::future::ready(answer))
    }
}
