//! Says what happens, one line an event, and counts.
//!
//! Never: hold up the engine; a line that cannot be written is left out.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::classify::Class;
use domain::endpoint::Endpoint;
use domain::ids::MessageKey;
use engine::events::{Event, Observer};
use resilience::{Clock, Timestamp};
use tokio::sync::watch;

/// What was seen so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) sends: u32,
    pub(super) delivered: u32,
    pub(super) failed: u32,
    pub(super) opened: u32,
    pub(super) closed: u32,
    pub(super) buried: u32,
}

/// Tells events in lines.
pub(super) struct Narrator {
    clock: Arc<dyn Clock>,
    begun: Timestamp,
    /// Messages by the order in which they were first seen.
    numbers: Mutex<HashMap<MessageKey, usize>>,
    seen: watch::Sender<Seen>,
}

impl Narrator {
    /// Begins now.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let begun = clock.now();
        let seen = watch::channel(Seen::default()).0;
        Self { clock, begun, numbers: Mutex::default(), seen }
    }

    /// What was seen so far.
    pub(super) fn seen(&self) -> Seen {
        *self.seen.borrow()
    }

    /// Waits until this was seen, or until the time is over.
    pub(super) async fn wait(&self, most: Duration, what: impl Fn(&Seen) -> bool) {
        let mut seen = self.seen.subscribe();
        let waited = async { seen.wait_for(what).await.is_ok() };
        let _in_time = tokio::time::timeout(most, waited).await;
    }

    fn number(&self, message: MessageKey) -> usize {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let next = numbers.len() + 1;
        *numbers.entry(message).or_insert(next)
    }

    fn line(&self, endpoint: &Endpoint, what: &str) {
        let at = self.clock.now().since(self.begun).as_secs_f64();
        let name = endpoint.spec.uid.as_deref().unwrap_or("?");
        say(&format!("  {at:5.1}s  {name:<7} {what}"));
    }

    fn attempted(&self, event: &Event) {
        let Event::Attempted { endpoint, message, number, class, status, took, retry_at } = event
        else {
            return;
        };
        let event = self.number(*message);
        let answer = match status {
            0 => "no answer".to_owned(),
            status => format!("{status} in {} ms", took.as_millis()),
        };
        let outcome = match (class, retry_at) {
            (Class::Success, _) => "delivered".to_owned(),
            (_, Some(at)) => {
                let wait = at.since(self.clock.now()).as_secs_f64();
                format!("failed, again in {wait:.1} s")
            }
            _ => "failed".to_owned(),
        };
        self.line(endpoint, &format!("event {event:<2} send {number}: {answer}, {outcome}"));
        self.seen.send_modify(|seen| {
            seen.sends += 1;
            if *class == Class::Success { seen.delivered += 1 } else { seen.failed += 1 }
        });
    }
}

impl Observer for Narrator {
    fn observe(&self, event: &Event) {
        match event {
            Event::Attempted { .. } => self.attempted(event),
            Event::Buried { endpoint, message, reason } => {
                let event = self.number(*message);
                let what = format!("event {event:<2} is a dead letter: {}", reason.name());
                self.line(endpoint, &what);
                self.seen.send_modify(|seen| seen.buried += 1);
            }
            Event::BreakerOpened { endpoint, until } => {
                let wait = until.since(self.clock.now()).as_secs_f64();
                self.line(endpoint, &format!("breaker OPEN, a probe in {wait:.1} s"));
                self.seen.send_modify(|seen| seen.opened += 1);
            }
            Event::BreakerClosed { endpoint } => {
                self.line(endpoint, "breaker CLOSED");
                self.seen.send_modify(|seen| seen.closed += 1);
            }
            Event::EndpointGone { endpoint } => self.line(endpoint, "gone (410), disabled"),
            Event::RefusalsHeld { endpoint, .. } => self.line(endpoint, "held: too many refusals"),
            Event::EndpointSuspended { endpoint } => self.line(endpoint, "SUSPENDED"),
            Event::EndpointResumed { endpoint } => self.line(endpoint, "resumed"),
            Event::SendingPaused { pause } => {
                say(&format!("  sending pauses for {:.1} s: a fault of ours", pause.as_secs_f64()));
            }
        }
    }
}

/// Prints a line.
pub(super) fn say(line: &str) {
    let _closed = writeln!(std::io::stdout(), "{line}");
}
