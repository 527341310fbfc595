//! Idempotency keys: answers to other posts than messages, which are given again.
//!
//! Messages are remembered by the store, in the transaction that holds them, and so are the answers
//! here: whoever does the work gets a [`Ticket`], and what it tells is written with the effect. An
//! answer to work of several transactions, or of none, is written right after it. What ends with
//! the process (a token that is nowhere stored, a report) is remembered in memory alone, where the
//! others are kept too, so that equal requests at the same time wait for the first.
//! Never: remember an answer that is an error, or give one that tells of what is gone.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use domain::idempotency::IngestKey;
use domain::limits::IDEMPOTENCY_WINDOW;
use http::StatusCode;
use quick_cache::sync::Cache;
use resilience::Timestamp;
use serde::Serialize;
use store::recall::{Kept, Once, Recall, Remember, Told};
use tokio::sync::Mutex;

use super::problem::{JSON, Problem};

pub(crate) use store::recall::Made;

/// Answers held in memory.
const ANSWERS_MAX: usize = 4_096;
/// A longer answer is not held in memory.
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

/// Work that was done: its answer, and what it made.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    answer: Answer,
    made: Made,
    lasts: bool,
}

impl Done {
    /// Work that made this: its answer is given again only while it is there.
    pub(crate) fn json(status: StatusCode, body: &impl Serialize, made: Made) -> Self {
        Self { answer: Answer::json(status, body), made, lasts: true }
    }

    /// Work that made nothing, and has no more to say.
    pub(crate) const fn empty(status: StatusCode) -> Self {
        Self { answer: Answer::empty(status), made: Made::Nothing, lasts: true }
    }

    /// The same, with an answer that is not to outlive the process.
    pub(crate) fn passing(self) -> Self {
        Self { lasts: false, ..self }
    }

    /// Its answer as HTTP.
    pub(crate) fn into_response(self) -> Response {
        self.answer.into_response()
    }

    fn told(self) -> Told {
        let Answer { status, body } = self.answer;
        Told { status: status.as_u16(), body, made: self.made }
    }
}

/// What the effect of a request is to be remembered by, if by anything.
pub(crate) struct Ticket {
    key: Option<IngestKey>,
    /// The answer went with the effect.
    used: Arc<AtomicBool>,
}

impl Ticket {
    /// There is nothing to remember.
    pub(crate) fn none() -> Self {
        Self { key: None, used: Arc::default() }
    }

    /// For the write that is the effect: how its answer reads, which must be the one that is
    /// given. It is asked inside of the transaction.
    pub(crate) fn tells<T>(
        &self,
        tell: impl FnOnce(&T) -> Option<Done> + Send + 'static,
    ) -> Once<T> {
        let (key, used) = (self.key?, Arc::clone(&self.used));
        let tell = move |made: &T| {
            let told = tell(made)?.told();
            used.store(true, Ordering::Relaxed);
            Some(told)
        };
        Some(Remember { key, tell: Box::new(tell) })
    }
}

/// A request under a key.
pub(crate) struct Asked {
    /// The key.
    pub(crate) key: IngestKey,
    /// When it came.
    pub(crate) now: Timestamp,
    /// Where answers are stored.
    pub(crate) recall: Arc<dyn Recall>,
}

#[derive(Clone, Debug)]
struct Given {
    body: [u8; 16],
    at: Timestamp,
    answer: Answer,
    made: Made,
}

