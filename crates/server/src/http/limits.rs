//! Bodies: read whole, up to a bound each and a bound in all, within a time.
//!
//! In: a body that is still arriving. Out: its bytes and a hold on the common bound, to be dropped
//! with the answer. The hold grows with what has arrived. What is refused is answered at once, and
//! the rest of it thrown away for a while: a connection that is closed on a client that still sends
//! is reset, and the client never sees why.
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
/// The share of a body grows by so much as it arrives: what was only announced takes none.
const STEP_BYTES: usize = 64 << 10;

/// Bounds the bodies that are being read or waited on, in all.
pub(crate) struct Budget {
    permits: Arc<Semaphore>,
    discards: Arc<Semaphore>,
}

/// A share of the bound, given back when dropped.
#[derive(Debug)]
pub(crate) struct Hold(OwnedSemaphorePermit);

impl Hold {
    /// What it is a share for.
    fn bytes(&self) -> usize {
        self.0.num_permits() * PERMIT_BYTES
    }
}

impl Budget {
    /// At most `all_bytes_max` for all bodies together.
    pub(crate) fn new(all_bytes_max: usize) -> Self {
        let permits = (all_bytes_max / PERMIT_BYTES).min(Semaphore::MAX_PERMITS);
        let discards = Arc::new(Semaphore::new(DISCARDS_MAX));
        Self { permits: Arc::new(Semaphore::new(permits)), discards }
    }

    /// Reads a body of at most `most` bytes whose length is known to be `announced`, if it is.
    pub(crate) async fn read(
        &self,
        mut body: Body,
        announced: Option<u64>,
        most: usize,
    ) -> Result<(Bytes, Hold), Problem> {
        match self.read_from(&mut body, announced, most).await {
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
        most: usize,
    ) -> Result<(Bytes, Hold), Problem> {
        let expected = match announced.map(usize::try_from) {
            Some(Ok(length)) if length <= most => length,
            Some(_) => return Err(Problem::too_large(most)),
            None => most,
        };
        let mut hold = self.hold(expected.min(STEP_BYTES))?;
        match tokio::time::timeout(READ_TIME_MAX, self.collect(body, most, &mut hold)).await {
            Ok(bytes) => bytes.map(|bytes| (bytes, hold)),
            Err(_) => Err(Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "request_timeout",
                "The body did not arrive in time",
            )
            .closing()),
        }
    }

    /// A share for so many bytes.
    fn hold(&self, bytes: usize) -> Result<Hold, Problem> {
        let permits = u32::try_from(bytes.div_ceil(PERMIT_BYTES).max(1)).unwrap_or(u32::MAX);
        let permits = Arc::clone(&self.permits).try_acquire_many_owned(permits);
        permits.map(Hold).map_err(|_| Problem::overloaded().closing())
    }

    async fn collect(
        &self,
        body: &mut Body,
        most: usize,
        hold: &mut Hold,
    ) -> Result<Bytes, Problem> {
        let mut first = Bytes::new();
        let mut all = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| {
                Problem::bad_request("generic_error", "The body broke off").closing()
            })?;
            let Ok(data) = frame.into_data() else { continue };
            let length = first.len() + all.len() + data.len();
            if length > most {
                return Err(Problem::too_large(most));
            }
            if let Some(more) = length.checked_sub(hold.bytes()).filter(|more| *more > 0) {
                hold.0.merge(self.hold(more.next_multiple_of(STEP_BYTES))?.0);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_bounded_with_and_without_a_length() {
        let budget = Budget::new(1 << 20);
        let (bytes, _hold) = budget.read(Body::from("0123456789"), None, 10).await.unwrap();
        assert_eq!(bytes, "0123456789");
        let refused = budget.read(Body::from("0123456789a"), None, 10).await.unwrap_err();
        assert_eq!(refused.status().as_u16(), 413);
        let refused = budget.read(Body::empty(), Some(11), 10).await.unwrap_err();
        assert_eq!(refused.status().as_u16(), 413);
        let refused = budget.read(Body::empty(), Some(u64::MAX), 10).await.unwrap_err();
        assert_eq!(refused.status().as_u16(), 413);
    }

    #[tokio::test]
    async fn all_bodies_together_are_bounded() {
        let budget = Budget::new(4_096);
        let read =
            |length: usize| budget.read(Body::from(vec![0; length]), Some(length as u64), 2_048);
        let (_, first) = read(2_048).await.unwrap();
        let (_, _second) = read(2_048).await.unwrap();
        assert_eq!(read(0).await.unwrap_err().status().as_u16(), 503);
        drop(first);
        assert!(read(0).await.is_ok());
    }

    #[tokio::test]
    async fn what_was_only_announced_takes_little_of_the_bound() {
        let budget = Budget::new(3 * STEP_BYTES);
        let announced = Some(3 * STEP_BYTES as u64);
        let (_, little) = budget.read(Body::empty(), announced, 1 << 20).await.unwrap();
        assert_eq!(little.bytes(), STEP_BYTES);
        // Without a length too; and what arrives is counted as it arrives.
        let body = || {
            let frames = [Ok::<_, std::io::Error>(vec![0; STEP_BYTES]), Ok(vec![0; 1])];
            Body::from_stream(futures_util::stream::iter(frames))
        };
        let (_, more) = budget.read(body(), None, 1 << 20).await.unwrap();
        assert_eq!(more.bytes(), 2 * STEP_BYTES);
        drop(little);
        let refused = budget.read(body(), None, 1 << 20).await.unwrap_err();
        assert_eq!(refused.status().as_u16(), 503);
    }

    #[tokio::test]
    async fn frames_are_joined_in_order() {
        let frames = futures_util::stream::iter(["ab", "", "cd", "e"].map(Ok::<_, std::io::Error>));
        let (bytes, _hold) =
            Budget::new(1 << 20).read(Body::from_stream(frames), None, 10).await.unwrap();
        assert_eq!(bytes, "abcde");
    }
}
