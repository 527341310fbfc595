//! The engine's door: a handle for the server.
//!
//! Never: hold lane state; the dispatcher in `run` does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::application::AppSnapshot;
use domain::delivery::Pending;
use domain::ids::{AppKey, EndpointKey, MessageKey, PublicId};
use domain::nodes::{Partitions, Standing};
use metrics::{Counter, counter};
use resilience::Forced;
use store::StoreError;
use store::commits::{BatchStats, Commits, Elsewhere, Fresh};
use store::directory::IdOrUid;
use store::inbox::Accepted;
use store::nodes::Share;
use store::recall::Once;
use store::tasks::{Started, Task, TaskSpec, TaskStatus};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::alert::chores::{AlertBells, Alerts};
use crate::announce::Announcer;
use crate::elsewhere;
use crate::figures::RollUp;
use crate::forward;
use crate::ingest::{self, IngestError, Post};
use crate::mail::{self, PostOffice};
use crate::parts::{BreakerView, ByHand, NextSend, Parts, Situation, Stores};
use crate::roster::Roster;
use crate::run::{self, Command};
use crate::tasks::{Replaying, Worker};
use crate::throttle::AppRates;

/// A handle on the running engine.
#[derive(Clone)]
pub struct Engine {
    stores: Stores,
    roster: Arc<Roster>,
    rates: Arc<AppRates>,
    commands: mpsc::UnboundedSender<Command>,
    repairs: Arc<AtomicU64>,
    new_task: Arc<Notify>,
    accepted: Counter,
    alerts: AlertBells,
    share: Arc<Share>,
    copies: watch::Receiver<u64>,
}

/// The engine's tasks, to wait for.
pub struct Running {
    dispatcher: JoinHandle<()>,
    tasks: JoinHandle<()>,
    announcing: JoinHandle<()>,
    counting: JoinHandle<()>,
    mailing: Option<JoinHandle<()>>,
    alerting: Vec<JoinHandle<()>>,
    forwarding: Option<forward::Running>,
    commands: mpsc::UnboundedSender<Command>,
}

/// Forwards what the writer says to roster and dispatcher.
struct Hub {
    roster: Arc<Roster>,
    commands: mpsc::UnboundedSender<Command>,
    batches: run::BatchMetrics,
    new_notice: Arc<Notify>,
    new_mail: Arc<Notify>,
    new_task: Arc<Notify>,
    alerts: AlertBells,
    copies: watch::Sender<u64>,
}

impl Commits for Hub {
    fn fresh(&self, rows: Vec<Fresh>) {
        let _gone = self.commands.send(Command::Fresh(rows));
    }

    fn withdrawn(&self, rows: Vec<Pending>) {
        let _gone = self.commands.send(Command::Withdrawn(rows));
    }

    fn directory_changed(&self, app: AppKey, endpoint: Option<EndpointKey>) {
        self.roster.forget(app);
        self.new_task.notify_one();
        let _gone = self.commands.send(Command::Changed(app, endpoint));
    }

    fn acquired(&self, partitions: Partitions) {
        let _gone = self.commands.send(Command::Acquired(partitions));
    }

    fn shed(&self, partitions: Partitions) {
        let _gone = self.commands.send(Command::Shed(partitions));
    }

    fn elsewhere(&self, what: Elsewhere) {
        let command = match what {
            Elsewhere::Pending(endpoints) => Command::Woken(endpoints),
            Elsewhere::Ordered(endpoint, order) => elsewhere::command(endpoint, order),
            Elsewhere::Chore => {
                self.new_task.notify_one();
                return self.noted();
            }
            Elsewhere::Copies => return self.copies.send_modify(|times| *times += 1),
        };
        let _gone = self.commands.send(command);
    }

    fn noted(&self) {
        self.new_notice.notify_one();
        self.new_mail.notify_one();
        self.alerts.told.notify_one();
        self.alerts.written.notify_one();
    }

    fn recovered(&self) {
        self.new_task.notify_one();
    }

    fn batch(&self, stats: BatchStats) {
        self.batches.observe(stats);
    }
}

