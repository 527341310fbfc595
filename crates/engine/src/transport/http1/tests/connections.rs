//! Group F: connections that are kept, die, stall, or bring more than one head.

use bytes::Bytes;
use domain::attempt::FailureKind;
use tokio::io::AsyncWriteExt;

use super::support::*;
use crate::transport::http1::HttpTransport;
use crate::transport::{Outbound, Transport};

/// Answers as many requests as there are answers, then reads one more and closes.
async fn answer_then_close(mut caller: Caller, answers: usize) -> Option<()> {
    for _ in 0..answers {
        caller.request().await?;
        caller.say(OK).await?;
    }
    caller.request().await?;
    caller.stream.shutdown().await.ok()
}

#[tokio::test]
async fn connections_are_kept_and_used_again() {
    let peer = Peer::answering(OK).await;
    let transport = transport();
    for _ in 0..20 {
        let sent = send(&transport, &peer.url()).await;
        assert_eq!((status(&sent), sent.resent), (200, false));
    }
    assert_eq!((peer.hits().len(), peer.accepted(), transport.idle()), (20, 1, 1));
}

#[tokio::test]
async fn hc_02_a_fresh_connection_that_dies_is_a_failure_and_nothing_is_sent_again() {
    let peer = Peer::start(|caller| answer_then_close(caller, 0)).await;
    let transport = transport();
    for n in 1..=3 {
        let sent = send(&transport, &peer.url()).await;
        let text = &failure(&sent, FailureKind::Reset).text;
        assert!(text.contains("closed before an answer"), "{text}");
        assert!(!sent.resent);
        assert_eq!((peer.hits().len(), peer.accepted(), transport.idle()), (n, n, 0));
    }
}

#[tokio::test]
async fn hc_02_a_kept_connection_that_dies_unheard_is_replaced_once() {
    let peer = Peer::start(|caller| answer_then_close(caller, 1)).await;
    let transport = transport();
    assert_eq!(status(&send(&transport, &peer.url()).await), 200);
    let sent = send(&transport, &peer.url()).await;
    assert_eq!((status(&sent), sent.resent), (200, true));
    let hits = peer.hits();
    assert_eq!(hits.iter().map(|hit| hit.connection).collect::<Vec<_>>(), [0, 0, 1]);
    assert!(hits.iter().all(|hit| hit.body == b"{\"a\":1}" && hit.head == hits[0].head));
}

#[tokio::test]
async fn hc_02_a_second_death_is_a_failure() {
    let peer = Peer::start(|caller| {
        let answers = usize::from(caller.index == 0);
        answer_then_close(caller, answers)
    })
    .await;
    let transport = transport();
    assert_eq!(status(&send(&transport, &peer.url()).await), 200);
    let sent = send(&transport, &peer.url()).await;
    failure(&sent, FailureKind::Reset);
    assert!(sent.resent);
    assert_eq!((peer.hits().len(), peer.accepted()), (3, 2));
}

#[tokio::test]
async fn hc_02_a_kept_connection_that_dies_after_one_byte_is_a_failure() {
    let peer = Peer::start(|mut caller| async move {
        caller.request().await?;
        caller.say(OK).await?;
        caller.request().await?;
        caller.say(b"H").await?;
        caller.stream.shutdown().await.ok()
    })
    .await;
    let transport = transport();
    assert_eq!(status(&send(&transport, &peer.url()).await), 200);
    let sent = send(&transport, &peer.url()).await;
    failure(&sent, FailureKind::Reset);
    assert_eq!((sent.resent, peer.hits().len(), peer.accepted()), (false, 2, 1));
}

#[tokio::test]
async fn hc_02_a_kept_connection_closed_while_idle_costs_nothing() {
    let peer = Peer::start(|mut caller| async move {
        caller.request().await?;
        caller.say(OK).await
    })
    .await;
    let transport = transport();
    for n in 1..=5 {
        assert_eq!(status(&send(&transport, &peer.url()).await), 200);
        assert_eq!((peer.hits().len(), peer.accepted()), (n, n));
    }
}

