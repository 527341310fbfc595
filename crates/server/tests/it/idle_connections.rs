//! Connections that do nothing, or nearly nothing, cost others nothing.
//!
//! Never: a wait for a time to pass; the server's own bounds end what is waited for.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use crate::support::{PATIENCE, Server};

/// Half of this many connections are taken at once.
const FILES: &str = "ulimit -n 240";
const CONNECTIONS: usize = 120;

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// One request on a connection that is kept; whether it was answered.
fn ping(stream: &mut TcpStream) -> bool {
    let request = b"GET /api/v1/health/ping HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut some = [0; 1_024];
        let begun = if answer.is_empty() { stream.write_all(request) } else { Ok(()) };
        match begun.and_then(|()| stream.read(&mut some)) {
            Ok(0) | Err(_) => return false,
            Ok(length) => answer.extend_from_slice(&some[..length]),
        }
    }
    answer.starts_with(b"HTTP/1.1 204")
}

/// Whether the server has closed it, or does so now.
fn is_open(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let read = stream.read(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    matches!(read, Err(fault) if fault.kind() == ErrorKind::WouldBlock)
}

#[tokio::test]
async fn new_connections_do_not_wait_for_those_that_idle() {
    let server = Server::after(FILES, &[]).await;
    // Some have been used, others never.
    let mut idle: Vec<_> = (0..CONNECTIONS).map(|_| connect(&server)).collect();
    for stream in idle.iter_mut().step_by(2) {
        assert!(ping(stream));
    }
    let mut later: Vec<_> = (0..2 * CONNECTIONS).map(|_| connect(&server)).collect();
    for stream in later.iter_mut().rev().take(CONNECTIONS / 2) {
        assert!(ping(stream), "a new connection is served");
    }
    let open = idle.iter_mut().filter_map(|stream| is_open(stream).then_some(())).count();
    assert!(open < CONNECTIONS / 4, "the longest idle have made room, {open} have not");
}

#[tokio::test]
async fn a_request_in_progress_is_not_ended_to_make_room() {
    let server = Server::after(FILES, &[]).await;
    let mut slow = connect(&server);
    let head = format!(
        "POST /api/v1/app HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-length: 12\r\nexpect: 100-continue\r\n\r\n",
        server.token
    );
    slow.write_all(head.as_bytes()).unwrap();
    let mut go_on = [0; 25];
    slow.read_exact(&mut go_on).unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    let mut others: Vec<_> = (0..2 * CONNECTIONS).map(|_| connect(&server)).collect();
    for stream in others.iter_mut().rev().take(10) {
        assert!(ping(stream));
    }
    slow.write_all(br#"{"name":"x"}"#).unwrap();
    let mut answer = [0; 15];
    slow.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 201 Cr");
}

#[tokio::test]
async fn a_head_that_does_not_end_is_refused() {
    let server = Server::start().await;
    let mut slow = connect(&server);
    let mut idle = connect(&server);
    assert!(ping(&mut idle));
    slow.write_all(b"GET /api/v1/app HTTP/1.1\r\nhost: x\r\n").unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
    assert!(answer.contains("\"code\":\"request_timeout\""), "{answer}");
    assert!(ping(&mut idle), "one that idles is kept");
}
