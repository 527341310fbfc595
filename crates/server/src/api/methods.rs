//! The methods of a path, each with its handler, which can be listed.
//!
//! Never: a method that is listed and not served, or the other way.

use std::sync::Arc;

use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter};

use crate::state::Shared;

/// What is served under one path.
pub(super) struct Methods {
    router: MethodRouter<Arc<Shared>>,
    names: Vec<&'static str>,
}

/// A path and the methods that it takes.
pub(super) struct Served {
    pub(super) path: &'static str,
    pub(super) methods: Vec<&'static str>,
}

/// GET and nothing else yet; HEAD comes with it.
pub(super) fn get<H: Handler<T, Arc<Shared>>, T: 'static>(handler: H) -> Methods {
    none().with(MethodFilter::GET, "GET", handler)
}

/// POST and nothing else yet.
pub(super) fn post<H: Handler<T, Arc<Shared>>, T: 'static>(handler: H) -> Methods {
    none().post(handler)
}

/// PUT and nothing else yet.
pub(super) fn put<H: Handler<T, Arc<Shared>>, T: 'static>(handler: H) -> Methods {
    none().put(handler)
}

/// DELETE and nothing else yet.
pub(super) fn delete<H: Handler<T, Arc<Shared>>, T: 'static>(handler: H) -> Methods {
    none().delete(handler)
}

fn none() -> Methods {
    Methods { router: MethodRouter::new(), names: Vec::new() }
}

impl Methods {
    /// And POST.
    pub(super) fn post<H: Handler<T, Arc<Shared>>, T: 'static>(self, handler: H) -> Self {
        self.with(MethodFilter::POST, "POST", handler)
    }

    /// And PUT.
    pub(super) fn put<H: Handler<T, Arc<Shared>>, T: 'static>(self, handler: H) -> Self {
        self.with(MethodFilter::PUT, "PUT", handler)
    }

    /// And PATCH.
    pub(super) fn patch<H: Handler<T, Arc<Shared>>, T: 'static>(self, handler: H) -> Self {
        self.with(MethodFilter::PATCH, "PATCH", handler)
    }

    /// And DELETE.
    pub(super) fn delete<H: Handler<T, Arc<Shared>>, T: 'static>(self, handler: H) -> Self {
        self.with(MethodFilter::DELETE, "DELETE", handler)
    }

    fn with<H: Handler<T, Arc<Shared>>, T: 'static>(
        mut self,
        filter: MethodFilter,
        name: &'static str,
        handler: H,
    ) -> Self {
        self.names.push(name);
        Self { router: self.router.on(filter, handler), names: self.names }
    }

    /// For the router, and the names.
    pub(super) fn into_parts(self) -> (MethodRouter<Arc<Shared>>, Vec<&'static str>) {
        (self.router, self.names)
    }
}
