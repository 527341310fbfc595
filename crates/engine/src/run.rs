//! The dispatcher: one task that owns every lane and knows the order of the stages.
//!
//! Everything that happens comes in as a `Command`, in one queue, so that what the writer said
//! before an answer is seen before what follows from it. A turn: take what has come in, fire
//! timers, let lanes start sends, hand results to the ledger. The only loop of a delivery goes
//! through the store.
//! Never: wait for the store or the network; that happens in tasks which report back by a
//! `Command`.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use domain::ids::{EndpointKey, MessageKey};
use domain::until::Until;
use resilience::{Chance, Clock, Timestamp};
use store::StoreError;
use store::ledger::LaneState;
use store::nodes::Share;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::deliver::Courier;
use crate::events::Observer;
use crate::parts::{Parts, Stores};
use crate::settings::Settings;

pub use command::{Asked, Command, Ended};
use entry::Entry;
use flights::Flights;
use home::Homes;
use lane::Lane;
use own_fault::OwnFault;
use pruner::Pruner;
use round::Round;
use storage::Storage;
use suspects::Suspects;
pub use telemetry::BatchMetrics;
use telemetry::Telemetry;

mod arrived;
mod command;
mod control;
mod due;
mod entry;
mod finish;
mod flights;
mod gap;
mod health;
mod holds;
mod home;
mod lane;
mod lookout;
mod moves;
mod own_fault;
mod prune;
mod pruner;
mod recordable;
mod recorded;
mod refill;
mod round;
mod serve;
mod situation;
mod start;
mod step;
mod storage;
mod suspects;
mod sweep;
mod telemetry;
mod tell;
mod withdraw;

/// No timer sleeps longer without reading the wall clock again.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// Commands taken in one turn.
const COMMANDS_MAX: usize = 512;

/// The dispatcher's memory.
struct Dispatcher {
    settings: Settings,
    stores: Stores,
    courier: Arc<Courier>,
    clock: Arc<dyn Clock>,
    chance: Box<dyn Chance>,
    observer: Arc<dyn Observer>,
    commands: mpsc::UnboundedSender<Command>,
    telemetry: Telemetry,
    /// What this node owns, and whether it may send.
    share: Arc<Share>,
    homes: Homes,
    lanes: HashMap<EndpointKey, Lane>,
    kept: HashMap<EndpointKey, LaneState>,
    turn: VecDeque<EndpointKey>,
    timers: BTreeSet<(Timestamp, EndpointKey)>,
    flights: Flights,
    own_fault: OwnFault,
    storage: Storage,
    suspects: Suspects,
    results: Results,
    poll: Poll,
    /// The look at all lanes that is on its way.
    round: Option<Round>,
    pruner: Pruner,
    loading: usize,
    settling: Vec<oneshot::Sender<()>>,
    /// Questions about sends whose results are on their way to the ledger.
    asked: Vec<(EndpointKey, MessageKey, Asked)>,
    cached_bytes: usize,
    ids: usize,
    busy_lanes: usize,
    starved: VecDeque<EndpointKey>,
    draining: bool,
    /// The last reading of the clock, and the latest time that it ever showed.
    seen_at: Timestamp,
    latest: Timestamp,
    repairs: Arc<AtomicU64>,
}

/// Results on their way to the ledger.
#[derive(Default)]
struct Results {
    waiting: Vec<Entry>,
    unrecorded: usize,
    /// Batches of results that the ledger has not answered for.
    committing: usize,
    recording: bool,
    failures: u32,
}

/// The repair poll.
#[derive(Default)]
struct Poll {
    next_at: Timestamp,
    after: Option<EndpointKey>,
    running: bool,
}

