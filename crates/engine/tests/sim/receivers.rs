//! Receivers with characters of their own, behind the transport of the engine.
//!
//! Never: judge what they see; the oracle does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use domain::attempt::{Answer, Failure, FailureKind, Outcome};
use domain::ids::{EndpointKey, Kind, MessageKey, PublicId};
use engine::transport::{Outbound, Sending, Sent, Transport};
use resilience::{Chance, RetryAfter, Seeded};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::oracle::{Oracle, Seen};

/// How a receiver behaves until it is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Character {
    Healthy,
    Slow,
    Flaky,
    Throttling,
    ThrottlingWithHint,
    UnavailableWithHint,
    Down,
    Hanging,
    /// Neither answers nor keeps its deadline.
    Endless,
    Resetting,
    /// Refuses some messages.
    Picky,
    /// Refuses all messages: a broken deploy.
    Refusing,
    /// Answers 410 once.
    GoneOnce,
    /// Breaks off the task that sends.
    Breaking,
}

pub const CHARACTERS: [Character; 14] = [
    Character::Healthy,
    Character::Slow,
    Character::Flaky,
    Character::Throttling,
    Character::ThrottlingWithHint,
    Character::UnavailableWithHint,
    Character::Down,
    Character::Hanging,
    Character::Endless,
    Character::Resetting,
    Character::Picky,
    Character::Refusing,
    Character::GoneOnce,
    Character::Breaking,
];

/// A receiver.
#[derive(Clone, Debug)]
pub struct Receiver {
    pub character: Character,
    /// From then on it answers 200; in simulated time.
    pub well_at: Duration,
    pub said_gone: bool,
}

/// What comes of a request.
enum Reply {
    Status(u16, RetryAfter),
    Failure(FailureKind),
    Never,
    Break,
}

/// All receivers, as the engine reaches them.
pub struct Receivers {
    pub oracle: Arc<Mutex<Oracle>>,
    chance: Mutex<Seeded>,
    /// The process dies with the send of this message.
    pub poison: Option<Bytes>,
    /// The process dies with the n-th send from now.
    pub fatal_in: Mutex<Option<u64>>,
    /// Sends fail on this side until then; in simulated time.
    pub internal: Mutex<Option<(Duration, Duration)>>,
    pub killed: Notify,
    dead: Mutex<bool>,
}

impl Receivers {
    pub fn new(seed: u64, oracle: Arc<Mutex<Oracle>>, poison: Option<Bytes>) -> Arc<Self> {
        Arc::new(Self {
            oracle,
            chance: Mutex::new(Seeded::new(seed)),
            poison,
            fatal_in: Mutex::default(),
            internal: Mutex::default(),
            killed: Notify::new(),
            dead: Mutex::new(false),
        })
    }

    /// A new life: the process runs again.
    pub fn revive(&self) {
        *self.dead.lock().unwrap() = false;
    }

    fn is_fatal(&self, endpoint: EndpointKey, body: &Bytes) -> bool {
        let mut fatal_in = self.fatal_in.lock().unwrap();
        let counted = fatal_in.as_mut().is_some_and(|left| {
            *left = left.saturating_sub(1);
            *left == 0
        });
        if counted {
            *fatal_in = None;
        }
        counted || (endpoint == EndpointKey(1) && self.poison.as_ref() == Some(body))
    }

