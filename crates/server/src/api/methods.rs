//! The methods of a path, each with its handler and what is documented of it.
//!
//! Never: a method that is listed and not served, or the other way.

use std::sync::Arc;

use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter};

use super::operation::Operation;
use crate::state::Shared;

/// What is served under one path.
pub(super) struct Methods {
    router: MethodRouter<Arc<Shared>>,
    operations: Vec<(&'static str, Operation)>,
}

/// A path and the operations under it, by method.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) path: &'static str,
    pub(super) operations: Vec<(&'static str, Operation)>,
}

/// GET and nothing else yet; HEAD comes with it.
pub(super) fn get<H: Handler<T, Arc<Shared>>, T: 'static>(handler: H, is: Operation) -> Methods {
    none().with(MethodFilter::GET, ("GET", is), handler)
}

/// POST and nothing else yet.
pub(super) fn post<H: Handler<T, Arc<Shared>>, T: 'static>(handler: H, is: Operation) -> Methods {
    none().post(handler, is)
}

/// PUT and nothing else yet.
pub(super) fn put<H: Handler<T, Arc<Shared>>, T: 'static>(handler: H, is: Operation) -> Methods {
    none().put(handler, is)
}

/// DELETE and nothing else yet.
pub(super) fn delete<H: Handler<T, Arc<Shared>>, T: 'static>(handler: H, is: Operation) -> Methods {
    none().delete(handler, is)
}

fn none() -> Methods {
    Methods { router: MethodRouter::new(), operations: Vec::new() }
}

impl Methods {
    /// And POST.
    pub(super) fn post<H: Handler<T, Arc<Shared>>, T: 'static>(self, by: H, is: Operation) -> Self {
        self.with(MethodFilter::POST, ("POST", is), by)
    }

    /// And PUT.
    pub(super) fn put<H: Handler<T, Arc<Shared>>, T: 'static>(self, by: H, is: Operation) -> Self {
        self.with(MethodFilter::PUT, ("PUT", is), by)
    }

    /// And PATCH.
    pub(super) fn patch<H: Handler<T, Arc<Shared>>, T: 'static>(
        self,
        by: H,
        is: Operation,
    ) -> Self {
        self.with(MethodFilter::PATCH, ("PATCH", is), by)
    }

    /// And DELETE.
    pub(super) fn delete<H: Handler<T, Arc<Shared>>, T: 'static>(
        self,
        by: H,
        is: Operation,
    ) -> Self {
        self.with(MethodFilter::DELETE, ("DELETE", is), by)
    }

    fn with<H: Handler<T, Arc<Shared>>, T: 'static>(
        mut self,
        filter: MethodFilter,
        operation: (&'static str, Operation),
        handler: H,
    ) -> Self {
        self.operations.push(operation);
        Self { router: self.router.on(filter, handler), operations: self.operations }
    }

    /// For the router, and what is documented.
    pub(super) fn into_parts(self) -> (MethodRouter<Arc<Shared>>, Vec<(&'static str, Operation)>) {
        (self.router, self.operations)
    }
}
