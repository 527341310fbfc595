//! A future against the clock.
//!
//! Never: let the clock win where both are ready.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

/// What `work` gives, or nothing if `limit` ends first.
pub(crate) async fn within<R>(
    mut limit: Pin<&mut impl Future<Output = ()>>,
    work: impl Future<Output = R>,
) -> Option<R> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        if let Poll::Ready(result) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(result));
        }
        limit.as_mut().poll(cx).map(|()| None)
    })
    .await
}
