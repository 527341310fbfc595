//! Groups A and G: what is made of the answer.

use std::time::Duration;

use bytes::Bytes;
use domain::attempt::{Cut, FailureKind};
use resilience::RetryAfter;

use super::support::*;
use crate::transport::dns::StaticResolver;
use crate::transport::http1::HttpTransport;
use crate::transport::{Outbound, Transport};

/// A peer that says `head`, then `more` again and again.
async fn dripping(head: &'static str, more: &'static str) -> Peer {
    Peer::start(move |mut caller| async move {
        caller.request().await?;
        caller.say(head.as_bytes()).await?;
        caller.drip(more.as_bytes()).await
    })
    .await
}

#[tokio::test]
async fn hr_01_a_dripping_body_is_cut_and_the_status_stands() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    for (case, head, more, text) in [
        ("a", chunked, "1\r\nx\r\n", "x"),
        ("b", "HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n", "x", "x"),
        ("d", chunked, "0", ""),
        ("d, overflowing", chunked, "f", ""),
        ("to the end of the connection", "HTTP/1.1 200 OK\r\n\r\n", "x", "x"),
    ] {
        let peer = dripping(head, more).await;
        let transport = transport();
        let start = tokio::time::Instant::now();
        let sent = transport.send(Outbound { deadline: SHORT, ..outbound(&peer.url()) }).await;
        assert!(start.elapsed() < LONG);
        let answer = answer(&sent);
        assert_eq!(answer.status, 200, "{case}");
        // A chunk size that overflows before the deadline is a broken body.
        let cut = if case == "d, overflowing" { Cut::Reset } else { Cut::Deadline };
        assert_eq!(answer.cut, Some(cut), "{case}");
        assert!(answer.body.starts_with(text.as_bytes()), "{case}");
        assert_eq!(transport.idle(), 0);
    }
}

#[tokio::test]
async fn hr_01_c_a_dripping_head_is_a_timeout() {
    let peer = dripping("HTTP/1.1 200 OK\r\n", "x: y\r\n").await;
    failure(&send_briefly(&transport(), &peer.url()).await, FailureKind::Timeout);
    let peer = dripping("HTTP/1.1 200 OK\r\nx: ", "y").await;
    failure(&send_briefly(&transport(), &peer.url()).await, FailureKind::Timeout);
    // Two of them would be no beginning of an answer.
    let peer = Peer::start(|mut caller| async move {
        caller.request().await?;
        caller.say(b"H").await?;
        caller.hang().await
    })
    .await;
    failure(&send_briefly(&transport(), &peer.url()).await, FailureKind::Timeout);
}

