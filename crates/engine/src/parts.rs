//! What the engine is built from, and what it shows of a lane.
//!
//! Never: start anything.

use std::sync::Arc;

use domain::ids::MessageKey;
use resilience::{Chance, Clock, Forced, Timestamp};
pub use store::Stores;
use store::nodes::Order;

use crate::admit::Held;
use crate::alert::parts::Alerting;
use crate::announce::Wording;
use crate::events::Observer;
use crate::forward::Forwarding;
use crate::mail::Mailer;
use crate::settings::Settings;
use crate::trace::Tracing;
use crate::transport::Transport;

/// What the engine is built from.
pub struct Parts {
    /// Settings.
    pub settings: Settings,
    /// The store.
    pub stores: Stores,
    /// The way out.
    pub transport: Arc<dyn Transport>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Jitter.
    pub chance: Box<dyn Chance>,
    /// What is made of traces.
    pub tracing: Tracing,
    /// Who watches.
    pub observer: Arc<dyn Observer>,
    /// What is said of a notice.
    pub wording: Wording,
    /// Who sends e-mails; without anybody none is kept.
    pub mailer: Option<Arc<dyn Mailer>>,
    /// What alerts are built from; without it nobody is alerted.
    pub alerting: Option<Alerting>,
    /// How posts reach the nodes that serve their endpoints; without it each is committed where it
    /// came in.
    pub forwarding: Option<Forwarding>,
    /// Where ids in flight also stand, so that a delivery that kills the process is found; `None`
    /// for no such file.
    pub inflight_path: Option<std::path::PathBuf>,
}

/// What somebody decides about what is sent to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByHand {
    /// All of it or nothing, until somebody decides otherwise; `None`: what the rules say, from now
    /// on.
    Forced(Option<Forced>),
    /// Nothing but a probe now and then, until one is delivered.
    Suspended,
}

impl From<ByHand> for Order {
    fn from(by_hand: ByHand) -> Self {
        match by_hand {
            ByHand::Forced(forced) => Self::Forced(forced),
            ByHand::Suspended => Self::Suspended,
        }
    }
}

/// A breaker as the API shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerView {
    /// `closed`, `open`, `halfOpen` or `suspended`.
    pub state: &'static str,
    /// Since when.
    pub since: Timestamp,
    /// When it, or the suspension, lets a probe through.
    pub open_until: Option<Timestamp>,
    /// Failures in a row.
    pub consecutive_failures: u32,
    /// Whether somebody forced it.
    pub forced: Option<Forced>,
    /// What else holds the lane.
    pub hold: Option<Held>,
    /// When this was true.
    pub as_of: Timestamp,
}

/// What keeps every lane back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paused {
    /// The process is stopping.
    Stopping,
    /// Sending failed for a fault on this side.
    OwnFault,
    /// Results could not be written down.
    Storage,
    /// What was in flight when the process died is sent alone first.
    Suspect,
    /// As many sends are out, or as many results unrecorded, as there may be.
    Full,
}

/// Where a delivery is in its lane, and what the lane waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Situation {
    /// A send of it is under way.
    pub in_flight: bool,
    /// The breaker, and what else holds the lane.
    pub breaker: BreakerView,
    /// When what is due may be sent.
    pub next: NextSend,
    /// The rate of the endpoint lets nothing through before then.
    pub rate_until: Option<Timestamp>,
    /// Sends of the lane that are out, and how many may be.
    pub window: (u32, u32),
    /// The message that a lane in order sends first, if another one; for a strict one with a gap
    /// the dead one.
    pub behind: Option<MessageKey>,
    /// What keeps every lane back.
    pub paused: Option<Paused>,
}

/// When a delivery that is due may be sent, as far as its lane knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextSend {
    /// When it is due and has its turn.
    WhenDue,
    /// Not before then.
    NotBefore(Timestamp),
    /// Nobody knows: a probe is out, or somebody has to do something first.
    Unknown,
}

impl NextSend {
    /// Not before when what is due at `due` is sent; `None`: that is past, and nobody knows.
    pub fn of(self, due: Timestamp, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::WhenDue => Some(due),
            Self::NotBefore(until) => Some(due.max(until)),
            Self::Unknown => (due > now).then_some(due),
        }
    }
}
