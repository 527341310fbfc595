//! The kit for the tests of others.

use std::io::ErrorKind;

use http::Method;
use http_adapter::HttpErrorKind;
use http_adapter::testing::{MockReply, MockTransport};

use crate::support::over;

/// MC1 to MC20, MA1 to MA9, MA17 to MA29.
#[tokio::test]
async fn a_mock_follows_its_script_and_remembers() {
    let mock = MockTransport::new();
    let api = over(&mock).build().unwrap();
    mock.assert_not_called();
    let error = api.get("x").send().await.unwrap_err();
    assert!(error.to_string().contains("no response configured"), "MA18: {error}");
    mock.reset();
    mock.reply_once(201, "one")
        .once(MockReply::fault(ErrorKind::ConnectionReset))
        .reply(200, "rest");
    assert_eq!(api.post("a").text("body").send().await.unwrap().status(), 201);
    assert_eq!(api.get("a").send().await.unwrap_err().kind(), HttpErrorKind::Transport);
    for _ in 0..2 {
        assert_eq!(api.get("a").send().await.unwrap().body(), "rest");
    }
    mock.assert_called_times(4);
    mock.assert_called_with(&Method::POST, "/v1/a");
    let copy = mock.calls();
    assert_eq!(copy[0].body, "body");
    api.get("b").send().await.unwrap();
    assert_eq!(copy.len(), 4, "MA20: a copy");
    assert!(mock.call(9).is_none(), "MA22");
    mock.reset();
    mock.assert_not_called();
}

/// MA10 to MA16: an endpoint's replies go before those for all.
#[tokio::test]
async fn a_mock_knows_endpoints() {
    let mock = MockTransport::new();
    let api = over(&mock).build().unwrap();
    mock.reply_once(202, "").reply(200, "");
    mock.on("/v1/a").once(MockReply::new(201, "")).once(MockReply::new(404, ""));
    mock.on("/v1/c").always(MockReply::new(204, ""));
    let status = async |path: &str| match api.get(path).send().await {
        Ok(response) => response.status().as_u16(),
        Err(error) => error.status().unwrap().as_u16(),
    };
    assert_eq!(status("a").await, 201);
    assert_eq!(status("a").await, 404);
    assert_eq!(status("a").await, 202, "MA12: exhausted, so the queue for all");
    assert_eq!(status("b").await, 200, "MA13");
    mock.on("/v1/c").once(MockReply::new(206, ""));
    assert_eq!((status("c").await, status("c").await), (206, 204), "MA11, MA16");
}

/// MA24, MA26, MA28: broken expectations panic.
#[test]
fn broken_expectations_panic() {
    let broken = |check: fn(&MockTransport)| {
        let mock = MockTransport::new();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&mock))).is_err()
    };
    assert!(broken(|mock| mock.assert_called_times(1)));
    assert!(broken(|mock| mock.assert_called_with(&Method::GET, "/")));
    assert!(!broken(MockTransport::assert_not_called));
}
