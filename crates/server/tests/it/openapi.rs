//! The server describes itself: a document for programs, a page for people.
//!
//! Never: compare the document with the routes, which the server's own tests do.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::Server;

const KEPT: &str = include_str!("../../../../docs/openapi.json");

#[tokio::test]
async fn the_document_is_served_as_it_is_kept() {
    let server = Server::start().await;
    let answer = server.send("GET", "/api/v1/openapi.json", &[("authorization", "")], "").await;
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!((answer.status, answer.text().as_str()), (200, KEPT));
    let wrong = server.send("POST", "/api/v1/openapi.json", &[], "").await;
    assert_eq!(wrong.expect(405)["code"], "method_not_allowed");
}

#[tokio::test]
async fn the_page_shows_every_operation_and_its_links_lead_somewhere() {
    let server = Server::start().await;
    let page = server.send("GET", "/docs", &[("authorization", "")], "").await.text();
    let document: Value = serde_json::from_str(KEPT).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        assert!(page.contains(&format!("<code>{path}</code>")), "{path}");
        for operation in item.as_object().unwrap().values() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(page.contains(&format!("<section id=\"{name}\">")), "{name}");
        }
    }
    let quoted = |start: &str| -> BTreeSet<_> {
        page.split(start).skip(1).filter_map(|rest| rest.split('"').next()).collect()
    };
    let (targets, links) = (quoted("id=\""), quoted("href=\"#"));
    let lost: Vec<_> = links.difference(&targets).collect();
    assert!(lost.is_empty() && links.len() > 120, "{lost:?}");
}