impl Engine {
    /// Starts the engine on the current runtime. `attach` gives the store its `Commits` before
    /// anything is accepted.
    pub async fn start(
        mut parts: Parts,
        attach: impl FnOnce(Arc<dyn Commits>),
    ) -> Result<(Self, Running), StoreError> {
        let (commands, inbox) = mpsc::unbounded_channel();
        let (roster, forwarding) = forward(&mut parts);
        let [new_notice, new_mail, new_task] = [(); 3].map(|()| Arc::new(Notify::new()));
        let alerts = AlertBells::default();
        let (told, copies) = watch::channel(0);
        attach(Arc::new(Hub {
            roster: Arc::clone(&roster),
            commands: commands.clone(),
            batches: run::BatchMetrics::new(),
            new_notice: Arc::clone(&new_notice),
            new_mail: Arc::clone(&new_mail),
            new_task: Arc::clone(&new_task),
            alerts: alerts.clone(),
            copies: told,
        }));
        let stores = parts.stores.clone();
        stores.notices.keep_mails(parts.mailer.is_some());
        let counts = mail::Counts::new();
        let office = parts.mailer.as_ref().map(|mailer| {
            PostOffice::new(stores.clone(), Arc::clone(&parts.clock), Arc::clone(mailer), counts)
        });
        let alerting = parts.alerting.clone().map(|alerting| {
            Alerts::new(&mut parts, &roster, alerting, commands.clone(), alerts.clone())
        });
        let repairs = Arc::new(AtomicU64::new(0));
        let tracing = parts.tracing.clone();
        let announcer = Announcer::new(stores.clone(), Arc::clone(&roster), parts.wording, tracing);
        let rates = Arc::new(AppRates::new(Arc::clone(&parts.clock), stores.nodes.share()));
        let clock = Arc::clone(&parts.clock);
        let replaying = Replaying {
            rate_per_s: parts.settings.replay_rate_per_s,
            automatic: parts.settings.replay_automatic,
            deadline: parts.settings.attempt_deadline,
        };
        let dispatcher = run::start(parts, commands.clone(), inbox, Arc::clone(&repairs)).await?;
        let asks = elsewhere::has_room(commands.clone(), stores.clone(), Arc::clone(&clock));
        let share = stores.nodes.share();
        let counts = Arc::clone(&stores.counts);
        let roll_up = RollUp::new(counts, Arc::clone(&clock), Arc::clone(&share));
        let worker = Worker::new(stores.clone(), clock, replaying, asks);
        let tasks = tokio::spawn(worker.run(Arc::clone(&new_task)));
        let announcing = tokio::spawn(announcer.run(new_notice));
        let counting = tokio::spawn(roll_up.run());
        let mailing = office.map(|office| tokio::spawn(office.run(new_mail)));
        let alerting = alerting.map(Alerts::start).unwrap_or_default();
        let running = Running {
            dispatcher,
            tasks,
            announcing,
            counting,
            mailing,
            alerting,
            forwarding: forwarding.map(forward::Prepared::start),
            commands: commands.clone(),
        };
        let engine = Self {
            stores,
            roster,
            rates,
            commands,
            repairs,
            new_task,
            accepted: counter!("peyk_messages_total"),
            alerts,
            share,
            copies,
        };
        Ok((engine, running))
    }

    /// The store, for reads and for the directory.
    pub const fn stores(&self) -> &Stores {
        &self.stores
    }

    /// Accepts a message; `Ok` once it is durable.
    pub async fn ingest(&self, post: Post) -> Result<Accepted, IngestError> {
        let made = ingest::ingest(&self.roster, &self.rates, &*self.stores.inbox, post).await;
        if matches!(made, Ok(Accepted::New { .. })) {
            self.accepted.increment(1);
        }
        made
    }

    /// An application with its endpoints, from the cache.
    pub async fn app(
        &self,
        org: PublicId,
        which: &IdOrUid,
    ) -> Result<Option<Arc<AppSnapshot>>, StoreError> {
        self.roster.app(org, which).await
    }

    /// How often the poll found due rows that their lane had missed: a fault in the rules of lanes,
    /// 0 in tests.
    pub fn lane_repairs(&self) -> u64 {
        self.repairs.load(Ordering::Relaxed)
    }

    /// Waits until the lanes have seen every directory change that was committed before this call.
    pub async fn settled(&self) {
        let (reply, wait) = oneshot::channel();
        let _gone = self.commands.send(Command::Settled(reply));
        let _gone = wait.await;
    }

    /// How often another node changed what every node may keep a copy of, beside applications and
    /// their endpoints: event types, revoked tokens.
    pub fn copies(&self) -> watch::Receiver<u64> {
        self.copies.clone()
    }

    /// What this node may do; anything where nobody else uses the store.
    pub fn standing(&self) -> Standing {
        self.share.standing()
    }

    async fn learn(&self, endpoints: &[EndpointKey]) {
        let learned = elsewhere::learn(&self.stores, &self.share, endpoints).await;
        let _gone = learned.map(|learned| self.commands.send(learned));
    }

    /// Whether the dispatcher answers; `false` once it has ended.
    pub async fn answers(&self) -> bool {
        let (reply, wait) = oneshot::channel();
        // Any endpoint will do.
        let _gone = self.commands.send(Command::HasRoom(EndpointKey(0), reply));
        wait.await.is_ok()
    }

    /// The breaker of an endpoint; where another node serves it, as it was stored last.
    pub async fn breaker(&self, endpoint: EndpointKey) -> Option<BreakerView> {
        self.learn(&[endpoint]).await;
        let (reply, wait) = oneshot::channel();
        let _gone = self.commands.send(Command::Breaker(endpoint, reply));
        wait.await.ok()
    }

