//! What is served, for programs and for people: the OpenAPI document and a page made of it.
//!
//! Both are made when they are first asked for, and kept.
//! Never: fetch anything from elsewhere, or run a script.

use std::sync::{Arc, OnceLock};

use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{StatusCode, header};

use super::document::document;
use super::methods::Served;
use super::operation::{Operation, Token};
use super::reference::page;
use super::shapes::{Object, Text};
use crate::http::problem::JSON;

const HTML: &str = "text/html; charset=utf-8";

pub(super) const DOCUMENT: Operation =
    Operation::new("v1.document.openapi", "Describes what is served, as OpenAPI 3.1.")
        .token(Token::None)
        .gives::<Object>(200);
pub(super) const PAGE: Operation =
    Operation::new("v1.document.reference", "Describes what is served, for people.")
        .token(Token::None)
        .gives_as::<Text>(200, HTML);

/// The document and the page.
#[derive(Clone, Default)]
pub(super) struct Docs(Arc<Inner>);

#[derive(Default)]
struct Inner {
    table: OnceLock<Vec<Served>>,
    document: OnceLock<Bytes>,
    page: OnceLock<Bytes>,
}

impl Docs {
    /// Of these routes, once all of them are known.
    pub(super) fn of(&self, table: Vec<Served>) {
        let _set_once = self.0.table.set(table);
    }

    /// The document as it is served, and kept in `docs/openapi.json`.
    pub(super) fn text(&self) -> String {
        let table = self.0.table.get().map(Vec::as_slice).unwrap_or_default();
        format!("{:#}\n", document(table))
    }

    /// `GET /api/v1/openapi.json`
    pub(super) fn document(&self) -> Response {
        let text = self.0.document.get_or_init(|| self.text().into());
        (StatusCode::OK, [JSON], text.clone()).into_response()
    }

    /// `GET /docs`
    pub(super) fn page(&self) -> Response {
        let text = self.0.page.get_or_init(|| {
            let table = self.0.table.get().map(Vec::as_slice).unwrap_or_default();
            page(&document(table)).into()
        });
        let headers = [
            (header::CONTENT_TYPE, HTML),
            (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'"),
        ];
        (StatusCode::OK, headers, text.clone()).into_response()
    }
}