impl Given {
    /// What was stored; `None` if it is no answer.
    fn stored(kept: Kept) -> Option<Self> {
        let Kept { body, at, told } = kept;
        let status = StatusCode::from_u16(told.status).ok()?;
        Some(Self { body, at, answer: Answer { status, body: told.body }, made: told.made })
    }
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
    pub(crate) async fn once<F, W>(
        &self,
        asked: Asked,
        stands: impl FnOnce(Made) -> F + Send + 'static,
        work: impl FnOnce(Ticket) -> W + Send + 'static,
    ) -> Result<Answer, Problem>
    where
        F: Future<Output = Result<bool, Problem>> + Send,
        W: Future<Output = Result<Done, Problem>> + Send,
    {
        let slot = self.slot(asked.key.scope);
        let task = tokio::spawn(async move {
            let mut slot = slot.lock().await;
            let given = match &*slot {
                Some(given) => Some(given.clone()),
                None => asked.recall.recall(asked.key.scope).await?.and_then(Given::stored),
            };
            if let Some(given) = given.filter(|it| asked.now.since(it.at) < IDEMPOTENCY_WINDOW)
                && stands(given.made).await?
            {
                let same = given.body == asked.key.body;
                return if same { Ok(given.answer) } else { Err(body_differs()) };
            }
            let used = Arc::default();
            let done = work(Ticket { key: Some(asked.key), used: Arc::clone(&used) }).await?;
            // Whatever stood there before is gone or too old.
            *slot = asked.given(&done);
            if done.lasts && !used.load(Ordering::Relaxed) {
                asked.keep(done.clone()).await;
            }
            Ok(done.answer)
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

impl Asked {
    /// What is held in memory of the answer.
    fn given(&self, done: &Done) -> Option<Given> {
        let Done { answer, made, .. } = done.clone();
        let fits = answer.body.len() <= ANSWER_BYTES_MAX;
        fits.then_some(Given { body: self.key.body, at: self.now, answer, made })
    }

    /// Stores an answer after its work. The work is done and its caller is told so in any case; if
    /// this fails, it is known until the process ends.
    async fn keep(&self, done: Done) {
        if let Err(error) = self.recall.keep(self.key, done.told()).await {
            tracing::warn!(%error, "an answer is not remembered beyond a restart");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    use domain::ids::AppKey;
    use resilience::ManualClock;
    use store::memory::MemoryStore;

    use super::*;

    const KEY: IngestKey = IngestKey { scope: [1; 16], body: [2; 16] };
    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    /// A process, what it stores, and the number of works done.
    struct Rig {
        answers: Answers,
        clock: Arc<ManualClock>,
        store: Arc<MemoryStore>,
        turns: Arc<AtomicU32>,
    }

    impl Rig {
        fn new() -> Self {
            let clock = Arc::new(ManualClock::new(NOW));
            let store = MemoryStore::new(Arc::<ManualClock>::clone(&clock));
            Self { answers: Answers::new(), clock, store, turns: Arc::default() }
        }

        /// Loses what was in memory.
        fn restarted(self) -> Self {
            let store = self.store.crash_image();
            Self { answers: Answers::new(), store, ..self }
        }

        fn asked(&self, key: IngestKey) -> Asked {
            let recall = Arc::<MemoryStore>::clone(&self.store);
            Asked { key, now: resilience::Clock::now(&*self.clock), recall }
        }

        /// Asks under a key; each work has the number of its turn as its answer.
        async fn ask(&self, key: IngestKey, stands: bool) -> Result<String, Problem> {
            self.ask_for(key, stands, |done| done).await
        }

        async fn ask_for(
            &self,
            key: IngestKey,
            stands: bool,
            sort: fn(Done) -> Done,
        ) -> Result<String, Problem> {
            let turns = Arc::clone(&self.turns);
            let work = async move |_| {
                let turn = turns.fetch_add(1, Ordering::SeqCst);
                // Lets the others in.
                tokio::task::yield_now().await;
                Ok(sort(Done::json(StatusCode::CREATED, &turn, Made::Application(AppKey(1)))))
            };
            let answer =
                self.answers.once(self.asked(key), async move |_| Ok(stands), work).await?;
            Ok(String::from_utf8_lossy(&answer.body).into_owned())
        }
    }

    #[tokio::test]
    async fn work_is_done_once_for_a_key() {
        let rig = Rig::new();
        let (first, second) = tokio::join!(rig.ask(KEY, true), rig.ask(KEY, true));
        assert_eq!((first.unwrap(), second.unwrap()), ("0".to_owned(), "0".to_owned()));
        let other = IngestKey { body: [3; 16], ..KEY };
        assert_eq!(rig.ask(other, true).await.unwrap_err().status().as_u16(), 422);
        let elsewhere = IngestKey { scope: [3; 16], ..KEY };
        assert_eq!(rig.ask(elsewhere, true).await.unwrap(), "1");
        rig.clock.advance(IDEMPOTENCY_WINDOW);
        assert_eq!(rig.ask(other, true).await.unwrap(), "2");
    }

    #[tokio::test]
    async fn what_is_gone_is_made_anew() {
        let rig = Rig::new();
        assert_eq!(rig.ask(KEY, true).await.unwrap(), "0");
        assert_eq!(rig.ask(KEY, false).await.unwrap(), "1");
        let rig = rig.restarted();
        assert_eq!(rig.ask(KEY, true).await.unwrap(), "1");
        assert_eq!(rig.ask(KEY, false).await.unwrap(), "2");
        assert_eq!(rig.ask(KEY, true).await.unwrap(), "2");
    }

    #[tokio::test]
    async fn what_failed_is_not_remembered() {
        let rig = Rig::new();
        let fails = async |_| Err(Problem::overloaded());
        assert!(rig.answers.once(rig.asked(KEY), async |_| Ok(true), fails).await.is_err());
        assert_eq!(rig.ask(KEY, true).await.unwrap(), "0");
    }

    #[tokio::test]
    async fn a_restart_forgets_only_what_was_not_to_last() {
        let rig = Rig::new();
        assert_eq!(rig.ask(KEY, true).await.unwrap(), "0");
        let passing = IngestKey { scope: [3; 16], ..KEY };
        assert_eq!(rig.ask_for(passing, true, Done::passing).await.unwrap(), "1");
        assert_eq!(rig.ask_for(passing, true, Done::passing).await.unwrap(), "1");
        let rig = rig.restarted();
        assert_eq!(rig.ask(KEY, true).await.unwrap(), "0");
        let other = IngestKey { body: [3; 16], ..KEY };
        assert_eq!(rig.ask(other, true).await.unwrap_err().status().as_u16(), 422);
        assert_eq!(rig.ask_for(passing, true, Done::passing).await.unwrap(), "2");
        rig.clock.advance(IDEMPOTENCY_WINDOW - Duration::from_secs(1));
        assert_eq!(rig.ask(KEY, true).await.unwrap(), "0");
    }

    #[tokio::test]
    async fn an_answer_that_went_with_its_effect_is_not_stored_again() {
        let rig = Rig::new();
        let store = Arc::clone(&rig.store);
        let work = async move |ticket: Ticket| {
            let done = || Done::empty(StatusCode::NO_CONTENT);
            let once = ticket.tells(move |(): &()| Some(done()));
            store::revocations::Revocations::expire_once(&*store, Vec::new(), once).await?;
            // Were it stored again, it would be refused.
            store.fail_next(1);
            Ok(done())
        };
        let answer = rig.answers.once(rig.asked(KEY), async |_| Ok(true), work).await.unwrap();
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
        let spent = rig.store.keep(KEY, Done::empty(StatusCode::OK).told()).await;
        assert!(spent.is_err(), "nothing was written in between");
        let kept = rig.store.recall(KEY.scope).await.unwrap().unwrap();
        assert_eq!((kept.told.status, kept.at), (204, NOW));
    }

    #[tokio::test]
    async fn work_that_was_done_is_told_though_its_answer_cannot_be_stored() {
        let rig = Rig::new();
        rig.store.fail_next(1);
        assert_eq!(rig.ask(KEY, true).await.unwrap(), "0");
        assert_eq!(rig.ask(KEY, true).await.unwrap(), "0");
    }
}
