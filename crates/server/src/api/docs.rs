//! The page that lists what is served and what errors mean.
//!
//! In: the table of routes, a sentence for each operation, the pages of problems. Out: HTML without
//! a script, or anything from elsewhere.
//! Never: say more than one sentence of an operation; what it takes and gives stands in
//! `docs/wire.md`.

use std::fmt::Write as _;

use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, header};

use super::methods::Served;
use super::operations::{GROUPS, Operation};
use super::problem_pages::{PAGES, summary};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
    table{border-collapse:collapse;width:100%}td{padding:.2rem .8rem .2rem 0;vertical-align:top;\
    border-top:1px solid #8884}td:first-child{width:4.5rem;font-weight:600}code{overflow-wrap:anywhere}\
    @media(prefers-color-scheme:dark){body{background:#151515;color:#ddd}a{color:#8bf}}";

/// The page, made once.
pub(super) fn page(table: &[Served]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    // All of it is literals of ours, without anything to escape.
    let mut body = String::new();
    for (resource, operations) in GROUPS {
        let served = operations.iter().filter(|operation| is_served(table, operation));
        let rows = served.map(|(method, path, sentence)| {
            format!("<tr><td>{method}<td><code>{path}</code><td>{sentence}\n")
        });
        let rows: String = rows.collect();
        let _infallible = writeln!(body, "<h2>{resource}</h2>\n<table>\n{rows}</table>");
    }
    let problems: String = PAGES
        .iter()
        .map(|(name, text)| {
            let (status, sentence) = summary(text).split_once(". ").unwrap_or_default();
            format!(
                "<tr><td>{status}<td><a href=\"/docs/problems/{name}\">{name}</a><td>{sentence}\n"
            )
        })
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Peyk {version}</title>\n<style>{STYLE}</style>\n\
         <h1>Peyk {version}</h1>\n\
         <p>What this server serves. What each operation takes and gives stands in \
         <code>docs/wire.md</code> of its source. Requests below <code>/api/v1</code>, health apart, \
         carry <code>authorization: Bearer</code> and a token, which <code>peyk token</code> makes.</p>\n\
         {body}<h2>Errors</h2>\n<p>Every error is JSON with a <code>code</code>, or with a list of \
         the fields that are wrong.</p>\n<table>\n{problems}</table>\n</html>\n"
    )
}

fn is_served(table: &[Served], (method, path, _): &Operation) -> bool {
    table.iter().any(|served| served.path == *path && served.methods.contains(method))
}

/// `GET /docs`
pub(super) fn answer(page: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'"),
    ];
    (StatusCode::OK, headers, page).into_response()
}
