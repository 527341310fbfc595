//! Bodies: read whole, up to a bound each and a bound in all, within a time.
//!
//! In: a body that is still arriving. Out: its bytes and a hold on the common bound, to be dropped
//! with the answer. What is refused is answered at once, and the rest of it thrown away for a
//! while: a connection that is closed on a client that still sends is reset, and the client never
//! sees why.
//! Never: keep more than is allowed.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::Problem;

/// A body that takes longer to arrive is given up.
const READ_TIME_MAX: Duration = Duration::from_secs(30);
/// The rest of a refused body is read for so long at most,
const DISCARD_TIME_MAX: Duration = Duration::from_secs(10);
/// and no longer than this without a sign of life,
const DISCARD_IDLE_MAX: Duration = Duration::from_secs(1);
/// for so many at a time.
const DISCARDS_MAX: usize = 64;
/// What one permit stands for.
const PERMIT_BYTES: usize = 1_024;

/// Bounds the bodies that are being read or waited on, in all.
pub(crate) struct Budget {
    permits: Arc<Semaphore>,
    discards: Arc<Semaphore>,
    body_bytes_max: usize,
}

/// A share of the bound, given back when dropped.
#[derive(Debug)]
pub(crate) struct Hold(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Budget {
    /// At most `body_bytes_max` for one body and `all_bytes_max` for all of them.
    pub(crate) fn new(body_bytes_max: usize, all_bytes_max: usize) -> Self {
        let permits = (all_bytes_max / PERMIT_BYTES).min(Semaphore::MAX_PERMITS);
        let discards = Arc::new(Semaphore::new(DISCARDS_MAX));
        Self { permits: Arc::new(Semaphore::new(permits)), discards, body_bytes_max }
    }

    /// Reads a body whose length is known to be `announced`, if it is.
    pub(crate) async fn read(
        &self,
        mut body: Body,
        announced: Option<u64>,
    ) -> Result<(Bytes, Hold), Problem> {
        match self.read_from(&mut body, announced).await {
            Ok(read) => Ok(read),
            Err(problem) => {
                self.discard(body);
                Err(problem)
            }
        }
    }

    async fn read_from(
        &self,
        body: &mut Body,
        announced: Option<u64>,
    ) -> Result<(Bytes, Hold), Problem> {
        let most = self.body_bytes_max;
        let expected = match announced.map(usize::try_from) {
            Some(Ok(length)) if length <= most => length,
            Some(_) => return Err(Problem::too_large(most)),
            None => most,
        };
        let permits = u32::try_from(expected.div_ceil(PERMIT_BYTES).max(1)).unwrap_or(u32::MAX);
        let hold = Arc::clone(&self.permits)
            .try_acquire_many_owned(permits)
            .map_err(|_| Problem::overloaded().closing())?;
        match tokio::time::timeout(READ_TIME_MAX, collect(body, most)).await {
            Ok(bytes) => bytes.map(|bytes| (bytes, Hold(hold))),
            Err(_) => Err(Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "request_timeout",
                "The body did not arrive in time",
            )
            .closing()),
        }
    }

    /// Goes on reading beside the answer, if not too many are read so.
    fn discard(&self, mut body: Body) {
        let Ok(permit) = Arc::clone(&self.discards).try_acquire_owned() else { return };
        tokio::spawn(tokio::time::timeout(DISCARD_TIME_MAX, async move {
            let _permit = permit;
            let mut next = async || tokio::time::timeout(DISCARD_IDLE_MAX, body.frame()).await;
            while let Ok(Some(Ok(_))) = next().await {}
        }));
    }
}

async fn collect(body: &mut Body, most: usize) -> Result<Bytes, Problem> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|_| Problem::bad_request("generic_error", "The body broke off").closing())?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + all.len() + data.len() > most {
            return Err(Problem::too_large(most));
        }
        // Nearly every body is one frame, which is then not copied.
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&data);
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_bounded_with_and_without_a_length() {
        let budget = Budget::new(10, 1 << 20);
        let (bytes, _hold) = budget.read(Body::from("0123456789"), None).await.unwrap();
        assert_eq!(bytes, "0123456789");
        let refused = budget.read(Body::from("0123456789a"), None).await.unwrap_err();
        assert_eq!(refused.status().as_u16(), 413);
        let refused = budget.read(Body::empty(), Some(11)).await.unwrap_err();
        assert_eq!(refused.status().as_u16(), 413);
        let refused = budget.read(Body::empty(), Some(u64::MAX)).await.unwrap_err();
        assert_eq!(refused.status().as_u16(), 413);
    }

    #[tokio::test]
    async fn all_bodies_together_are_bounded() {
        let budget = Budget::new(2_048, 4_096);
        let (_, first) = budget.read(Body::empty(), Some(2_048)).await.unwrap();
        let (_, _second) = budget.read(Body::empty(), None).await.unwrap();
        let refused = budget.read(Body::empty(), Some(0)).await.unwrap_err();
        assert_eq!(refused.status().as_u16(), 503);
        drop(first);
        assert!(budget.read(Body::empty(), Some(0)).await.is_ok());
    }

    #[tokio::test]
    async fn frames_are_joined_in_order() {
        let frames = futures_util::stream::iter(["ab", "", "cd", "e"].map(Ok::<_, std::io::Error>));
        let (bytes, _hold) =
            Budget::new(10, 1 << 20).read(Body::from_stream(frames), None).await.unwrap();
        assert_eq!(bytes, "abcde");
    }
}
