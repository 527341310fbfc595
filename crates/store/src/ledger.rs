//! Recording: an attempt and what follows from it, in one transaction.
//!
//! Every change is conditional on the row it was decided for, so that repeating a record changes
//! nothing.
//! Never: decide what follows.

use domain::attempt::Attempt;
use domain::dead_letter::DeadReason;
use domain::delivery::{CancelReason, Pending};
use domain::endpoint::Disabled;
use domain::ids::{EndpointKey, MessageKey};
use domain::notice::{News, Run};
use resilience::{Snapshot, Term, Timestamp};
use std::time::Duration;

use crate::Reply;

/// What follows for the delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Done: the pending row goes.
    Delivered,
    /// The pending row moves to this due time.
    Retry {
        /// Not before then.
        due_at: Timestamp,
        /// When it is tried again, as its attempt tells: later than `due_at` where an ordered
        /// endpoint's row keeps its place.
        tried_at: Timestamp,
        /// Sends counted against the budget now.
        budget_used: u32,
        /// The delay that was chosen.
        delay: Duration,
        /// Which rule set it.
        term: Term,
    },
    /// Given up: the pending row becomes a dead letter.
    Dead {
        /// Why.
        reason: DeadReason,
        /// What went wrong, in words.
        error: Option<String>,
    },
    /// Never to be sent.
    Cancelled(CancelReason),
    /// A manual send failed: its own row goes, the delivery stays as it was.
    Unchanged,
}

/// An endpoint that nothing is sent to but a probe now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspended {
    /// Since then.
    pub since: Timestamp,
    /// The next probe is made then.
    pub probe_at: Timestamp,
}

/// A time in which an endpoint did not work: its breaker was open, or it was suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The first failure, or when somebody suspended it.
    pub since: Timestamp,
    /// When it worked again; `None`: it does not yet.
    pub until: Option<Timestamp>,
}

/// What of an outage is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The endpoint does not work, since then.
    Failed(Timestamp),
    /// It works again, and did not since then.
    Recovered(Timestamp),
}

/// What of a lane must survive a restart.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneState {
    /// Whose lane.
    pub endpoint: EndpointKey,
    /// The breaker.
    pub breaker: Snapshot,
    /// Held by `Retry-After`, 429 or, for an ordered endpoint, the head's retry, until then.
    pub hold_until: Option<Timestamp>,
    /// Rounds of 429 without a usable hint since the last success.
    pub throttled_rounds: u32,
    /// Held because of a run of refusals, until then.
    pub rejected_until: Option<Timestamp>,
    /// How long that hold was, for the next one.
    pub rejected_for: Duration,
    /// The run of refusals that holds it: when the first of them came.
    pub rejected_since: Option<Timestamp>,
    /// The owner was told that the endpoint fails, since the last success.
    pub warned: bool,
    /// Suspended.
    pub suspended: Option<Suspended>,
    /// The last outage.
    pub outage: Option<Outage>,
}

/// What of the state that was written last the next one is held against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// What the owner was told.
    pub told: Told,
    /// The last outage.
    pub outage: Option<Outage>,
    /// The run of refusals that held it: when the first of them came.
    pub refused_since: Option<Timestamp>,
}

/// What a lane's owner was told of its suspension, by the state that was written last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// That the endpoint fails.
    pub warned: bool,
    /// That it is suspended since then.
    pub suspended_since: Option<Timestamp>,
}

impl LaneState {
    /// What its owner is told once it is written.
    pub fn told(&self) -> Told {
        Told { warned: self.warned, suspended_since: self.suspended.map(|on| on.since) }
    }

    /// What it is to an owner who was told `before`: whoever writes it notes that in the same
    /// transaction, so that it is told once, however often and on whatever way it is written.
    pub fn news_after(&self, before: Told) -> Option<News> {
        let failing_since = self.breaker.failing_since;
        match (before.suspended_since, self.told().suspended_since) {
            (before, Some(since)) if before != Some(since) => {
                Some(News::EndpointSuspended { failing_since })
            }
            (Some(_), None) => Some(News::EndpointResumed),
            (None, None) if self.warned && !before.warned => {
                failing_since.map(|failing_since| News::EndpointFailing { failing_since })
            }
            _ => None,
        }
    }

