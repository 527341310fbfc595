//! A transport for tests: a script says what comes of each request and when, on tokio's clock.
//!
//! In: a closure from request to script. Out: what it says, and a record of all that was sent.
//! Never: touch the network.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use domain::attempt::{Answer, Failure, FailureKind, Outcome};
use domain::ids::EndpointKey;
use http::HeaderMap;
use resilience::RetryAfter;
use tokio::time::{Instant, sleep};

use super::{Check, Checking, Outbound, Sending, Sent, Transport};

/// What comes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// This.
    Outcome(Outcome),
    /// Nothing: the deadline ends it.
    Hang,
}

/// What comes of a request, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// So long after the send began, but never beyond its deadline.
    pub after: Duration,
    /// What.
    pub reply: Reply,
    /// Whether it counts as sent once more.
    pub resent: bool,
}

impl Script {
    /// An empty answer, at once.
    pub fn status(status: u16) -> Self {
        Self::answer(Answer {
            status,
            retry_after: RetryAfter::Absent,
            body: Bytes::new(),
            cut: None,
            redirect_origin: None,
        })
    }

    /// An answer, at once.
    pub fn answer(answer: Answer) -> Self {
        Self::now(Reply::Outcome(Outcome::Answered(answer)))
    }

    /// A failure, at once.
    pub fn failure(kind: FailureKind) -> Self {
        let text = kind.name().to_owned();
        Self::now(Reply::Outcome(Outcome::Failed(Failure { kind, text })))
    }

    /// No answer at all.
    pub fn hang() -> Self {
        Self::now(Reply::Hang)
    }

    /// The same, but later.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.after = delay;
        self
    }

    fn now(reply: Reply) -> Self {
        Self { after: Duration::ZERO, reply, resent: false }
    }
}

/// A request as it was sent.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// To which endpoint.
    pub endpoint: EndpointKey,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// When the send began.
    pub started_at: Instant,
}

#[derive(Default)]
struct Log {
    requests: Vec<Recorded>,
    /// Now and at most, by endpoint.
    under_way: HashMap<EndpointKey, (usize, usize)>,
}

/// A transport that follows a script.
pub struct ScriptedTransport {
    script: Box<dyn Fn(&Outbound) -> Script + Send + Sync>,
    log: Arc<Mutex<Log>>,
    /// What is said to whoever asks.
    is_well: AtomicBool,
    questions: AtomicUsize,
}

impl ScriptedTransport {
    /// Asks `script` at the start of each send.
    pub fn new(script: impl Fn(&Outbound) -> Script + Send + Sync + 'static) -> Self {
        let (is_well, questions) = (AtomicBool::new(false), AtomicUsize::new(0));
        Self { script: Box::new(script), log: Arc::default(), is_well, questions }
    }

    /// From now on receivers say of themselves that they are well, or not.
    pub fn say_well(&self, is_well: bool) {
        self.is_well.store(is_well, Ordering::SeqCst);
    }

    /// How often a receiver was asked since this was last read.
    pub fn asked(&self) -> usize {
        self.questions.swap(0, Ordering::SeqCst)
    }

    /// Everything that was sent since this was last asked, in order.
    pub fn take(&self) -> Vec<Recorded> {
        std::mem::take(&mut lock(&self.log).requests)
    }

    /// How many requests were sent since the record was last taken.
    pub fn count(&self) -> usize {
        lock(&self.log).requests.len()
    }

    /// Sends to `endpoint` under way now.
    pub fn under_way(&self, endpoint: EndpointKey) -> usize {
        lock(&self.log).under_way.get(&endpoint).map_or(0, |(now, _)| *now)
    }

    /// Sends to `endpoint` under way at once, at most so far.
    pub fn peak(&self, endpoint: EndpointKey) -> usize {
        lock(&self.log).under_way.get(&endpoint).map_or(0, |(_, peak)| *peak)
    }
}

impl Transport for ScriptedTransport {
    fn send(&self, request: Outbound) -> Sending {
        let Script { after, reply, resent } = (self.script)(&request);
        let started_at = Instant::now();
        let running = Running::start(&self.log, &request, started_at);
        Box::pin(async move {
            let _running = running;
            let outcome = match reply {
                Reply::Outcome(outcome) if after <= request.deadline => {
                    if !after.is_zero() {
                        sleep(after).await;
                    }
                    outcome
                }
                Reply::Outcome(_) | Reply::Hang => {
                    sleep(request.deadline).await;
                    let text = "no complete answer in time".to_owned();
                    Outcome::Failed(Failure { kind: FailureKind::Timeout, text })
                }
            };
            Sent { outcome, took: started_at.elapsed(), resent }
        })
    }

    fn check(&self, _: Check) -> Checking {
        self.questions.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(self.is_well.load(Ordering::SeqCst)))
    }
}

/// Counts a send for as long as it lives, however it ends.
struct Running {
    log: Arc<Mutex<Log>>,
    endpoint: EndpointKey,
}

impl Running {
    fn start(log: &Arc<Mutex<Log>>, request: &Outbound, started_at: Instant) -> Self {
        let endpoint = request.endpoint.key;
        let mut guard = lock(log);
        guard.requests.push(Recorded {
            endpoint,
            headers: request.headers.clone(),
            body: request.body.clone(),
            started_at,
        });
        let (now, peak) = guard.under_way.entry(endpoint).or_default();
        *now += 1;
        *peak = (*peak).max(*now);
        drop(guard);
        Self { log: Arc::clone(log), endpoint }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some((now, _)) = lock(&self.log).under_way.get_mut(&self.endpoint) {
            *now -= 1;
        }
    }
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