#[tokio::test]
async fn hc_02_a_kept_connection_that_stays_silent_is_a_timeout_and_no_resend() {
    let peer = Peer::start(|mut caller| async move {
        caller.request().await?;
        caller.say(OK).await?;
        caller.hang().await
    })
    .await;
    let transport = transport();
    assert_eq!(status(&send(&transport, &peer.url()).await), 200);
    let sent = send_briefly(&transport, &peer.url()).await;
    failure(&sent, FailureKind::Timeout);
    assert_eq!((sent.resent, peer.accepted(), transport.idle()), (false, 1, 0));
}

#[tokio::test]
async fn hc_06_the_body_is_the_same_on_every_attempt() {
    let peer = Peer::start(|mut caller| async move {
        for answer in ["503 No", "503 No", "200 OK"] {
            caller.request().await?;
            caller
                .say(format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n").as_bytes())
                .await?;
        }
        answer_then_close(caller, 0).await
    })
    .await;
    let transport = transport();
    let body: Bytes =
        (0..1_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    // The fourth finds the kept connection dying and the fifth request is its second copy.
    for expected in [503, 503, 200, 503] {
        let sent = transport.send(Outbound { body: body.clone(), ..outbound(&peer.url()) }).await;
        assert_eq!(status(&sent), expected);
    }
    let hits = peer.hits();
    assert_eq!(hits.len(), 5);
    for hit in hits {
        assert!(hit.body == body);
        assert_eq!(hit.header("content-length"), Some("1048576"));
        assert_eq!(hit.header("transfer-encoding"), None);
    }
}

#[tokio::test]
async fn hc_07_a_request_that_says_close_ends_its_connection() {
    let peer = Peer::answering(OK).await;
    let transport = transport();
    for n in 1..=2 {
        let mut request = outbound(&peer.url());
        request.headers.insert("connection", "close".parse().unwrap());
        assert_eq!(status(&transport.send(request).await), 200);
        assert_eq!((peer.accepted(), transport.idle()), (n, 0));
    }
}

#[tokio::test]
async fn an_answer_that_says_close_ends_its_connection() {
    for answer in [
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ] {
        let peer = Peer::answering(answer).await;
        let transport = transport();
        assert_eq!(status(&send(&transport, &peer.url()).await), 200);
        assert_eq!(transport.idle(), 0, "{answer}");
    }
}

#[tokio::test]
async fn hc_08_interim_answers_are_skipped() {
    let mut many = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000);
    many.extend_from_slice(OK);
    let peer = Peer::answering(many).await;
    let transport = transport();
    for _ in 0..2 {
        let sent = send(&transport, &peer.url()).await;
        assert_eq!((status(&sent), &answer(&sent).body[..]), (200, &b"ok"[..]));
    }
    assert_eq!((peer.hits().len(), peer.accepted()), (2, 1));

    let hint = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nretry-after: 9\r\n\r\n";
    for (last, expected) in [("500 Oops", 500), ("417 Expectation Failed", 417)] {
        let text = format!("{hint}HTTP/1.1 {last}\r\ncontent-length: 0\r\n\r\n");
        let peer = Peer::answering(text).await;
        let sent = send(&transport, &peer.url()).await;
        assert_eq!(status(&sent), expected);
        assert_eq!(answer(&sent).retry_after, resilience::RetryAfter::Absent);
    }
}

#[tokio::test]
async fn hc_08_endless_interim_answers_end_by_the_deadline() {
    let dripping = Peer::start(|mut caller| async move {
        caller.request().await?;
        caller.drip(b"HTTP/1.1 102 Processing\r\n\r\n").await
    })
    .await;
    let flooding = Peer::start(|mut caller| async move {
        caller.request().await?;
        let flood = b"HTTP/1.1 102 Processing\r\n\r\n".repeat(1_000);
        loop {
            caller.say(&flood).await?;
        }
    })
    .await;
    for peer in [dripping, flooding] {
        let sent = send_briefly(&transport(), &peer.url()).await;
        failure(&sent, FailureKind::Timeout);
        assert_eq!(peer.hits().len(), 1);
    }
}

#[tokio::test]
async fn hc_08_a_switch_of_protocols_is_no_answer() {
    let peer =
        Peer::answering("HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n");
    let sent = send(&transport(), &peer.await.url()).await;
    failure(&sent, FailureKind::Reset);
}

#[tokio::test]
async fn a_send_that_is_dropped_closes_its_connection() {
    let (closed, on_closed) = tokio::sync::oneshot::channel();
    let (arrived, on_arrived) = tokio::sync::oneshot::channel();
    let signals = std::sync::Mutex::new(Some((arrived, closed)));
    let peer = Peer::start(move |mut caller| {
        let signals = signals.lock().unwrap().take();
        async move {
            let (arrived, closed) = signals?;
            caller.request().await?;
            arrived.send(()).ok()?;
            let _end = caller.hang().await;
            closed.send(()).ok()
        }
    })
    .await;
    let transport = transport();
    let sending = tokio::spawn(transport.send(outbound(&peer.url())));
    on_arrived.await.unwrap();
    sending.abort();
    tokio::time::timeout(LONG, on_closed).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_peer_that_never_reads_ends_by_the_deadline() {
    let peer = Peer::start(|caller| async move {
        std::future::pending::<()>().await;
        drop(caller);
        None
    })
    .await;
    let body = Bytes::from(vec![b'x'; 64 << 20]);
    let request = Outbound { body, deadline: SHORT, ..outbound(&peer.url()) };
    failure(&transport().send(request).await, FailureKind::Timeout);
}

#[tokio::test]
async fn refused_is_a_connect_failure() {
    let peer = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", peer.local_addr().unwrap());
    drop(peer);
    let sent = send(&transport(), &url).await;
    assert_eq!(failure(&sent, FailureKind::Connect).text, "connection refused");
}

#[tokio::test]
async fn idle_connections_are_bounded_and_swept() {
    let (gate, _) = tokio::sync::broadcast::channel::<()>(1);
    let opener = gate.clone();
    let peer = Peer::start(move |mut caller| {
        let mut gate = opener.subscribe();
        async move {
            caller.request().await?;
            gate.recv().await.ok()?;
            caller.say(OK).await?;
            caller.hang().await
        }
    })
    .await;
    let mut options = options(open_guard(), crate::transport::dns::StaticResolver::new());
    options.idle_per_origin_max = 2;
    options.idle_max = std::time::Duration::from_millis(200);
    let transport = HttpTransport::new(options);
    let sends: Vec<_> =
        (0..5).map(|_| tokio::spawn(transport.send(outbound(&peer.url())))).collect();
    while peer.hits().len() < 5 {
        tokio::task::yield_now().await;
    }
    gate.send(()).unwrap();
    for sent in sends {
        assert_eq!(status(&sent.await.unwrap()), 200);
    }
    assert!(transport.idle() <= 2);
    let swept = async {
        while transport.idle() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, swept).await.unwrap();
}

#[tokio::test]
async fn the_oldest_idle_connections_make_room() {
    let transport = {
        let mut options = options(open_guard(), crate::transport::dns::StaticResolver::new());
        options.idle_total_max = 4;
        HttpTransport::new(options)
    };
    let mut peers = Vec::new();
    for _ in 0..6 {
        let peer = Peer::answering(OK).await;
        assert_eq!(status(&send(&transport, &peer.url()).await), 200);
        assert!(transport.idle() <= 4);
        peers.push(peer);
    }
    let last = &peers[5];
    assert_eq!(status(&send(&transport, &last.url()).await), 200);
    assert_eq!(last.accepted(), 1, "the newest is still there");
}