#[tokio::test]
async fn hr_01_e_endless_extensions_and_trailers_are_cut() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    for (start, more) in [("1;", "e"), ("1\r\nx\r\n0\r\n", "t: v\r\n"), ("1\r\nx\r\n0\r\nt: ", "v")]
    {
        for times in [1, 10_000] {
            let peer = Peer::start(move |mut caller| async move {
                caller.request().await?;
                caller.say(head.as_bytes()).await?;
                caller.say(start.as_bytes()).await?;
                caller.drip(more.repeat(times).as_bytes()).await
            })
            .await;
            let request = Outbound { deadline: SHORT, ..outbound(&peer.url()) };
            let sent = transport().send(request).await;
            let answer = answer(&sent);
            assert_eq!(answer.status, 200);
            assert!(matches!(answer.cut, Some(Cut::Deadline | Cut::Reset)), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_cut_and_the_status_stands() {
    let peer = Peer::start(|mut caller| async move {
        caller.request().await?;
        caller.say(b"HTTP/1.1 201 Created\r\ncontent-length: 10\r\n\r\nhalf").await
    })
    .await;
    let sent = send(&transport(), &peer.url()).await;
    let answer = answer(&sent);
    assert_eq!((answer.status, answer.cut), (201, Some(Cut::Reset)));
    assert_eq!(&answer.body[..], b"half");
}

#[tokio::test]
async fn hr_03_a_compressed_bomb_stays_packed_and_bounded() {
    let head = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 1000000\r\n\r\n";
    let mut bomb = head.as_bytes().to_vec();
    let body: Vec<u8> = [0x1f, 0x8b, 8, 0].into_iter().cycle().take(1_000_000).collect();
    bomb.extend_from_slice(&body);
    let peer = Peer::answering(bomb).await;
    let transport = transport();
    let sent = send(&transport, &peer.url()).await;
    let answer = answer(&sent);
    assert_eq!((answer.status, answer.cut), (200, Some(Cut::Cap)));
    assert!(answer.body.len() <= 16 << 10 && body.starts_with(&answer.body));
    assert_eq!(peer.hits()[0].header("accept-encoding"), None);
    assert_eq!(transport.idle(), 0, "an unread connection is not kept");
}

#[tokio::test]
async fn bodies_at_the_bounds() {
    for (bytes, kept, cut, idle) in [
        (16 << 10, 16 << 10, None, 1),
        ((16 << 10) + 1, 16 << 10, Some(Cut::Cap), 1),
        (64 << 10, 16 << 10, Some(Cut::Cap), 1),
        (1 << 20, 16 << 10, Some(Cut::Cap), 0),
    ] {
        let mut text = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n").into_bytes();
        text.resize(text.len() + bytes, b'x');
        let peer = Peer::answering(text).await;
        let transport = transport();
        let sent = send(&transport, &peer.url()).await;
        let answer = answer(&sent);
        assert_eq!((answer.body.len(), answer.cut, transport.idle()), (kept, cut, idle), "{bytes}");
    }
}

#[tokio::test]
async fn hr_04_what_follows_an_answer_never_answers_the_next_request() {
    let leftover = "HTTP/1.1 500 Old\r\ncontent-length: 9\r\n\r\nleftovers";
    let padding = " ".repeat(500 - leftover.len());
    for text in [
        "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n12345".to_owned(),
        "HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n".to_owned(),
        "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok{leftover}{padding}"),
        format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n{leftover}"),
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{leftover}"),
    ] {
        let clean = !text.contains("12345") && !text.contains("leftovers");
        let expected: u16 = text[9..12].parse().unwrap();
        let peer = Peer::answering(text).await;
        let transport = transport();
        for n in 1..=3 {
            let sent = send(&transport, &peer.url()).await;
            assert_eq!((status(&sent), sent.resent), (expected, false));
            assert_eq!(peer.hits().len(), n);
        }
        assert_eq!(peer.accepted(), if clean { 1 } else { 3 });
    }
}

#[tokio::test]
async fn hr_04_leftovers_that_come_later_end_the_idle_connection() {
    let peer = Peer::start(|mut caller| async move {
        caller.request().await?;
        caller.say(OK).await?;
        if caller.index == 0 {
            caller.say(b"HTTP/1.1 500 Old\r\ncontent-length: 0\r\n\r\n").await?;
        }
        caller.always(OK).await
    })
    .await;
    let transport = transport();
    assert_eq!(status(&send(&transport, &peer.url()).await), 200);
    let closed = async {
        // Until the leftovers have arrived; then looking at the connection ends it.
        while transport.idle() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, closed).await.unwrap();
    assert_eq!(status(&send(&transport, &peer.url()).await), 200);
    assert_eq!(peer.accepted(), 2);
}

#[tokio::test]
async fn hr_05_any_bytes_may_stand_in_an_answer() {
    let odd: [&[u8]; 6] =
        [b"\xff\xfe\xfd", b"\xe2\x82", b"\0", b"caf\xe9", b"\xfe\xffh\0i", b"{\"a\":\"\\u0000\"}"];
    for bytes in odd {
        let mut text = b"HTTP/1.1 200 ".to_vec();
        text.extend_from_slice(bytes);
        text.extend_from_slice(b"\r\nx-odd: ");
        text.extend_from_slice(bytes);
        text.extend_from_slice(format!("\r\ncontent-length: {}\r\n\r\n", bytes.len()).as_bytes());
        text.extend_from_slice(bytes);
        let peer = Peer::answering(text).await;
        let sent = send(&transport(), &peer.url()).await;
        let answer = answer(&sent);
        assert_eq!((answer.status, &answer.body[..], answer.cut), (200, bytes, None));
        assert_eq!(peer.hits().len(), 1);
    }
}

#[tokio::test]
async fn hr_06_any_2xx_stands_whatever_its_body() {
    for code in [200, 201, 202, 204, 205, 206, 299] {
        for (kind, body) in [("text/plain", ""), ("text/plain", "ok"), ("application/json", "{\"a")]
        {
            let body = if code == 204 { "" } else { body };
            let text = format!(
                "HTTP/1.1 {code} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            let peer = Peer::answering(text).await;
            let sent = send(&transport(), &peer.url()).await;
            assert_eq!((status(&sent), &answer(&sent).body[..]), (code, body.as_bytes()));
            assert_eq!(peer.hits().len(), 1);
        }
    }
}

#[tokio::test]
async fn hr_10_the_bound_on_answers_is_none_on_requests() {
    let peer = Peer::answering(OK).await;
    let mut options = options(open_guard(), StaticResolver::new());
    (options.read_bytes_max, options.keep_bytes_max) = (1 << 10, 1 << 10);
    let body = Bytes::from(vec![b'x'; 64 << 10]);
    let request = Outbound { body: body.clone(), ..outbound(&peer.url()) };
    assert_eq!(status(&HttpTransport::new(options).send(request).await), 200);
    assert!(peer.hits()[0].body == body);
}

#[tokio::test]
async fn pl_01_an_empty_body_has_a_length() {
    let peer = Peer::answering(OK).await;
    let request = Outbound { body: Bytes::new(), ..outbound(&peer.url()) };
    assert_eq!(status(&transport().send(request).await), 200);
    assert_eq!(peer.hits()[0].header("content-length"), Some("0"));
}

#[tokio::test]
async fn ra_all_lines_are_read() {
    let wait = |secs| RetryAfter::Wait(Duration::from_secs(secs));
    for (lines, expected) in [
        ("", RetryAfter::Absent),
        ("Retry-After: 120\r\n", wait(120)),
        ("retry-after: 5\r\nRETRY-AFTER: 60\r\n", wait(60)),
        ("Retry-After: 60\r\nRetry-After: soon\r\n", wait(60)),
        ("Retry-After: -5\r\n", RetryAfter::Unusable),
        ("Retry-After: \u{221e}\r\n", RetryAfter::Unusable),
        // Two minutes after the time that the clock shows.
        ("Retry-After: Fri, 15 Jan 2027 08:02:00 GMT\r\n", wait(120)),
        ("Retry-After: Friday, 15-Jan-27 08:02:00 GMT\r\n", wait(120)),
        ("Retry-After: Fri Jan 15 08:02:00 2027\r\n", wait(120)),
    ] {
        let peer =
            Peer::answering(format!("HTTP/1.1 503 No\r\n{lines}content-length: 0\r\n\r\n")).await;
        let sent = send(&transport(), &peer.url()).await;
        assert_eq!(answer(&sent).retry_after, expected, "{lines}");
    }
}

#[tokio::test]
async fn what_is_not_http_is_a_reset() {
    for text in
        ["SSH-2.0-OpenSSH_9.9\r\n", "HTTP/1.1 abc OK\r\n\r\n", "HTTP/2 200\r\n\r\n", "<html>\r\n"]
    {
        let peer = Peer::answering(text).await;
        let sent = send(&transport(), &peer.url()).await;
        let text = &failure(&sent, FailureKind::Reset).text;
        assert_eq!(text, "the answer is not HTTP/1.1");
    }
}

#[tokio::test]
async fn odd_headers_do_not_hide_a_status() {
    for line in ["no colon", "space : x", " folded", "x: a\r\n b", "b\u{e4}d: x", ": empty"] {
        let text = format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx: y\r\n{line}\r\n\r\n");
        let peer = Peer::answering(text).await;
        assert_eq!(status(&send(&transport(), &peer.url()).await), 200, "{line}");
    }
}

#[tokio::test]
async fn a_head_is_bounded() {
    for lines in ["x: y\r\n".repeat(101), format!("x: {}\r\n", "y".repeat(70_000))] {
        let peer = Peer::answering(format!("HTTP/1.1 200 OK\r\n{lines}content-length: 0\r\n\r\n"));
        let sent = send(&transport(), &peer.await.url()).await;
        let text = &failure(&sent, FailureKind::Reset).text;
        assert_eq!(text, "the headers of the answer are too many or too long");
    }
}

#[tokio::test]
async fn an_answer_before_the_body_was_read_counts_and_its_connection_does_not() {
    let peer = Peer::start(|mut caller| async move {
        caller.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n").await?;
        // Nothing is ever read, and the connection stays open.
        std::future::pending().await
    })
    .await;
    let transport = transport();
    let body = Bytes::from(vec![b'x'; 64 << 20]);
    let sent = transport.send(Outbound { body, ..outbound(&peer.url()) }).await;
    assert_eq!((status(&sent), transport.idle()), (413, 0));
}
