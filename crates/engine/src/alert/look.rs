//! One reading of the installation for the rules of alerts.
//!
//! What it costs depends on the rules and on what waits now, not on what was ever sent. Deliveries
//! of alerts are left out of all of it, so that an alert about alerts comes from nowhere.
//! Never: change anything, or ask the dispatcher for more than it has at hand.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use domain::alert::reading::{Minute, Reading};
use domain::alert::rule::{Condition, Rule};
use domain::classify::Class;
use domain::dead_letter::DeadReason;
use domain::figures::Figures;
use domain::ids::{AppKey, EndpointKey};
use domain::limits::ALERT_FAILING_MAX;
use domain::notice::MANAGEMENT;
use resilience::Timestamp;
use store::counts::{Of, StepFigures, Steps};
use store::directory::IdOrUid;
use store::{StoreError, Stores};

use crate::parts::NextSend;
use crate::roster::Roster;

use super::parts::APP_UID;

/// Endpoints with pending rows looked at in one read, and in one evaluation.
const PIECE: usize = 250;
const PIECES_MAX: usize = 40;
/// Late endpoints that are read to see whether they are switched off.
const CANDIDATES_MAX: usize = 50;

/// An answer of the dispatcher.
pub type Asked<T> = Pin<Box<dyn Future<Output = Option<T>> + Send>>;

/// What the dispatcher is asked.
pub struct Dispatching {
    /// When what is due at these endpoints may be sent, in the same order.
    pub next_sends: Box<dyn Fn(Vec<EndpointKey>) -> Asked<Vec<NextSend>> + Send + Sync>,
    /// Whether nothing is sent because of a fault on this side.
    pub paused: Box<dyn Fn() -> Asked<bool> + Send + Sync>,
}

/// Reads what rules go by.
pub struct Lookout {
    stores: Stores,
    roster: Arc<Roster>,
    dispatching: Dispatching,
}

impl Lookout {
    /// Reads `stores`, and asks the dispatcher.
    pub const fn new(stores: Stores, roster: Arc<Roster>, dispatching: Dispatching) -> Self {
        Self { stores, roster, dispatching }
    }

    /// What these rules need, as it is now.
    pub async fn read(&self, rules: &[Rule], now: Timestamp) -> Result<Reading, StoreError> {
        let watched = || rules.iter().filter(|rule| rule.enabled).map(|rule| &rule.condition);
        let own = self.roster.app(MANAGEMENT, &IdOrUid::Uid(APP_UID.to_owned())).await?;
        let ours: Vec<EndpointKey> =
            own.iter().flat_map(|own| &own.endpoints).map(|endpoint| endpoint.key).collect();
        let own = own.map(|own| own.app.key);
        let mut reading = Reading::default();
        if let Some(window) = watched().filter_map(Condition::window).max() {
            match self.minutes(window, own, now).await {
                Ok(minutes) => reading.minutes = Some(minutes),
                Err(error) => tracing::warn!(%error, "counters cannot be read; their rules wait"),
            }
        }
        let after = |condition: &Condition| match condition {
            Condition::EndpointFailing { after } => Some(*after),
            _ => None,
        };
        if let Some(after) = watched().filter_map(after).min() {
            let since = now.minus(after);
            reading.failing = self.stores.alerts.failing(since, own, ALERT_FAILING_MAX).await?;
        }
        let late = |condition: &Condition| match condition {
            Condition::OldestDue { above } => Some(*above),
            Condition::NothingDelivered { .. } => Some(Duration::ZERO),
            _ => None,
        };
        if let Some(late) = watched().filter_map(late).min() {
            reading.oldest_due = self.oldest_due(now.minus(late), &ours).await?;
        }
        if watched().any(|condition| *condition == Condition::SendingPaused) {
            reading.paused = (self.dispatching.paused)().await.unwrap_or_default();
        }
        Ok(reading)
    }

    /// Counters of the last minutes, our own left out.
    async fn minutes(
        &self,
        window: Duration,
        own: Option<AppKey>,
        now: Timestamp,
    ) -> Result<Vec<Minute>, StoreError> {
        let whole = u32::try_from(window.as_secs().div_ceil(60)).unwrap_or(u32::MAX);
        let steps = Steps::recent(now, whole);
        let all = self.stores.counts.read(Of::All, steps).await?;
        let ours = match own {
            Some(own) => self.stores.counts.read(Of::App(own), steps).await?,
            None => Vec::new(),
        };
        Ok(all.iter().map(|step| minute(step, ours.iter().find(|it| it.at == step.at))).collect())
    }

    /// When the oldest delivery fell due that is due since `until` or longer and that nothing holds
    /// back.
    async fn oldest_due(
        &self,
        until: Timestamp,
        ours: &[EndpointKey],
    ) -> Result<Option<Timestamp>, StoreError> {
        let (_, first) = self.stores.queue.depth().await?;
        if first.is_none_or(|first| first > until) {
            return Ok(None);
        }
        let (mut late, mut after) = (Vec::new(), None);
        for _ in 0..PIECES_MAX {
            let found = self.stores.queue.endpoints(after, PIECE).await?;
            after = found.last().map(|(endpoint, _)| *endpoint);
            let is_last = found.len() < PIECE;
            let is_late = |(endpoint, due): &(EndpointKey, Timestamp)| {
                *due <= until && !ours.contains(endpoint)
            };
            late.extend(self.not_held(found.into_iter().filter(is_late).collect()).await);
            if is_last {
                break;
            }
        }
        late.sort_unstable_by_key(|(_, due)| *due);
        for (endpoint, due) in late.into_iter().take(CANDIDATES_MAX) {
            let found = self.stores.directory.endpoint(endpoint).await?;
            if found.is_some_and(|found| found.spec.disabled.is_none()) {
                return Ok(Some(due));
            }
        }
        Ok(None)
    }

    /// Those of these endpoints that nothing holds back.
    async fn not_held(&self, late: Vec<(EndpointKey, Timestamp)>) -> Vec<(EndpointKey, Timestamp)> {
        if late.is_empty() {
            return late;
        }
        let keys = late.iter().map(|(endpoint, _)| *endpoint).collect();
        let next = (self.dispatching.next_sends)(keys).await.unwrap_or_default();
        let free = late.into_iter().zip(next).filter(|(_, next)| *next == NextSend::WhenDue);
        free.map(|(late, _)| late).collect()
    }
}

/// One minute of the server, without what is ours of it.
fn minute(all: &StepFigures, ours: Option<&StepFigures>) -> Minute {
    let none = Figures::default();
    let at = all.at;
    let (all, own) = (&all.figures, ours.map_or(&none, |ours| &ours.figures));
    let sent = |class| all.sent(class).count.saturating_sub(own.sent(class).count);
    // A fault on this side says nothing of deliveries; `sending_paused` is about those.
    let attempts = Class::ALL.into_iter().filter(|class| *class != Class::Internal).map(sent).sum();
    let delivered = sent(Class::Success);
    Minute {
        at,
        accepted: all.accepted().saturating_sub(own.accepted()),
        delivered,
        attempts,
        failed: attempts - delivered,
        dead: DeadReason::ALL.map(|reason| all.dead(reason).saturating_sub(own.dead(reason))),
    }
}