/// Reads what a restart must know and starts the dispatcher.
pub(crate) async fn start(
    parts: Parts,
    commands: mpsc::UnboundedSender<Command>,
    inbox: mpsc::UnboundedReceiver<Command>,
    repairs: Arc<AtomicU64>,
) -> Result<JoinHandle<()>, StoreError> {
    let now = parts.clock.now();
    let flights = Flights::open(parts.settings.sends_max, parts.inflight_path.as_deref());
    let suspects = Suspects::recover(&parts.stores, flights.found(), now).await?;
    let share = parts.stores.nodes.share();
    // Of what is shared between nodes the states come with the lanes.
    let kept = match share.is_shared() {
        false => parts.stores.queue.lane_states().await?,
        true => Vec::new(),
    };
    let (transport, clock) = (Arc::clone(&parts.transport), Arc::clone(&parts.clock));
    let courier = Courier::new(&parts.settings, transport, clock, parts.tracing.clone());
    let mut dispatcher = Dispatcher {
        courier: Arc::new(courier),
        telemetry: Telemetry::new(),
        homes: Homes::new(&share),
        share,
        lanes: HashMap::new(),
        kept: kept.into_iter().map(|state| (state.endpoint, state)).collect(),
        turn: VecDeque::new(),
        timers: BTreeSet::new(),
        flights,
        own_fault: OwnFault::new(),
        storage: Storage::default(),
        suspects,
        results: Results::default(),
        poll: Poll { next_at: now.plus(SLEEP_MAX), ..Poll::default() },
        round: None,
        pruner: Pruner::new(now),
        loading: 0,
        settling: Vec::new(),
        asked: Vec::new(),
        cached_bytes: 0,
        ids: 0,
        busy_lanes: 0,
        starved: VecDeque::new(),
        draining: false,
        seen_at: now,
        latest: now,
        repairs,
        settings: parts.settings,
        stores: parts.stores,
        clock: parts.clock,
        chance: parts.chance,
        observer: parts.observer,
        commands,
    };
    if !dispatcher.share.is_shared() {
        dispatcher.suspects_first();
        dispatcher.recover_lanes(now).await?;
    }
    Ok(tokio::spawn(dispatcher.run(inbox)))
}

