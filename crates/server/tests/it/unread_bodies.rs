//! What is refused before its body is read does not cost the client its next request.
//!
//! Never: a connection that ends after an answer that did not say so.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::support::{PATIENCE, Server};

const PING: &str = "GET /api/v1/health/ping HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a head; once the server has had the time to act on it, the rest.
async fn in_two_parts(server: &Server, head: &str, rest: &str) -> String {
    let mut stream = connect(server);
    stream.write_all(head.as_bytes()).unwrap();
    for _ in 0..5 {
        server.get("/app/nobody").await.expect(404);
    }
    // A server that has closed its end may refuse this; what it said before is what counts.
    let _closed = stream.write_all(rest.as_bytes());
    let mut said = String::new();
    let _reset = stream.read_to_string(&mut said);
    said
}

#[tokio::test]
async fn a_body_that_comes_after_the_refusal_is_taken_and_the_connection_goes_on() {
    let server = Server::start().await;
    let token = format!("authorization: Bearer {}", server.token);
    for (line, token, status) in [
        ("PUT /api/v1/nothing/here", &token[..], "404"),
        ("PUT /api/v1/app", &token[..], "405"),
        ("POST /api/v1/app", "x-no: token", "401"),
        ("POST /api/v1/auth/logout", &token[..], "400"),
    ] {
        let head = format!("{line} HTTP/1.1\r\nhost: x\r\n{token}\r\ncontent-length: 2\r\n\r\n");
        let said = in_two_parts(&server, &head, &format!("{{}}{PING}")).await;
        assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{line}: {said}");
        assert!(said.contains("HTTP/1.1 204"), "{line}: {said}");
    }
}

#[tokio::test]
async fn a_body_without_a_length_that_was_read_does_not_end_the_connection() {
    let server = Server::start().await;
    let head = format!(
        "POST /api/v1/app HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         transfer-encoding: chunked\r\n\r\n",
        server.token
    );
    let rest = format!("c\r\n{{\"name\":\"x\"}}\r\n0\r\n\r\n{PING}");
    let said = in_two_parts(&server, &head, &rest).await;
    assert!(said.starts_with("HTTP/1.1 201") && said.contains("HTTP/1.1 204"), "{said}");
}

#[tokio::test]
async fn a_body_that_is_not_waited_for_ends_the_connection_and_the_answer_says_so() {
    let server = Server::start().await;
    for framing in [
        "content-length: 65537",
        "transfer-encoding: chunked",
        "content-length: 2\r\nexpect: 100-continue",
        // It never comes.
        "content-length: 2",
    ] {
        let head = format!("POST /api/v1/app HTTP/1.1\r\nhost: x\r\n{framing}\r\n\r\n");
        let said = in_two_parts(&server, &head, "").await;
        assert!(said.starts_with("HTTP/1.1 401"), "{framing}: {said}");
        assert!(said.contains("connection: close\r\n"), "{framing}: {said}");
    }
}
