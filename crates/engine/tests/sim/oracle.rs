//! What must hold: at the start of every send, at each crash, and once everything has come to rest.
//!
//! Never: look into the engine; it judges by what receivers see and what the store holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use domain::attempt::Outcome;
use domain::dead_letter::DeadLetter;
use domain::delivery::{Pending, Trigger};
use domain::endpoint::Ordering;
use domain::ids::{EndpointKey, MessageKey};
use futures_util::FutureExt;
use resilience::{Clock, Forced, RetryAfter, Timestamp};
use store::dead_letters::{DeadFilter, DeadLetters};
use store::ledger::LaneState;
use store::memory::MemoryStore;
use store::page::{Direction, PageOf};
use store::prune::Retention;
use store::queue::Queue;

use super::faults::SimClock;
use super::plan::ORG;
use super::receivers::Receiver;

/// A request as it arrives.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub endpoint: EndpointKey,
    pub message: MessageKey,
    pub number: u32,
}

/// A send that a receiver saw.
#[derive(Clone, Debug)]
pub struct Hit {
    pub seen: Seen,
    /// `None` when a scheduled and a manual row stood beside each other.
    pub trigger: Option<Trigger>,
    pub wall: Timestamp,
    pub life: u32,
    pub status: Option<u16>,
    pub over: bool,
}

/// What the world knows of an endpoint.
#[derive(Clone, Debug)]
pub struct Known {
    pub ordering: Ordering,
    /// Told to stop, and the engine has said that it knows.
    pub shut: bool,
    pub forced_open: bool,
    /// A forced state is on its way, or somebody closed it by hand: what is stored lags behind.
    pub by_hand: bool,
    pub deleted: bool,
    /// It was disabled or deleted at some time.
    pub disturbed: bool,
    /// Dead letters of an outage go back by themselves.
    pub automatic: bool,
    /// Scheduled sends wait until then.
    pub hold_until: Option<Timestamp>,
    /// When that became known.
    pub held_since: Option<Timestamp>,
}

impl Known {
    pub fn new(ordering: Ordering, automatic: bool) -> Self {
        Self {
            ordering,
            automatic,
            shut: false,
            forced_open: false,
            by_hand: false,
            deleted: false,
            disturbed: false,
            hold_until: None,
            held_since: None,
        }
    }
}

/// A send that was begun may still be reading its payload for so long.
const LAG: Duration = Duration::from_millis(400);

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub sends_max: usize,
    pub window_max: usize,
    pub unrecorded_max: usize,
    pub attempts_max: u32,
    pub hold_max: Duration,
    pub retention: Retention,
}

/// The oracle.
pub struct Oracle {
    pub clock: Arc<SimClock>,
    pub store: Arc<MemoryStore>,
    pub receivers: BTreeMap<EndpointKey, Receiver>,
    pub known: BTreeMap<EndpointKey, Known>,
    pub limits: Limits,
    pub life: u32,
    pub hits: Vec<Hit>,
    pub faults: Vec<String>,
    /// Further deliveries that a crash, a resend or a replay excuses.
    pub excused: BTreeMap<(MessageKey, EndpointKey), u32>,
    /// Outages that were seen: when each ended.
    pub outages: BTreeMap<(EndpointKey, Timestamp), Option<Timestamp>>,
    /// Messages whose payload somebody deleted, and when it was gone.
    pub expunged: BTreeMap<MessageKey, Option<Duration>>,
    /// Messages that were stored at some time.
    pub stored: BTreeSet<MessageKey>,
    pub trace: u64,
    /// Prints what happens.
    pub shows: bool,
    /// The clock was set at some time.
    pub stepped: bool,
    started: Timestamp,
    lived: Duration,
    since: Option<tokio::time::Instant>,
}

impl Oracle {
    pub fn new(clock: Arc<SimClock>, store: Arc<MemoryStore>, limits: Limits) -> Self {
        let started = clock.now();
        Self {
            clock,
            store,
            receivers: BTreeMap::new(),
            known: BTreeMap::new(),
            limits,
            life: 0,
            hits: Vec::new(),
            faults: Vec::new(),
            excused: BTreeMap::new(),
            outages: BTreeMap::new(),
            expunged: BTreeMap::new(),
            stored: BTreeSet::new(),
            trace: 0xCBF2_9CE4_8422_2325,
            shows: false,
            stepped: false,
            started,
            lived: Duration::ZERO,
            since: None,
        }
    }

