//! Chore: evaluates the rules of alerts, and hands what follows to the store.
//!
//! In: rules and routes of settings and of the store, one reading of the installation. Out: one
//! settlement, notifications included; others send them. Of several nodes one evaluates: whoever
//! starts the engine says which.
//! Never: send, word a notification, or make a delivery wait.

use std::sync::Arc;
use std::time::Duration;

use domain::alert::evaluate::{Standing, evaluate};
use domain::alert::incident::{Incident, Phase};
use domain::alert::{route, rule};
use domain::limits::{ALERT_HOLD_DOWN, ALERT_INCIDENT_DAYS};
use metrics::{Gauge, gauge};
use resilience::Clock;
use store::{StoreError, Stores};
use tokio::sync::Notify;

use super::look::Lookout;
use super::parts::Alerting;

/// After the store failed.
const AFTER_FAULT: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Evaluates.
pub struct Watch {
    stores: Stores,
    clock: Arc<dyn Clock>,
    alerting: Alerting,
    lookout: Lookout,
    installation: [u8; 16],
    firing: Gauge,
}

impl Watch {
    /// Watches what `lookout` sees.
    pub fn new(
        stores: Stores,
        clock: Arc<dyn Clock>,
        alerting: Alerting,
        lookout: Lookout,
    ) -> Self {
        let installation = stores.directory.installation();
        let firing = gauge!("peyk_alerts_firing");
        firing.set(0.0);
        Self { stores, clock, alerting, lookout, installation, firing }
    }

    /// Works until it is dropped; `wake` tells of changed rules and routes.
    pub async fn run(self, wake: Arc<Notify>) {
        loop {
            let pause = match self.round().await {
                Ok(()) => self.alerting.interval,
                Err(error) => {
                    tracing::warn!(%error, "rules of alerts cannot be evaluated; trying again");
                    AFTER_FAULT.min(self.alerting.interval)
                }
            };
            tokio::select! {
                () = wake.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// One evaluation, where it is this node's.
    pub async fn round(&self) -> Result<(), StoreError> {
        if !(self.alerting.is_evaluator)() {
            return Ok(());
        }
        let now = self.clock.now();
        let stored = self.stores.alerts.configured(now.minus(ALERT_HOLD_DOWN)).await?;
        let standing = Standing {
            rules: rule::in_force(&self.alerting.rules, stored.rules),
            routes: route::names(&self.alerting.routes, &stored.routes),
            silences: stored.silences,
            newest: stored.recent,
            installation: self.installation,
        };
        // What nobody is told of is not watched.
        if standing.routes.is_empty() && !standing.newest.iter().any(Incident::is_open) {
            self.firing.set(0.0);
            return Ok(());
        }
        let reading = self.lookout.read(&standing.rules, now).await?;
        let settlement = evaluate(&standing, &reading, now);
        let stands = settlement.stand.iter().chain(
            standing.newest.iter().filter(|old| settlement.stand.iter().all(|it| it.id != old.id)),
        );
        let firing = stands.filter(|it| it.phase == Phase::Firing).count();
        if !settlement.is_empty() {
            for incident in &settlement.stand {
                let (rule, phase) = (&incident.rule, incident.phase.name());
                tracing::info!(rule, phase, "an incident of alerts changed");
            }
            let forget_before = now.minus(DAY * u32::from(ALERT_INCIDENT_DAYS));
            self.stores.alerts.settle(settlement, forget_before).await?;
        }
        self.firing.set(f64::from(u32::try_from(firing).unwrap_or(u32::MAX)));
        Ok(())
    }
}