    /// What the next state is held against, once this one is written.
    pub fn before(&self) -> Before {
        Before { told: self.told(), outage: self.outage, refused_since: self.rejected_since }
    }

    /// What of runs of refusals is new to an organisation that knew of the one since `before`:
    /// whoever writes it notes that in the same transaction.
    pub fn runs_after(&self, before: Option<Timestamp>) -> impl Iterator<Item = News> + use<> {
        let run = |since| Run { endpoint: self.endpoint, since };
        let (ended, held) = match self.rejected_since == before {
            true => (None, None),
            false => (before.map(run), self.rejected_since.map(run)),
        };
        ended.map(News::RefusalsEnded).into_iter().chain(held.map(News::RefusalsHeld))
    }

    /// What of its outage is new to a store that knew of `before`. An outage whose beginning was
    /// not written counts all the same.
    pub fn turn_after(&self, before: Option<Outage>) -> Option<Turn> {
        let outage = self.outage.filter(|_| self.outage != before)?;
        Some(match outage.until {
            None => Turn::Failed(outage.since),
            Some(_) => Turn::Recovered(outage.since),
        })
    }
}

/// One result to record.
#[derive(Clone, Debug)]
pub struct Record {
    /// The row the send was made for, as it was read.
    pub pending: Pending,
    /// The facts; `None` when nothing was sent (expired, endpoint deleted, payload gone,
    /// poisonous).
    pub attempt: Option<Attempt>,
    /// 12 random bytes of the attempt's public id.
    pub random: [u8; 12],
    /// What follows.
    pub follow: Follow,
    /// The lane's state, when this result changed it.
    pub lane: Option<LaneState>,
    /// The endpoint is disabled by this result.
    pub disable: Option<Disabled>,
    /// Of which run of refusals it is, if it makes a dead letter.
    pub run: Option<Timestamp>,
    /// What of it is told to the organisation, should that be told of such things.
    pub news: RecordNews,
}

/// What of a result is news; that it disables the endpoint, or changes how far its suspension has
/// come, is news by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordNews {
    /// About the delivery.
    pub delivery: Option<News>,
    /// About the breaker.
    pub breaker: Option<News>,
}

/// What recording did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// As asked.
    Applied,
    /// The pending row was gone (cancelled, replayed, already recorded): the attempt is kept once,
    /// and a 2xx still makes the delivery delivered; nothing else changed.
    Late,
}

/// A delivery that was in flight when the process died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Suspect {
    /// Where it went.
    pub endpoint: EndpointKey,
    /// What went.
    pub message: MessageKey,
    /// Crashes while it was alone in flight.
    pub crashes: u32,
    /// Sends of it that were under way when a process died, of which nothing else is known.
    pub sends: u32,
}

/// The arrow that closes the loop.
pub trait Ledger: Send + Sync {
    /// Records all of them in one transaction, at most 500; answers in the same order. On an error
    /// none is recorded and the same call may be made again.
    fn record(&self, records: Vec<Record>) -> Reply<'static, Vec<Recorded>>;

    /// Writes lane states that no result carries (forced states, holds lifted). What changes of a
    /// suspension is noted with the state that changes it ([`LaneState::news_after`]), here as in
    /// [`Ledger::record`], and so is what an outage makes owed
    /// ([`Recoveries`](crate::recoveries::Recoveries)).
    fn keep_lanes(&self, lanes: Vec<LaneState>) -> Reply<'static, ()>;

    /// Replaces the list of suspects.
    fn keep_suspects(&self, suspects: Vec<Suspect>) -> Reply<'static, ()>;

    /// The list of suspects.
    fn suspects(&self) -> Reply<'_, Vec<Suspect>>;
}