    /// Forces a breaker, or gives it back to itself; answers once that is stored.
    pub async fn force(
        &self,
        endpoint: EndpointKey,
        forced: Option<Forced>,
    ) -> Result<(), StoreError> {
        self.order(endpoint, ByHand::Forced(forced)).await
    }

    /// Carries out what somebody decided; answers once that is stored.
    pub async fn order(&self, endpoint: EndpointKey, order: ByHand) -> Result<(), StoreError> {
        if !self.share.owns(endpoint) {
            return elsewhere::order(&self.stores, endpoint, order).await;
        }
        let (reply, wait) = oneshot::channel();
        let _gone = self.commands.send(Command::Order(endpoint, order, reply));
        wait.await.unwrap_or(Err(StoreError::Overloaded))
    }

    /// When what is due at these endpoints may be sent, in the same order; `None` once the
    /// dispatcher has ended.
    pub async fn next_sends(&self, endpoints: Vec<EndpointKey>) -> Option<Vec<NextSend>> {
        self.learn(&endpoints).await;
        let (reply, wait) = oneshot::channel();
        let _gone = self.commands.send(Command::NextSends(endpoints, reply));
        wait.await.ok()
    }

    /// Where a delivery is in its lane, and what that waits for; `None` once the dispatcher has
    /// ended.
    pub async fn situation(&self, endpoint: EndpointKey, message: MessageKey) -> Option<Situation> {
        self.learn(&[endpoint]).await;
        let (reply, wait) = oneshot::channel();
        let _gone = self.commands.send(Command::Situation((endpoint, message), reply));
        wait.await.ok()
    }

    /// Somebody put this delivery back by hand: while refusals hold its lane it is let through, to
    /// find out whether the receiver still refuses.
    pub fn let_one(&self, endpoint: EndpointKey, message: MessageKey) {
        let _gone = self.commands.send(Command::LetOne(endpoint, message));
    }

    /// Starts a background task, which is durable then and goes on after a restart.
    pub async fn start_task(
        &self,
        spec: TaskSpec,
        random: [u8; 12],
        once: Once<Started>,
    ) -> Result<Started, StoreError> {
        let started = self.stores.tasks.start_once(spec, random, once).await?;
        self.new_task.notify_one();
        Ok(started)
    }

    /// Stops a background task at once: what it put into lanes is sent, and nothing follows. `None`
    /// when it does not run.
    pub async fn cancel_task(
        &self,
        task: PublicId,
        once: Once<Option<Box<Task>>>,
    ) -> Result<Option<Box<Task>>, StoreError> {
        let ended = self.stores.tasks.end_once(task, (TaskStatus::Cancelled, None), once).await?;
        self.new_task.notify_one();
        Ok(ended)
    }

    /// Rules, routes or silences of alerts changed: they are evaluated at once.
    pub fn alerts_changed(&self) {
        self.alerts.changed.notify_one();
        self.alerts.told.notify_one();
    }

    /// Whether a send of this delivery is under way on this node. One whose result is on its way to
    /// the ledger is waited for: whoever has read its attempt is not told that it is still out.
    pub async fn in_flight(
        &self,
        endpoint: EndpointKey,
        message: MessageKey,
    ) -> Result<bool, StoreError> {
        let (reply, wait) = oneshot::channel();
        let _gone = self.commands.send(Command::InFlight(endpoint, message, reply));
        wait.await.unwrap_or(Err(StoreError::Overloaded))
    }
}

impl Running {
    /// Stops starting sends, lets those in flight end within `grace` (longer ones are dropped and
    /// stay pending), commits their results, and ends.
    pub async fn drain(self, grace: Duration) {
        // What these have begun is in the store's hands, and done whole or not at all.
        self.tasks.abort();
        self.announcing.abort();
        self.counting.abort();
        self.mailing.inspect(JoinHandle::abort);
        self.alerting.iter().for_each(JoinHandle::abort);
        if let Some(forwarding) = &self.forwarding {
            forwarding.end();
        }
        let _gone = self.commands.send(Command::Drain(grace));
        let _ended = self.dispatcher.await;
    }
}

/// The directory at hand. From here on posts go to those who serve their endpoints, where there are
/// others.
fn forward(parts: &mut Parts) -> (Arc<Roster>, Option<forward::Prepared>) {
    let roster = Arc::new(Roster::new(Arc::clone(&parts.stores.directory)));
    let counts = forward::Counts::new();
    let among = parts.stores.nodes.among();
    let forwarding = parts.forwarding.take().zip(among).map(|(forwarding, among)| {
        let (inbox, prepared) =
            forwarding.prepare(among, Arc::clone(&roster), (&parts.stores.inbox, counts));
        parts.stores.inbox = inbox;
        prepared
    });
    (roster, forwarding)
}

#[cfg(test)]
mod tests;
