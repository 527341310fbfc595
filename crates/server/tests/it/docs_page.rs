//! The server says what it serves.
//!
//! Never: a link or an asset that leads elsewhere.

use std::collections::BTreeSet;

use crate::support::Server;

const PLAIN: &str = "text/plain; charset=utf-8";

#[tokio::test]
async fn the_root_leads_to_a_list_of_operations() {
    let server = Server::start().await;
    let root = server.send("GET", "/", &[("authorization", "")], "").await;
    assert_eq!((root.status, &root.headers["location"]), (307, &"/docs".parse().unwrap()));
    let page = server.send("GET", "/docs", &[("authorization", "")], "").await;
    assert_eq!(
        (page.status, page.headers["content-type"].to_str().unwrap()),
        (200, "text/html; charset=utf-8")
    );
    let text = page.text();
    for row in [
        "<h2>Message</h2>",
        "POST<td><a href=\"#v1.message.create\"><code>/api/v1/app/{app}/msg</code></a><td>Accepts a",
        "<code>/metrics</code>",
        "404<td><a href=\"/docs/problems/not_found\">not_found</a><td>There is no such thing",
    ] {
        assert!(text.contains(row), "{row} in {text}");
    }
    for elsewhere in ["href=\"http", "href=\"//", "url(", "<script", "<link", "src="] {
        assert!(!text.contains(elsewhere), "{elsewhere}");
    }
    let wrong = server.send("POST", "/docs", &[], "").await;
    assert_eq!(wrong.expect(405)["code"], "method_not_allowed");
}

#[tokio::test]
async fn every_error_is_explained() {
    let server = Server::start().await;
    let page = server.send("GET", "/docs", &[], "").await.text();
    let links = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let links: BTreeSet<_> = links.filter(|link| link.starts_with("/docs/problems/")).collect();
    assert!(links.len() > 20, "{links:?}");
    for link in links {
        let page = server.send("GET", link, &[("authorization", "")], "").await;
        assert_eq!((page.status, &page.headers["content-type"]), (200, &PLAIN.parse().unwrap()));
        assert!(page.text().contains("## What to do"), "{link}");
    }
    for code in ["insufficient%20access", "insufficient_access"] {
        let path = format!("/docs/problems/{code}");
        assert_eq!(server.send("GET", &path, &[], "").await.status, 200, "{code}");
    }
    let none = server.send("GET", "/docs/problems/none", &[], "").await;
    assert_eq!(none.expect(404)["code"], "not_found");
}
