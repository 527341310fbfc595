//! The server says what it serves.
//!
//! Never: a link or an asset that leads elsewhere.

use crate::support::Server;

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
    for row in ["POST<td><code>/api/v1/app/{app}/msg<", "GET<td><code>/metrics<"] {
        assert!(text.contains(row), "{text}");
    }
    assert!(!text.contains("http"), "nothing from elsewhere");
    let wrong = server.send("POST", "/docs", &[], "").await;
    assert_eq!(wrong.expect(405)["code"], "method_not_allowed");
}
