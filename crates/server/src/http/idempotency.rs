//! Idempotency keys: answers to directory writes that are given again.
//!
//! Messages are remembered by the store, in the transaction that holds them. Writes to the
//! directory are remembered here, in memory: an SDK that sends a create again after a lost answer
//! gets the first one's, unless the server was restarted in between; then uids and names still stop
//! a second one.
//! Never: remember an answer that is an error.

use std::convert::Infallible;
use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use domain::idempotency::IngestKey;
use domain::limits::IDEMPOTENCY_WINDOW;
use http::StatusCode;
use quick_cache::sync::Cache;
use resilience::Timestamp;
use serde::Serialize;
use tokio::sync::Mutex;

use super::problem::{JSON, Problem};

/// Answers remembered.
const ANSWERS_MAX: usize = 4_096;
/// A longer answer is not remembered.
const ANSWER_BYTES_MAX: usize = 32 << 10;

/// A body under a key that was used with another one.
pub(crate) fn body_differs() -> Problem {
    Problem::field(
        &["header", "idempotency-key"],
        "was used before with another body",
        "value_error",
    )
}

/// An answer: its status and its JSON.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    status: StatusCode,
    body: Bytes,
}

impl Answer {
    /// An answer with this body.
    pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Self {
        // Our own views have text keys and no maps that fail, so this cannot.
        Self { status, body: serde_json::to_vec(body).unwrap_or_default().into() }
    }

    /// The answer as HTTP.
    pub(crate) fn into_response(self) -> Response {
        (self.status, [JSON], self.body).into_response()
    }
}

#[derive(Debug)]
struct Given {
    body: [u8; 16],
    answer: Answer,
    at: Timestamp,
}

type Slot = Arc<Mutex<Option<Given>>>;

/// Answers given under a key.
pub(crate) struct Answers {
    slots: Cache<[u8; 16], Slot>,
}

impl Answers {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self { slots: Cache::new(ANSWERS_MAX) }
    }

    /// Does `work` unless it was done under this key; equal requests at the same time wait for the
    /// first.
    ///
    /// The work goes on when the caller hangs up, so that its answer is there when they ask again.
    pub(crate) async fn once(
        &self,
        key: Option<IngestKey>,
        now: Timestamp,
        work: impl Future<Output = Result<Answer, Problem>> + Send + 'static,
    ) -> Result<Response, Problem> {
        let Some(key) = key else { return work.await.map(Answer::into_response) };
        let slot = self.slot(key.scope);
        let task = tokio::spawn(async move {
            let mut slot = slot.lock().await;
            if let Some(given) =
                slot.as_ref().filter(|given| now.since(given.at) < IDEMPOTENCY_WINDOW)
            {
                let same = given.body == key.body;
                return if same { Ok(given.answer.clone()) } else { Err(body_differs()) };
            }
            let answer = work.await?;
            if answer.body.len() <= ANSWER_BYTES_MAX {
                *slot = Some(Given { body: key.body, answer: answer.clone(), at: now });
            }
            Ok(answer)
        });
        let answer = task.await.map_err(|_| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "The request failed")
        })?;
        answer.map(Answer::into_response)
    }

    fn slot(&self, scope: [u8; 16]) -> Slot {
        let slot = self.slots.get_or_insert_with(&scope, || Ok::<_, Infallible>(Slot::default()));
        slot.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const KEY: IngestKey = IngestKey { scope: [1; 16], body: [2; 16] };

    #[tokio::test]
    async fn work_is_done_once_for_a_key() {
        let (answers, done) = (Answers::new(), Arc::new(AtomicU32::new(0)));
        let now = Timestamp::from_secs(1_800_000_000);
        let work = |fail: bool| {
            let done = Arc::clone(&done);
            async move {
                if fail {
                    return Err(Problem::overloaded());
                }
                done.fetch_add(1, Ordering::SeqCst);
                Ok(Answer::json(StatusCode::CREATED, &"made"))
            }
        };
        assert!(answers.once(Some(KEY), now, work(true)).await.is_err());
        for _ in 0..3 {
            let answer = answers.once(Some(KEY), now, work(false)).await.unwrap();
            assert_eq!(answer.status(), StatusCode::CREATED);
        }
        assert_eq!(done.load(Ordering::SeqCst), 1);
        let other = IngestKey { body: [3; 16], ..KEY };
        let refused = answers.once(Some(other), now, work(false)).await.unwrap_err();
        assert_eq!(refused.status().as_u16(), 422);
        let later = now.plus(IDEMPOTENCY_WINDOW);
        assert!(answers.once(Some(other), later, work(false)).await.is_ok());
        assert!(answers.once(None, now, work(false)).await.is_ok());
        assert_eq!(done.load(Ordering::SeqCst), 3);
    }
}
