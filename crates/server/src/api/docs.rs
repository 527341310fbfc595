//! The page that lists what is served.
//!
//! In: the table of routes. Out: HTML without a script, a style or anything else from elsewhere.
//! Never: say more than the table knows; what each operation takes and gives stands in
//! `docs/wire.md`.

use std::fmt::Write as _;

use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, header};

use super::methods::Served;

/// The page, made once.
pub(super) fn page(table: &[Served]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut rows = String::new();
    for Served { path, methods } in table {
        for method in methods {
            // Paths are literals of ours, without anything to escape.
            let _infallible = writeln!(rows, "<tr><td>{method}<td><code>{path}</code>");
        }
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Peyk {version}</title>\n\
         <h1>Peyk {version}</h1>\n\
         <p>What this server serves. What each operation takes and gives stands in \
         <code>docs/wire.md</code> of its source, what its errors mean in \
         <code>docs/problems</code>. Requests below <code>/api/v1</code>, health apart, carry \
         <code>authorization: Bearer</code> and a token, which <code>peyk token</code> makes.</p>\n\
         <table>\n<tr><th>Method<th>Path\n{rows}</table>\n</html>\n"
    )
}

/// `GET /docs`
pub(super) fn answer(page: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'"),
    ];
    (StatusCode::OK, headers, page).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_listed() {
        let page = page(&[
            Served { path: "/a/{b}", methods: vec!["GET", "PUT"] },
            Served { path: "/c", methods: vec!["POST"] },
        ]);
        for row in ["GET<td><code>/a/{b}<", "PUT<td><code>/a/{b}<", "POST<td><code>/c<"] {
            assert!(page.contains(row), "{row} in {page}");
        }
    }
}
