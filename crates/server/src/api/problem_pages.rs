//! The pages that explain error codes, served as they are in the source.
//!
//! Never: a page of its own; these are the files in `docs/problems`.

use axum::response::{IntoResponse as _, Response};
use http::header;

use super::operation::{Operation, Token};
use super::shapes::Text;
use crate::http::extract::Place;
use crate::http::problem::Problem;

/// The media type of a page.
const PLAIN: &str = "text/plain; charset=utf-8";

/// A page's name and its text.
type Page = (&'static str, &'static str);

macro_rules! pages {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"), "/../../docs/problems/", $name, ".md"
        )))),*]
    };
}

/// All pages, in the order of their statuses.
pub(super) const PAGES: [Page; 25] = pages![
    "bad_token",
    "endpoint_disabled",
    "generic_error",
    "invalid_range",
    "invalid_scheme",
    "limit_reached",
    "missing_payload",
    "authentication_failed",
    "insufficient_access",
    "not_found",
    "method_not_allowed",
    "request_timeout",
    "conflict",
    "endpoint_deleted",
    "event_type_exists",
    "in_flight",
    "not_dead",
    "payload_too_large",
    "uri_too_long",
    "validation",
    "rate_limited",
    "headers_too_large",
    "internal",
    "overloaded",
    "storage_unavailable",
];

/// Status and sentence: the line below the title.
pub(super) fn summary(text: &'static str) -> &'static str {
    let line = text.lines().find_map(|line| line.strip_prefix("Status: "));
    line.unwrap_or_default()
}

pub(super) const READ: Operation = Operation::new("v1.document.problem", "Explains an error code.")
    .token(Token::None)
    .gives_as::<Text>(200, PLAIN);

/// The codes of errors with this status.
pub(super) fn codes(status: u16) -> Vec<String> {
    let start = format!("{status}. ");
    let pages = PAGES.iter().filter(|(_, text)| summary(text).starts_with(&start));
    pages.map(|(name, text)| code_of(name, text)).collect()
}

/// The status of errors with this code.
pub(super) fn status_of(code: &str) -> Option<u16> {
    let page = PAGES.iter().find(|(name, text)| code_of(name, text) == code);
    page.and_then(|(_, text)| summary(text).split_once(". ")?.0.parse().ok())
}

/// The code that a page is about: its title, since one code has a space in it.
fn code_of(name: &str, text: &str) -> String {
    text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(name).to_owned()
}

/// `GET /docs/problems/{code}`
pub(super) async fn read(Place(code): Place<String>) -> Result<Response, Problem> {
    // One code has a space in it.
    let name = code.replace(' ', "_");
    let page = PAGES.iter().find(|(known, _)| *known == name);
    let (_, text) = page.ok_or_else(|| Problem::not_found("There is no page of this name"))?;
    Ok(([(header::CONTENT_TYPE, PLAIN)], *text).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_served_and_has_a_summary() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/problems");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
        let mut names: Vec<_> = files.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name != "README.md");
        let mut served: Vec<_> = PAGES.iter().map(|(name, _)| format!("{name}.md")).collect();
        names.sort();
        served.sort();
        assert_eq!(served, names);
        for (name, text) in PAGES {
            let summary = summary(text);
            assert!(summary.starts_with(['4', '5']) && summary.ends_with('.'), "{name}: {summary}");
        }
    }
}