impl Dispatcher {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Command>) {
        let mut batch = Vec::with_capacity(COMMANDS_MAX);
        // What was due before a restart does not wait for the first command.
        self.turn(&mut batch);
        while !self.is_done() {
            let sleep = self.sleep();
            tokio::select! {
                biased;
                _ = inbox.recv_many(&mut batch, COMMANDS_MAX) => {}
                () = tokio::time::sleep(sleep) => {}
            }
            self.turn(&mut batch);
        }
        self.tell_unrecorded();
        // What was found in the file at the start is not forgotten before it is stored.
        if !self.suspects.is_unkept() {
            self.flights.close();
        }
    }

    /// One turn: what has come in, then timers, sends and results.
    fn turn(&mut self, batch: &mut Vec<Command>) {
        let now = self.clock.now();
        for command in batch.drain(..) {
            self.handle(command, now);
        }
        let stepped = now.plus(SLEEP_MAX) < std::mem::replace(&mut self.seen_at, now);
        self.latest = self.latest.max(now);
        if stepped {
            self.look_again(now);
        }
        self.look_at_lease();
        self.fire_timers(now);
        self.poll(now);
        self.look_on(now);
        self.prune(now);
        self.try_storage(now);
        self.serve(now);
        self.flush_results();
    }

    fn handle(&mut self, command: Command, now: Timestamp) {
        match command {
            Command::Fresh(rows) => self.fresh(rows, now),
            Command::Withdrawn(rows) => self.withdrawn(rows),
            Command::Pruned(answer) => self.pruned(answer),
            Command::Finished(slot, ended) => self.finished(slot, ended, now),
            Command::Recorded(entries, answer) => self.recorded(entries, answer, now),
            Command::RecordAgain => self.results.recording = false,
            Command::StorageTried(answer) => self.storage_tried(answer, now),
            Command::SuspectsStored(answer) => self.suspects_stored(answer, now),
            Command::Changed(app, endpoint) => self.changed(app, endpoint),
            Command::Loaded(endpoint, read) => self.loaded(endpoint, read, now),
            Command::Refilled(endpoint, read) => self.refilled(endpoint, read, now),
            Command::Swept(endpoint, read) => self.swept(endpoint, read, now),
            Command::Gap(endpoint, found) => self.gap(endpoint, found),
            Command::Weighed(slot, bytes) => self.flights.weigh(slot, bytes),
            Command::Polled(read, asked_at) => self.polled(read, asked_at, now),
            Command::SuspectsKept(answer) => self.suspects_kept(answer),
            Command::OrderKept(before, answer, reply) => {
                self.order_kept(&before, &answer);
                let _gone = reply.send(answer);
            }
            Command::Settled(reply) => self.settled(reply),
            Command::Breaker(endpoint, reply) => self.show_breaker(endpoint, reply, now),
            Command::Order(endpoint, order, reply) => self.order(endpoint, order, reply),
            Command::Asked(endpoint, is_well) => self.asked_health(endpoint, is_well, now),
            Command::LaneKept(endpoint, answer) => self.lane_kept(endpoint, &answer),
            Command::NextSends(endpoints, reply) => self.next_sends(&endpoints, reply, now),
            Command::Situation(of, reply) => self.show_situation(of, reply, now),
            Command::Paused(reply) => drop(reply.send(self.is_paused())),
            Command::LetOne(endpoint, message) => self.let_one(endpoint, message),
            Command::InFlight(endpoint, message, reply) => self.in_flight(endpoint, message, reply),
            Command::HasRoom(endpoint, reply) => {
                let _gone = reply.send(self.has_room(endpoint));
            }
            Command::Acquired(partitions) => self.acquired(partitions),
            Command::Arrived(round, read) => self.arrived(round, read, now),
            Command::Shed(partitions) => self.shed(partitions),
            Command::LookAtShed => self.look_at_shed(),
            Command::ShedOver(partitions) => self.shed_over(partitions),
            Command::Woken(endpoints) => self.woken(endpoints),
            Command::Learned(endpoints, states) => self.learned(&endpoints, states),
            Command::Drain(grace) => self.drain(grace),
            Command::DrainOver => self.drain_over(),
        }
    }

    /// How long nothing needs doing unless a command comes.
    fn sleep(&self) -> Duration {
        let now = self.clock.now();
        let timer = self.timers.first().map(|(at, _)| *at);
        let pause = self.own_fault.paused_until(now).filter(|_| !self.turn.is_empty());
        let poll = Some(self.poll.next_at).filter(|_| !self.poll.running);
        let storage = self.storage.next_at().filter(|_| !self.draining);
        let round = self.round.as_ref().map(|_| now);
        let next = [timer, pause, poll, round, self.suspects.next_at(now), storage];
        let first = next.into_iter().flatten().min().unwrap_or(Timestamp::MAX);
        let lease = self.share.changes_in().unwrap_or(SLEEP_MAX);
        // Never zero, so that a clock that stands still does not make this spin.
        first.since(now).min(lease).clamp(Duration::from_millis(1), SLEEP_MAX)
    }

    fn fire_timers(&mut self, now: Timestamp) {
        while let Some(&(at, endpoint)) = self.timers.first() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            if let Some(lane) = self.lanes.get_mut(&endpoint) {
                lane.timer = None;
                lane.book.fall_due(now);
                self.enqueue(endpoint);
            }
        }
    }

    /// The clock stepped back: what waits for a time far ahead may not have to.
    fn look_again(&mut self, now: Timestamp) {
        let waiting: Vec<EndpointKey> = self.timers.iter().map(|(_, endpoint)| *endpoint).collect();
        let unsent = self.until(now).unsent();
        for endpoint in waiting {
            if let Some(lane) = self.lanes.get_mut(&endpoint) {
                lane.book.fall_due(unsent);
            }
            self.enqueue(endpoint);
        }
    }

    /// Which rows are due.
    fn until(&self, now: Timestamp) -> Until {
        Until::of(now, self.latest)
    }

    fn set_timer(&mut self, endpoint: EndpointKey, at: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return };
        if lane.timer.is_some_and(|set| set <= at) {
            return;
        }
        if let Some(old) = lane.timer.replace(at) {
            self.timers.remove(&(old, endpoint));
        }
        self.timers.insert((at, endpoint));
    }

    /// Gives a lane its turn.
    fn enqueue(&mut self, endpoint: EndpointKey) {
        if let Some(lane) = self.lanes.get_mut(&endpoint)
            && !std::mem::replace(&mut lane.queued, true)
        {
            self.turn.push_back(endpoint);
        }
    }

    /// Tells the dispatcher something once `work` is done.
    fn report(&self, work: impl Future<Output = Command> + Send + 'static) {
        let commands = self.commands.clone();
        tokio::spawn(async move {
            let _gone = commands.send(work.await);
        });
    }

    fn show(&self) {
        #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
        let shown = |count: usize| count as f64;
        self.telemetry.in_flight.set(shown(self.flights.count()));
        self.telemetry.unrecorded.set(shown(self.results.unrecorded));
        self.telemetry.lanes.set(shown(self.lanes.len()));
        self.telemetry.ids.set(shown(self.ids));
        self.telemetry.paused(self.is_paused());
    }
}