    fn reply(&self, at: Duration, endpoint: EndpointKey, message: MessageKey) -> (Duration, Reply) {
        let mut chance = self.chance.lock().unwrap();
        let mut oracle = self.oracle.lock().unwrap();
        let internal = *self.internal.lock().unwrap();
        if internal.is_some_and(|(from, until)| at >= from && at < until) {
            return (Duration::ZERO, Reply::Failure(FailureKind::Internal));
        }
        let receiver = oracle.receivers.get_mut(&endpoint).expect("a known receiver");
        let quick = chance.between(Duration::ZERO, Duration::from_millis(80));
        let quick = if chance.below(4) == 0 { Duration::ZERO } else { quick };
        let ok = Reply::Status(200, RetryAfter::Absent);
        if at >= receiver.well_at {
            return (quick, ok);
        }
        let failing = |chance: &mut Seeded| chance.below(2) == 0;
        let hint =
            |chance: &mut Seeded| RetryAfter::Wait(Duration::from_secs(1 + chance.below(120)));
        match receiver.character {
            Character::Healthy => (quick, ok),
            Character::Slow => (chance.between(Duration::ZERO, Duration::from_secs(9)), ok),
            Character::Flaky if failing(&mut chance) => {
                (quick, Reply::Status(500, RetryAfter::Absent))
            }
            Character::Throttling if failing(&mut chance) => {
                (quick, Reply::Status(429, RetryAfter::Absent))
            }
            Character::ThrottlingWithHint if failing(&mut chance) => {
                (quick, Reply::Status(429, hint(&mut chance)))
            }
            Character::UnavailableWithHint => (quick, Reply::Status(503, hint(&mut chance))),
            Character::Down => (quick, Reply::Failure(FailureKind::Connect)),
            Character::Hanging => {
                (Duration::from_secs(3_600), Reply::Failure(FailureKind::Timeout))
            }
            Character::Endless => (quick, Reply::Never),
            Character::Resetting => (quick, Reply::Failure(FailureKind::Reset)),
            Character::Picky if (message.0 / 256).is_multiple_of(3) => {
                (quick, Reply::Status(400, RetryAfter::Absent))
            }
            Character::Refusing => (quick, Reply::Status(401, RetryAfter::Absent)),
            Character::GoneOnce if !receiver.said_gone => {
                receiver.said_gone = true;
                (quick, Reply::Status(410, RetryAfter::Absent))
            }
            Character::Breaking if failing(&mut chance) => (quick, Reply::Break),
            _ => (quick, ok),
        }
    }
}

/// The transport of one life.
pub struct SimTransport(pub Arc<Receivers>);

impl Transport for SimTransport {
    fn send(&self, request: Outbound) -> Sending {
        let this = Arc::clone(&self.0);
        Box::pin(async move {
            if *this.dead.lock().unwrap() {
                return std::future::pending().await;
            }
            let seen = see(&request);
            let number = this.oracle.lock().unwrap().begins(seen);
            if this.is_fatal(seen.endpoint, &request.body) {
                *this.dead.lock().unwrap() = true;
                this.killed.notify_one();
                return std::future::pending().await;
            }
            let began = Instant::now();
            let at = this.oracle.lock().unwrap().elapsed();
            let (after, reply) = this.reply(at, seen.endpoint, seen.message);
            let outcome = if after > request.deadline {
                tokio::time::sleep(request.deadline).await;
                failed(FailureKind::Timeout)
            } else {
                tokio::time::sleep(after).await;
                match reply {
                    Reply::Status(status, retry_after) => answered(status, retry_after),
                    Reply::Failure(kind) => failed(kind),
                    Reply::Never => {
                        let end = EndOf(Arc::clone(&this), number);
                        std::future::pending::<()>().await;
                        drop(end);
                        unreachable!("pending for ever")
                    }
                    Reply::Break => {
                        this.oracle.lock().unwrap().ends(number, &failed(FailureKind::Internal));
                        // Like a panic, but without its lines on the screen.
                        std::panic::resume_unwind(Box::new("a send that breaks off"))
                    }
                }
            };
            if *this.dead.lock().unwrap() {
                return std::future::pending().await;
            }
            this.oracle.lock().unwrap().ends(number, &outcome);
            Sent { outcome, took: began.elapsed(), resent: false }
        })
    }
}

/// A send that nobody waits for any more.
struct EndOf(Arc<Receivers>, usize);

impl Drop for EndOf {
    fn drop(&mut self) {
        self.0.oracle.lock().unwrap().ends(self.1, &failed(FailureKind::Timeout));
    }
}

fn see(request: &Outbound) -> Seen {
    let text = |name: &str| request.headers[name].to_str().expect("text").to_owned();
    let id = PublicId::parse(Kind::Message, &text("webhook-id")).expect("a message id");
    Seen {
        endpoint: request.endpoint.key,
        message: MessageKey(id.key()),
        number: text("webhook-attempt").parse().expect("a number"),
    }
}

fn answered(status: u16, retry_after: RetryAfter) -> Outcome {
    Outcome::Answered(Answer {
        status,
        retry_after,
        body: Bytes::new(),
        cut: None,
        redirect_origin: None,
    })
}

fn failed(kind: FailureKind) -> Outcome {
    Outcome::Failed(Failure { kind, text: kind.name().to_owned() })
}