    /// Simulated time since the world began, whatever the wall clock shows.
    pub fn elapsed(&self) -> Duration {
        self.lived + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// The clock shows again what it would show had it never been set.
    pub fn restore_clock(&self) {
        if self.stepped {
            self.clock.set(self.started.plus(self.elapsed()));
        }
    }

    pub fn life_begins(&mut self, pause: Duration, store: Arc<MemoryStore>) {
        self.lived += pause;
        self.since = Some(tokio::time::Instant::now());
        self.store = store;
        self.life += 1;
    }

    pub fn life_ends(&mut self) {
        self.lived = self.elapsed();
        self.since = None;
    }

    pub fn note(&mut self, what: impl std::fmt::Debug) {
        let line = format!("{:?} {what:?}", self.elapsed());
        for byte in line.bytes() {
            self.trace = (self.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        if self.shows {
            eprintln!(
                "{} life {} {line}",
                self.clock.now().as_micros() - self.started.as_micros(),
                self.life
            );
        }
    }

    pub fn wrong(&mut self, text: String) {
        let at = self.elapsed();
        self.faults.push(format!("life {} at {at:?}: {text}", self.life));
    }

    /// A send begins; returns its number.
    pub fn begins(&mut self, seen: Seen) -> usize {
        let wall = self.clock.now();
        let rows = self.store.all_pending();
        let of_delivery = |extra| {
            rows.iter().find(|row| {
                (row.endpoint, row.message, row.trigger.is_extra())
                    == (seen.endpoint, seen.message, extra)
            })
        };
        let (scheduled, manual) = (of_delivery(false), of_delivery(true));
        let trigger = match (scheduled, manual) {
            (Some(_), None) => Some(Trigger::Scheduled),
            (None, Some(_)) => Some(Trigger::Manual),
            (Some(_), Some(_)) => None,
            // It was begun before its payload went.
            (None, None) if self.just_expunged(seen.message) => None,
            (None, None) => {
                self.wrong(format!("{seen:?} has no pending row"));
                None
            }
        };
        if seen.number == 0 {
            self.wrong(format!("{seen:?} has no number"));
        }
        self.watch_outages();
        self.check_bounds(seen);
        if let (Some(Trigger::Scheduled), Some(row)) = (trigger, scheduled) {
            self.check_scheduled(seen, *row, wall);
            self.check_order(seen, *row, &rows);
            self.check_breaker(seen, wall);
            self.check_suspension(seen, wall);
        }
        self.note((seen, trigger));
        let life = self.life;
        self.hits.push(Hit { seen, trigger, wall, life, status: None, over: false });
        self.hits.len() - 1
    }

    /// A send is over.
    pub fn ends(&mut self, number: usize, outcome: &Outcome) {
        let (status, hint) = match outcome {
            Outcome::Answered(answer) => (answer.status, answer.retry_after),
            Outcome::Failed(_) => (0, RetryAfter::Absent),
        };
        let hit = &mut self.hits[number];
        (hit.status, hit.over) = (Some(status), true);
        let (seen, trigger) = (hit.seen, hit.trigger);
        let holds = matches!((status, hint), (429 | 503, RetryAfter::Wait(_)));
        if let (true, RetryAfter::Wait(wait), Some(Trigger::Scheduled)) = (holds, hint, trigger) {
            let now = self.clock.now();
            let until = now.plus(wait.min(self.limits.hold_max));
            if let Some(known) = self.known.get_mut(&seen.endpoint) {
                if known.hold_until.is_none_or(|until| until <= now) {
                    known.held_since = Some(now);
                }
                known.hold_until = known.hold_until.max(Some(until));
            }
        }
        self.note((seen, status));
    }

    /// Whether a payload may have gone so lately that a send which had begun still has it.
    fn just_expunged(&self, message: MessageKey) -> bool {
        let at = self.expunged.get(&message);
        at.is_some_and(|at| at.is_none_or(|at| self.elapsed() <= at + LAG))
    }

    /// Dead letters, as anybody can list them.
    pub fn letters(&self, filter: DeadFilter) -> Vec<DeadLetter> {
        let page = PageOf { beyond: None, direction: Direction::Ascending, limit: usize::MAX };
        let found = self.store.list(ORG, filter, page).now_or_never();
        found.expect("memory answers at once").expect("memory does not fail").rows
    }

    fn out(&self, endpoint: Option<EndpointKey>) -> impl Iterator<Item = &Hit> {
        let life = self.life;
        self.hits.iter().rev().filter(move |hit| {
            hit.life == life
                && !hit.over
                && endpoint.is_none_or(|endpoint| endpoint == hit.seen.endpoint)
        })
    }

    fn check_bounds(&mut self, seen: Seen) {
        let (all, here) = (self.out(None).count() + 1, self.out(Some(seen.endpoint)).count() + 1);
        let known = &self.known[&seen.endpoint];
        let ordered = known.ordering != Ordering::Unordered;
        let (shut, window) = (known.shut, if ordered { 1 } else { self.limits.window_max });
        if all > self.limits.sends_max {
            self.wrong(format!("{all} sends in flight"));
        }
        if here > window {
            self.wrong(format!("{here} sends in flight to {:?}", seen.endpoint));
        }
        if shut {
            self.wrong(format!("{seen:?} sent to an endpoint that is shut"));
        }
        let twice = self.out(Some(seen.endpoint)).any(|hit| hit.seen.message == seen.message);
        if twice {
            self.wrong(format!("{seen:?} is in flight twice"));
        }
    }

    fn check_scheduled(&mut self, seen: Seen, row: Pending, wall: Timestamp) {
        if row.due_at > wall && !self.stepped {
            self.wrong(format!("{seen:?} sent {:?} before it is due", row.due_at.since(wall)));
        }
        if row.budget_used >= self.limits.attempts_max {
            self.wrong(format!("{seen:?} sent beyond its budget: {row:?}"));
        }
        let known = self.known[&seen.endpoint].clone();
        let held = known.hold_until.is_some_and(|until| until > wall)
            && known.held_since.is_some_and(|since| since.plus(LAG) < wall);
        if held && !self.stepped && !known.by_hand {
            let text = format!("{seen:?} sent to a held lane, {:?} {wall:?}", known.hold_until);
            self.wrong(text);
        }
        if known.forced_open {
            self.wrong(format!("{seen:?} sent though the breaker is forced open"));
        }
    }

    /// Ordered: what is sent is the first row there is, and behind a gap nothing is.
    fn check_order(&mut self, seen: Seen, row: Pending, rows: &[Pending]) {
        let ordering = self.known[&seen.endpoint].ordering;
        if ordering == Ordering::Unordered {
            return;
        }
        let first = rows.iter().find(|row| row.endpoint == seen.endpoint);
        if let Some(first) = first.filter(|first| first.due_at < row.due_at && !self.stepped) {
            self.wrong(format!("{seen:?} overtakes {first:?}"));
        }
        let later = |hit: &&Hit| {
            let scheduled = hit.trigger == Some(Trigger::Scheduled);
            scheduled && hit.seen.endpoint == seen.endpoint && hit.seen.message > seen.message
        };
        let earlier = self.hits.iter().rev().find(later).map(|hit| hit.seen);
        let first_send = self
            .hits
            .iter()
            .all(|hit| (hit.seen.endpoint, hit.seen.message) != (seen.endpoint, seen.message));
        // What was put back has its place at the end.
        let first_send = first_send && row.trigger == Trigger::Scheduled;
        if let Some(earlier) = earlier.filter(|_| first_send && !self.stepped) {
            self.wrong(format!("{seen:?} is sent first after {earlier:?}"));
        }
        let filter = DeadFilter { endpoint: Some(seen.endpoint), ..DeadFilter::default() };
        let is_gap = |letter: &DeadLetter| !self.just_expunged(letter.message);
        if ordering == Ordering::Strict && self.letters(filter).iter().any(is_gap) {
            self.wrong(format!("{seen:?} is sent past a gap"));
        }
    }

    fn check_breaker(&mut self, seen: Seen, wall: Timestamp) {
        let known = &self.known[&seen.endpoint];
        if known.by_hand || self.stepped {
            return;
        }
        let Some(lane) = self.lane(seen.endpoint) else { return };
        let Some(open_until) = lane.breaker.open_until else { return };
        if lane.breaker.forced == Some(Forced::Closed) {
            return;
        }
        let mut half_open_from = open_until;
        if open_until > wall {
            half_open_from = lane.breaker.since.plus(LAG);
            if wall <= half_open_from {
                return;
            }
            // One that is switched off and on again is probed at once.
            if !known.disturbed {
                self.wrong(format!("{seen:?} sent while the breaker is open: {:?}", lane.breaker));
                return;
            }
        }
        let in_half_open = |hit: &&Hit| {
            hit.seen.endpoint == seen.endpoint
                && hit.wall >= half_open_from
                && hit.life == self.life
                && hit.trigger == Some(Trigger::Scheduled)
        };
        let probes: Vec<Hit> = self.hits.iter().filter(in_half_open).cloned().collect();
        let closed = probes.iter().any(|hit| hit.status.is_some_and(|status| status / 100 == 2));
        if !closed && probes.iter().any(|hit| !hit.over) {
            self.wrong(format!("{seen:?} is a second probe beside {probes:?}"));
        }
    }

    /// Suspended: nothing but one probe, and that not before its time.
    fn check_suspension(&mut self, seen: Seen, wall: Timestamp) {
        let known = self.known[&seen.endpoint].clone();
        let Some(on) = self.lane(seen.endpoint).and_then(|lane| lane.suspended) else { return };
        if known.by_hand || self.stepped || wall <= on.since.plus(LAG) {
            return;
        }
        // One that is switched off and on again is probed at once.
        if on.probe_at > wall && !known.disturbed {
            self.wrong(format!("{seen:?} sent to a suspended endpoint: {on:?} {wall:?}"));
        }
        let probe =
            |hit: &&Hit| hit.wall > on.since.plus(LAG) && hit.trigger == Some(Trigger::Scheduled);
        let others = self.out(Some(seen.endpoint)).filter(probe).count();
        if others > 0 {
            self.wrong(format!("{seen:?} is one probe of {others} to a suspended endpoint"));
        }
    }

    /// Notes the outages that the store knows of.
    pub fn watch_outages(&mut self) {
        for lane in self.lanes() {
            if let Some(outage) = lane.outage {
                self.outages.insert((lane.endpoint, outage.since), outage.until);
            }
        }
    }

    fn lane(&self, endpoint: EndpointKey) -> Option<LaneState> {
        self.lanes().into_iter().find(|lane| lane.endpoint == endpoint)
    }

    fn lanes(&self) -> Vec<LaneState> {
        let lanes = self.store.lane_states().now_or_never().expect("memory answers at once");
        lanes.expect("memory does not fail")
    }
}
