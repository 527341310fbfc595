//! Idempotency keys: answers to other posts than messages, which are given again.
//!
//! Messages are remembered by the store, in the transaction that holds them. Other posts are
//! remembered here, in memory: an SDK that sends a create again after a lost answer gets the first
//! one's, unless the server was restarted in between; then uids and names still stop a second one.
//! Never: remember an answer that is an error, or give one that tells of what is gone.

use std::convert::Infallible;
use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use domain::idempotency::IngestKey;
use domain::ids::{AppKey, EndpointKey, PublicId};
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

    /// An answer without a body.
    pub(crate) const fn empty(status: StatusCode) -> Self {
        Self { status, body: Bytes::new() }
    }

    /// The answer as HTTP.
    pub(crate) fn into_response(self) -> Response {
        if self.body.is_empty() {
            return self.status.into_response();
        }
        (self.status, [JSON], self.body).into_response()
    }
}

/// What a request made, which its answer tells of.
#[derive(Clone, Debug)]
pub(crate) enum Made {
    /// Nothing that could be deleted by itself.
    Nothing,
    /// An application.
    Application(AppKey),
    /// An endpoint.
    Endpoint(EndpointKey),
    /// An event type; another one may get its name later.
    EventType {
        /// Whose.
        org: PublicId,
        /// Its name.
        name: String,
        /// Tells it from a later one.
        created_at: Timestamp,
    },
}

/// Work that was done: its answer, and what it made.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    /// The answer.
    pub(crate) answer: Answer,
    /// It is given again only while this is there.
    pub(crate) made: Made,
}

impl Done {
    /// Work that made this.
    pub(crate) fn json(status: StatusCode, body: &impl Serialize, made: Made) -> Self {
        Self { answer: Answer::json(status, body), made }
    }
}

#[derive(Debug)]
struct Given {
    body: [u8; 16],
    done: Done,
    at: Timestamp,
}

type Slot = Arc<Mutex<Option<Given>>>;

/// Answers given under a key. What is remembered, and how long, is known here alone.
pub(crate) struct Answers {
    slots: Cache<[u8; 16], Slot>,
}

impl Answers {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self { slots: Cache::new(ANSWERS_MAX) }
    }

    /// Does `work` unless it was done under this key and what it made `stands`; equal requests at
    /// the same time wait for the first.
    ///
    /// The work goes on when the caller hangs up, so that its answer is there when they ask again.
    pub(crate) async fn once<F>(
        &self,
        key: IngestKey,
        now: Timestamp,
        stands: impl FnOnce(Made) -> F + Send + 'static,
        work: impl Future<Output = Result<Done, Problem>> + Send + 'static,
    ) -> Result<Answer, Problem>
    where
        F: Future<Output = Result<bool, Problem>> + Send,
    {
        let slot = self.slot(key.scope);
        let task = tokio::spawn(async move {
            let mut slot = slot.lock().await;
            if let Some(given) =
                slot.as_ref().filter(|given| now.since(given.at) < IDEMPOTENCY_WINDOW)
                && stands(given.done.made.clone()).await?
            {
                let same = given.body == key.body;
                return if same { Ok(given.done.answer.clone()) } else { Err(body_differs()) };
            }
            let done = work.await?;
            let answer = done.answer.clone();
            // Whatever stood there before is gone or too old.
            let fits = answer.body.len() <= ANSWER_BYTES_MAX;
            *slot = fits.then_some(Given { body: key.body, done, at: now });
            Ok(answer)
        });
        task.await.map_err(|_| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "The request failed")
        })?
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
    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    /// Asks under a key; each work has the number of its turn as its answer.
    async fn ask(
        (answers, turns): (&Answers, &Arc<AtomicU32>),
        key: IngestKey,
        now: Timestamp,
        stands: bool,
    ) -> Result<String, Problem> {
        let turns = Arc::clone(turns);
        let work = async move {
            let turn = turns.fetch_add(1, Ordering::SeqCst);
            // Lets the others in.
            tokio::task::yield_now().await;
            Ok(Done::json(StatusCode::CREATED, &turn, Made::Application(AppKey(1))))
        };
        let answer = answers.once(key, now, async move |_| Ok(stands), work).await?;
        Ok(String::from_utf8_lossy(&answer.body).into_owned())
    }

    #[tokio::test]
    async fn work_is_done_once_for_a_key() {
        let (answers, turns) = (Answers::new(), Arc::default());
        let once = (&answers, &turns);
        let (first, second) = tokio::join!(ask(once, KEY, NOW, true), ask(once, KEY, NOW, true));
        assert_eq!((first.unwrap(), second.unwrap()), ("0".to_owned(), "0".to_owned()));
        let other = IngestKey { body: [3; 16], ..KEY };
        assert_eq!(ask(once, other, NOW, true).await.unwrap_err().status().as_u16(), 422);
        let elsewhere = IngestKey { scope: [3; 16], ..KEY };
        assert_eq!(ask(once, elsewhere, NOW, true).await.unwrap(), "1");
        let later = NOW.plus(IDEMPOTENCY_WINDOW);
        assert_eq!(ask(once, other, later, true).await.unwrap(), "2");
    }

    #[tokio::test]
    async fn what_is_gone_is_made_anew() {
        let (answers, turns) = (Answers::new(), Arc::default());
        let once = (&answers, &turns);
        assert_eq!(ask(once, KEY, NOW, true).await.unwrap(), "0");
        assert_eq!(ask(once, KEY, NOW, false).await.unwrap(), "1");
        assert_eq!(ask(once, KEY, NOW, true).await.unwrap(), "1");
    }

    #[tokio::test]
    async fn what_failed_is_not_remembered() {
        let (answers, turns) = (Answers::new(), Arc::default());
        let fails = async { Err(Problem::overloaded()) };
        assert!(answers.once(KEY, NOW, async |_| Ok(true), fails).await.is_err());
        assert_eq!(ask((&answers, &turns), KEY, NOW, true).await.unwrap(), "0");
    }
}
