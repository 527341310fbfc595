//! Dead letters of an outage that is over: the task that puts them back begins by itself.
//!
//! In: what the store says is owed, and to which endpoints. Out: a task for each of them that wants
//! it; what is owed to others is forgotten. One that cannot begin yet, because another task is at
//! work on the same deliveries or too many are, is looked at again.
//! Never: note what is owed, or decide that an outage is over; the store has that from the lane.

use domain::application::AppSnapshot;
use domain::endpoint::Endpoint;
use domain::idempotency::task_random;
use domain::ids::{EndpointKey, key_time};
use store::StoreError;
use store::recoveries::Recovery;
use store::tasks::{Started, Task, TaskKind, TaskSpec, TaskStatus, Work};

use super::plan::Settling;
use super::{Step, TASKS_MAX, Worker};

/// Tasks of outages that run side by side, so that what people ask for has room beside them.
const OF_OUTAGES_MAX: usize = TASKS_MAX / 2;
/// For results to be written down.
const SLACK: std::time::Duration = std::time::Duration::from_secs(1);
/// What is owed that is read at once.
const PIECE: usize = 64;

/// Why a task of an outage ends though nothing failed.
const SWITCHED_OFF: &str = "automatic replay was switched off";
const DISABLED: &str = "the endpoint was disabled; the rest goes back when it is enabled";

/// What became of something owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    /// Its task runs.
    Runs,
    /// It has to wait for another task.
    Waits,
    /// Its endpoint is switched off, or there is nothing to begin.
    No,
}

impl Worker {
    /// Begins what is owed; whether anything began. `running` are the tasks that run.
    pub(super) async fn begin_recoveries(&mut self, running: &[Task]) -> Result<bool, StoreError> {
        let of_outage = |task: &&Task| task.spec.work.kind() == TaskKind::Outage;
        let mut count = running.iter().filter(of_outage).count();
        let (mut after, mut began) = (None, false);
        self.waits = false;
        loop {
            let owed = self.stores.recoveries.ready(after, PIECE).await?;
            for recovery in &owed {
                if count >= OF_OUTAGES_MAX {
                    self.waits = true;
                    return Ok(began);
                }
                let is_running = |task: &Task| task.spec.endpoint == Some(recovery.endpoint);
                if running.iter().filter(of_outage).any(is_running) {
                    continue;
                }
                match self.begin(*recovery).await? {
                    Begun::Runs => (began, count) = (true, count + 1),
                    Begun::Waits => self.waits = true,
                    Begun::No => {}
                }
            }
            after = owed.last().map(|recovery| recovery.endpoint);
            if owed.len() < PIECE {
                return Ok(began);
            }
        }
    }

    async fn begin(&self, recovery: Recovery) -> Result<Begun, StoreError> {
        let endpoint = self.stores.directory.endpoint(recovery.endpoint).await?;
        let Some(endpoint) = endpoint.filter(|endpoint| self.is_automatic(endpoint)) else {
            self.stores.recoveries.forget(recovery).await?;
            return Ok(Begun::No);
        };
        if endpoint.spec.disabled.is_some() {
            return Ok(Begun::No);
        }
        let Some(app) = self.stores.directory.app_by_key(endpoint.app).await? else {
            return Ok(Begun::No);
        };
        let spec = self.spec(&app, endpoint.key, recovery);
        let installation = self.stores.directory.installation();
        let random = task_random(&installation, endpoint.key, self.clock.now());
        Ok(match self.stores.tasks.start(spec, random).await? {
            Started::New(_) => Begun::Runs,
            Started::Overlaps(_) => Begun::Waits,
            Started::NotOwed => Begun::No,
        })
    }

    fn spec(&self, app: &AppSnapshot, endpoint: EndpointKey, recovery: Recovery) -> TaskSpec {
        TaskSpec {
            org: app.app.org,
            app: app.app.key,
            endpoint: Some(endpoint),
            work: Work::Outage(recovery.since),
            rate_per_s: None,
            total: None,
        }
    }

    fn is_automatic(&self, endpoint: &Endpoint) -> bool {
        endpoint.spec.auto_replay.unwrap_or(self.replaying.automatic)
    }

    /// Until when sends may be out, and what is too old unread, that were there when a task of an
    /// outage began. Nothing that it put back can be too old as soon.
    pub(super) fn settling(&self, task: &Task, endpoint: &Endpoint) -> Settling {
        let deadline = endpoint.spec.timeout.unwrap_or(self.replaying.deadline);
        let (now, began) = (self.clock.now(), key_time(task.id.key()));
        let until = began.plus(deadline + SLACK);
        Settling { until, is_over: now < began || now >= until }
    }

    /// Ends a task of an outage whose endpoint does not want it (any more).
    pub(super) async fn unwanted(
        &self,
        task: &Task,
        endpoint: &Endpoint,
    ) -> Result<Option<Step>, StoreError> {
        let (status, why) = match (self.is_automatic(endpoint), endpoint.spec.disabled) {
            _ if task.spec.work.kind() != TaskKind::Outage => return Ok(None),
            (false, _) => (TaskStatus::Cancelled, SWITCHED_OFF),
            (true, Some(_)) => (TaskStatus::Stopped, DISABLED),
            (true, None) => return Ok(None),
        };
        self.stores.tasks.end(task.id, status, Some(why.to_owned())).await?;
        Ok(Some(Step::Moved))
    }
}
