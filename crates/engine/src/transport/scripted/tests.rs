//! The script is followed on tokio's clock.

use store::conformance::samples;

use super::*;

fn outbound(deadline: Duration) -> Outbound {
    let endpoint = samples::stored_endpoint(samples::endpoint_to("http://h.example/"));
    Outbound {
        endpoint: Arc::new(endpoint),
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"{}"),
        deadline,
        connect_timeout: deadline,
    }
}

#[tokio::test(start_paused = true)]
async fn a_script_says_what_comes_and_when() {
    const DEADLINE: Duration = Duration::from_secs(10);
    let delays = [Some(0), Some(3), Some(10), Some(11), None];
    let calls = Mutex::new(delays.into_iter());
    let transport = ScriptedTransport::new(move |_| match calls.lock().unwrap().next().unwrap() {
        Some(secs) => Script::status(200).after(Duration::from_secs(secs)),
        None => Script::hang(),
    });
    for (took, answered) in [(0, true), (3, true), (10, true), (10, false), (10, false)] {
        let sent = transport.send(outbound(DEADLINE)).await;
        assert_eq!(sent.took, Duration::from_secs(took));
        assert_eq!(matches!(sent.outcome, Outcome::Answered(_)), answered);
    }
    let recorded = transport.take();
    assert_eq!(recorded.len(), 5);
    assert_eq!(recorded[2].started_at - recorded[1].started_at, Duration::from_secs(3));
    assert_eq!((transport.count(), transport.peak(EndpointKey(7))), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn sends_under_way_are_counted_until_they_end_or_are_dropped() {
    let transport = ScriptedTransport::new(|_| Script::hang());
    let key = EndpointKey(7);
    let sends: Vec<_> = (0..3).map(|_| transport.send(outbound(Duration::from_secs(1)))).collect();
    assert_eq!((transport.under_way(key), transport.peak(key)), (3, 3));
    drop(sends);
    assert_eq!((transport.under_way(key), transport.peak(key)), (0, 3));
    let sent = transport.send(outbound(Duration::from_secs(1))).await;
    assert!(
        matches!(sent.outcome, Outcome::Failed(failure) if failure.kind == FailureKind::Timeout)
    );
    assert_eq!(transport.under_way(key), 0);
}
