//! VX and EC: what becomes of the errors of validators, hooks and transports.
//!
//! Never: an error without the request it belongs to.

use std::error::Error;
use std::io::{self, ErrorKind};

use bytes::Bytes;
use http::StatusCode;
use http_adapter::resilience::{ErrorKind as Fault, Trip};
use http_adapter::testing::{MockReply, MockTransport};
use http_adapter::{
    BoxError, CircuitBreakerLayer, Context, Flow, HttpAdapter, HttpError, HttpErrorKind,
    Interceptor, Invalid, OrInvalid, Response,
};
use tower::ServiceBuilder;

use crate::support::{breaker, over};

/// What a validator may refuse with.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("balance of {0} is too low")]
struct Low(i32);

/// The error of a request whose answer is refused.
async fn refused(check: fn(&Response<Bytes>) -> Result<(), BoxError>) -> HttpError {
    let mock = MockTransport::new();
    mock.reply(200, "hidden");
    over(&mock).build().unwrap().get("users").validate(check).send().await.unwrap_err()
}

#[tokio::test]
async fn vx_01_vx_03_a_refused_answer_is_of_its_own_kind_and_not_retried() {
    let error = refused(|_| false.or_invalid("no id")).await;
    assert_eq!((error.kind(), error.is_retryable()), (HttpErrorKind::Validation, false));
    assert_eq!(error.status(), Some(StatusCode::OK));
    assert_eq!(error.response().unwrap().body(), "hidden", "the answer can be looked at");
    assert!(error.to_string().contains("no id"), "{error}");
}

#[tokio::test]
async fn vx_04_vx_05_the_cause_keeps_its_type() {
    let error = refused(|_| Err(Low(-3).into())).await;
    assert_eq!(error.source().unwrap().downcast_ref(), Some(&Low(-3)));
    let error = refused(|_| false.or_invalid("no id")).await;
    assert_eq!(error.source().unwrap().downcast_ref(), Some(&Invalid("no id".to_owned())));
}

/// Ours leaves the body out: docs/strategies/http-client.md, "Errors".
#[tokio::test]
async fn vx_07_vx_08_it_serialises_with_the_status_and_without_the_body() {
    let text = serde_json::to_string(&refused(|_| Err(Low(1).into())).await).unwrap();
    let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&shown["kind"], &shown["status"]), (&"validation".into(), &200.into()));
    assert_eq!(shown["message"], "balance of 1 is too low");
    assert!(!text.contains("hidden"));
}

/// Makes an error of a request.
type Throw = fn(&Context) -> BoxError;

/// Throws what it makes when an answer comes.
struct Throws(Throw);

impl Interceptor for Throws {
    async fn on_response(&self, response: &mut Response<Bytes>) -> Flow {
        Err((self.0)(response.context()))
    }
}

async fn thrown(error: Throw) -> HttpError {
    let mock = MockTransport::new();
    mock.reply(200, "");
    let api = over(&mock).interceptor(Throws(error)).build().unwrap();
    api.get("users?token=t").send().await.unwrap_err()
}

#[tokio::test]
async fn ec_01_ec_02_ec_03_an_error_of_the_adapters_passes_as_it_is() {
    let own = |context: &Context| {
        HttpError::new(HttpErrorKind::BodyTooLarge, context.clone(), Low(1)).into()
    };
    let error = thrown(own).await;
    assert_eq!(error.kind(), HttpErrorKind::BodyTooLarge);
    assert_eq!(error.source().unwrap().downcast_ref(), Some(&Low(1)), "not wrapped once more");
}

/// EC4: also where the breaker is one of the transport's own.
#[tokio::test]
async fn ec_04_a_refusal_of_a_breaker_below_is_told_as_one() {
    let mock = MockTransport::new();
    mock.reply(503, "");
    let guard = breaker("below").trip(Trip::consecutive(1)).build().unwrap();
    let stack = ServiceBuilder::new().layer(CircuitBreakerLayer::new(guard)).service(mock.clone());
    let api = HttpAdapter::builder("https://api.test").transport(stack).build().unwrap();
    assert_eq!(api.get("x").send().await.unwrap_err().kind(), HttpErrorKind::Status);
    let error = api.get("x").send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::CircuitOpen);
    assert!(error.rejected().unwrap().retry_after.is_some());
    mock.assert_called_times(1);
}

#[tokio::test]
async fn ec_05_ec_22_every_error_says_which_request_it_was() {
    let mock = MockTransport::new();
    mock.once(MockReply::fault(ErrorKind::ConnectionRefused)).reply(404, "");
    let api = over(&mock).correlation_id("x-id").build().unwrap();
    for index in 0..2 {
        let error = api.get("users").send().await.unwrap_err();
        let sent = mock.call(index).unwrap();
        assert_eq!(error.context().correlation_id(), sent.header("x-id").unwrap());
        assert_eq!(error.context().url(), "https://api.test/v1/users");
    }
    let error = thrown(|_| Low(1).into()).await;
    assert_eq!(error.context().url(), "https://api.test/v1/users", "without the query");
}

/// EC10: the status is told by name. EC14: one without a name is a status all the same.
#[tokio::test]
async fn ec_07_ec_08_ec_09_ec_10_ec_14_a_status_is_a_status() {
    for (status, text) in [(404, "404 Not Found"), (500, "500 Internal Server Error"), (499, "499")]
    {
        let mock = MockTransport::new();
        mock.reply(status, "");
        let error = over(&mock).build().unwrap().get("x").send().await.unwrap_err();
        assert_eq!(error.kind(), HttpErrorKind::Status);
        assert_eq!(error.status().unwrap().as_u16(), status);
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// The kinds from the wire are NF's; these come out of a hook and lie deeper. EC16 and EC19, a
/// timer and a name, are NF1 and NF4.
#[tokio::test]
async fn ec_12_ec_13_ec_15_ec_17_ec_18_the_cause_is_kept_and_its_kind_found() {
    const CASES: [(Throw, ErrorKind, Fault); 3] = [
        (
            |_| deep(ErrorKind::ConnectionRefused),
            ErrorKind::ConnectionRefused,
            Fault::ConnectionRefused,
        ),
        (|_| deep(ErrorKind::TimedOut), ErrorKind::TimedOut, Fault::Timeout),
        (|_| deep(ErrorKind::ConnectionReset), ErrorKind::ConnectionReset, Fault::ConnectionReset),
    ];
    for (throw, kind, fault) in CASES {
        let error = thrown(throw).await;
        assert_eq!(error.fault(), Some(fault));
        let cause = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
        let inner = cause.get_ref().unwrap().downcast_ref::<io::Error>().unwrap();
        assert_eq!(inner.kind(), kind);
    }
}

/// An error of the system inside of another.
fn deep(kind: ErrorKind) -> BoxError {
    io::Error::other(io::Error::from(kind)).into()
}

/// Ours says where it was thrown, and keeps its text.
#[tokio::test]
async fn ec_23_ec_24_ec_25_any_other_error_is_of_no_known_fault() {
    const CASES: [(Throw, &str); 2] =
        [(|_| Low(7).into(), "balance of 7 is too low"), (|_| "a text".into(), "a text")];
    for (throw, text) in CASES {
        let error = thrown(throw).await;
        assert_eq!((error.kind(), error.fault()), (HttpErrorKind::Interceptor, Some(Fault::Other)));
        assert!(error.to_string().contains(text) && !error.is_retryable(), "{error}");
    }
}
