//! Idempotency keys: answers to other posts than messages, which are given again.
//!
//! Messages are remembered by the store, in the transaction that holds them, and so are the answers
//! here: whoever does the work gets a [`Ticket`], and what it tells is written with the effect. An
//! answer to work of several transactions, or of none, is written right after it. In memory stands
//! only who is at work under which key, so that equal requests at the same time wait for the first.
//! Never: remember an answer that is an error, give one that tells of what is gone, or let go of a
//! key that somebody is at work under.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use domain::idempotency::IngestKey;
use domain::limits::IDEMPOTENCY_WINDOW;
use http::StatusCode;
use resilience::Timestamp;
use serde::Serialize;
use store::recall::{Kept, Once, Recall, Remember, Told};

use super::problem::{JSON, Problem};

pub(crate) use store::recall::Made;

/// Keys that may be worked under at a time.
const KEYS_AT_WORK_MAX: usize = 4_096;

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
    /// What is stored in place of the answer's body.
    kept: Option<Bytes>,
}

impl Done {
    /// Work that made this: its answer is given again only while it is there.
    pub(crate) fn json(status: StatusCode, body: &impl Serialize, made: Made) -> Self {
        Self { answer: Answer::json(status, body), made, kept: None }
    }

    /// Work that made nothing, and has no more to say.
    pub(crate) const fn empty(status: StatusCode) -> Self {
        Self { answer: Answer::empty(status), made: Made::Nothing, kept: None }
    }

    /// The same, but stored is what its body can be made of again ([`Asked::read`]).
    pub(crate) fn kept_as(self, kept: &impl Serialize) -> Self {
        Self { kept: Some(serde_json::to_vec(kept).unwrap_or_default().into()), ..self }
    }

    /// Its answer as HTTP.
    pub(crate) fn into_response(self) -> Response {
        self.answer.into_response()
    }

    fn told(self) -> Told {
        let Answer { status, body } = self.answer;
        Told { status: status.as_u16(), body: self.kept.unwrap_or(body), made: self.made }
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

/// What a stored body reads as, when it is given again; `None` if what it tells of is not there any
/// more.
pub(crate) type Read = Box<dyn FnOnce(Bytes) -> Option<Bytes> + Send>;

/// A request under a key.
pub(crate) struct Asked {
    /// The key.
    pub(crate) key: IngestKey,
    /// When it came.
    pub(crate) now: Timestamp,
    /// Where answers are stored.
    pub(crate) recall: Arc<dyn Recall>,
    /// How they are read.
    pub(crate) read: Read,
}

/// An answer that was given before.
#[derive(Clone, Debug)]
struct Given {
    body: [u8; 16],
    at: Timestamp,
    answer: Answer,
    made: Made,
}

impl Given {
    /// What was stored; `None` if it is no answer any more.
    fn stored(kept: Kept, read: Read) -> Option<Self> {
        let Kept { body, at, told } = kept;
        let status = StatusCode::from_u16(told.status).ok()?;
        Some(Self { body, at, answer: Answer { status, body: read(told.body)? }, made: told.made })
    }
}

/// What the first one of equal requests was answered, for those that wait for it.
type Slot = Arc<tokio::sync::Mutex<Option<Given>>>;

/// The keys that somebody is at work under, and how many are.
type AtWork = HashMap<[u8; 16], (Slot, usize)>;

/// Answers given under a key. What is remembered, and how long, is known here alone.
#[derive(Clone, Default)]
pub(crate) struct Answers(Arc<Mutex<AtWork>>);

impl Answers {
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
        let turn = self.turn(asked.key.scope)?;
        let task = tokio::spawn(async move {
            let Asked { key, now, recall, read } = asked;
            let mut slot = turn.slot.lock().await;
            let given = match &*slot {
                Some(given) => Some(given.clone()),
                None => recall.recall(key.scope).await?.and_then(|kept| Given::stored(kept, read)),
            };
            if let Some(given) = given.filter(|it| now.since(it.at) < IDEMPOTENCY_WINDOW)
                && stands(given.made).await?
            {
                return if given.body == key.body { Ok(given.answer) } else { Err(body_differs()) };
            }
            let used = Arc::default();
            let done = work(Ticket { key: Some(key), used: Arc::clone(&used) }).await?;
            let Done { answer, made, .. } = done.clone();
            // Whatever stood there before is gone or too old.
            *slot = Some(Given { body: key.body, at: now, answer, made });
            if !used.load(Ordering::Relaxed) {
                keep(&*recall, key, done.clone()).await;
            }
            Ok(done.answer)
        });
        task.await.map_err(|_| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "The request failed")
        })?
    }

    /// A place among those who are at work under a key, or wait for it.
    fn turn(&self, scope: [u8; 16]) -> Result<Turn, Problem> {
        let mut at_work = self.at_work();
        if at_work.len() >= KEYS_AT_WORK_MAX && !at_work.contains_key(&scope) {
            return Err(Problem::overloaded());
        }
        let (slot, count) = at_work.entry(scope).or_default();
        *count += 1;
        Ok(Turn { slot: Arc::clone(slot), scope, answers: self.clone() })
    }

    fn at_work(&self) -> MutexGuard<'_, AtWork> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who is at work under a key, or waits for it; the last one takes the key along.
struct Turn {
    slot: Slot,
    scope: [u8; 16],
    answers: Answers,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut at_work = self.answers.at_work();
        if let Some((_, count)) = at_work.get_mut(&self.scope) {
            *count -= 1;
            if *count == 0 {
                at_work.remove(&self.scope);
            }
        }
    }
}

/// Stores an answer after its work. The work is done and its caller is told so in any case; if this
/// fails, a repeat does the work again.
async fn keep(recall: &dyn Recall, key: IngestKey, done: Done) {
    if let Err(error) = recall.keep(key, done.told()).await {
        tracing::warn!(%error, "an answer is not remembered");
    }
}

#[cfg(test)]
mod tests;
