//! Chore: turns notifications into messages to the routes that go over HTTP.
//!
//! A route is an endpoint of an application of the management organisation, or a few of them, made
//! and kept as the route says; a notification is an ordinary message to it alone. So it has
//! retries, a breaker, an order and dead letters like any other, and an unreachable channel costs
//! nobody else anything. The message is accepted in the transaction that takes the notification
//! out.
//! Never: word a notification, or log what a route is reached by.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use domain::alert::route::{self, Route};
use domain::alert::rule;
use domain::application::{AppSnapshot, ApplicationSpec};
use domain::endpoint::{Endpoint, LiveSecret};
use domain::idempotency::notice_random;
use domain::message::{ContentType, MessageSpec};
use domain::nodes::Chore;
use domain::notice::MANAGEMENT;
use store::alerts::Kept;
use store::directory::{IdOrUid, NewEndpoint};
use store::inbox::{Accepted, NewMessage};
use store::nodes::Share;
use store::{StoreError, Stores};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::parts::{APP_UID, Alerting, Request, Worded};
use super::ways;
use crate::chores::idle;
use crate::roster::Roster;
use crate::trace::Tracing;

/// Notifications read at a time.
const PIECE: usize = 100;
/// What waits for another message of its route is looked at again so late.
const HELD_AGAIN: Duration = Duration::from_secs(2);
/// After the store failed.
const AFTER_FAULT: Duration = Duration::from_secs(1);

/// Turns notifications into messages.
pub struct Teller {
    stores: Stores,
    roster: Arc<Roster>,
    alerting: Alerting,
    /// Letters are sent; by somebody else.
    mails: bool,
    installation: [u8; 16],
    share: Arc<Share>,
    tracing: Tracing,
}

/// What became of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It is gone.
    Done,
    /// It is somebody else's.
    Passed,
    /// It waits, and what follows on its route with it.
    Held,
    /// The copy of the application was old.
    Again,
}

impl Teller {
    /// Tells what `stores` keep; `mails` says whether somebody sends letters.
    pub fn new(
        stores: Stores,
        roster: Arc<Roster>,
        (alerting, mails): (Alerting, bool),
        tracing: Tracing,
    ) -> Self {
        let installation = stores.directory.installation();
        let share = stores.nodes.share();
        Self { stores, roster, alerting, mails, installation, share, tracing }
    }

    /// Works until it is dropped; `wake` tells of new notifications and changed routes.
    pub async fn run(self, wake: Arc<Notify>) {
        loop {
            if !self.share.does(Chore::Alerts) {
                idle(&self.share, &wake).await;
                continue;
            }
            let again = match self.round().await {
                Ok(false) => {
                    idle(&self.share, &wake).await;
                    continue;
                }
                Ok(true) => HELD_AGAIN,
                Err(error) => {
                    tracing::warn!(%error, "alerts cannot go out; trying again");
                    AFTER_FAULT
                }
            };
            tokio::select! {
                () = wake.notified() => {}
                () = sleep(again) => {}
            }
        }
    }

    /// All notifications, in order; whether something waits.
    pub async fn round(&self) -> Result<bool, StoreError> {
        let (mut after, mut held) = (0, HashSet::new());
        let (mut routes, rules) = self.in_force().await?;
        self.tidy(&routes, &rules).await?;
        loop {
            let kept = self.stores.alerts.tellings(after, PIECE).await?;
            let Some(last) = kept.last() else { return Ok(!held.is_empty()) };
            after = last.place;
            for kept in kept {
                let name = kept.telling.route.clone();
                if held.contains(&name) {
                    continue;
                }
                // It may be newer than what was read.
                if routes.iter().all(|route| route.name != name) {
                    routes = self.routes().await?;
                }
                let mut step = self.step(&kept, &routes).await?;
                if step == Step::Again {
                    routes = self.routes().await?;
                    step = self.step(&kept, &routes).await?;
                }
                if matches!(step, Step::Held | Step::Again) {
                    held.insert(name);
                }
            }
        }
    }

    async fn routes(&self) -> Result<Vec<Route>, StoreError> {
        self.in_force().await.map(|(routes, _)| routes)
    }

    /// All routes, and the names of all rules.
    async fn in_force(&self) -> Result<(Vec<Route>, Vec<String>), StoreError> {
        let stored = self.stores.alerts.configured(resilience::Timestamp::MAX).await?;
        let rules = rule::in_force(&self.alerting.rules, stored.rules);
        let rules = rules.into_iter().map(|rule| rule.name).collect();
        Ok((route::in_force(&self.alerting.routes, stored.routes), rules))
    }

    /// One notification.
    async fn step(&self, kept: &Kept, routes: &[Route]) -> Result<Step, StoreError> {
        let telling = &kept.telling;
        let route = routes.iter().find(|route| route.name == telling.route);
        let worded = route.and_then(|route| (self.alerting.wording)(route, &telling.notice));
        let request = match worded {
            Some(Worded::Request(request)) => request,
            Some(Worded::Letter { .. }) if self.mails => return Ok(Step::Passed),
            Some(Worded::Letter { .. }) => {
                let route = &telling.route;
                tracing::warn!(route, "an alert is not sent: no mail server is set");
                return self.discard(kept).await;
            }
            None => return self.discard(kept).await,
        };
        let Some(app) = self.app(kept.place).await? else { return Ok(Step::Again) };
        if request.is_second && self.waits(&app, &telling.route).await? {
            return Ok(Step::Held);
        }
        let to = self.endpoint(&app, &telling.route, &request, kept.place).await?;
        // It may be new, or changed.
        let Some(fresh) = self.stores.directory.app_by_key(app.app.key).await? else {
            return Ok(Step::Again);
        };
        let spec = MessageSpec {
            event_type: telling.notice.occasion.name().to_owned(),
            event_id: None,
            channels: Vec::new(),
            tags: Vec::new(),
            payload: request.payload.clone(),
            content_type: ContentType::Json,
            retention_hours: None,
            deliver_at: None,
            trace: None,
        };
        let message = NewMessage {
            app: fresh.app.key,
            app_version: fresh.app.version,
            targets: fresh.endpoints.iter().filter(|it| it.key == to.key).map(Arc::clone).collect(),
            spec,
            random: notice_random(&self.installation, kept.place),
            key: None,
            edited_from: None,
        };
        let bytes = message.spec.payload.len();
        match self.stores.alerts.post_telling(kept.place, message).await? {
            Some(Accepted::Stale | Accepted::NoApplication) => {
                self.roster.forget(app.app.key);
                return Ok(Step::Again);
            }
            Some(accepted) => {
                self.tracing.own(&accepted, telling.notice.occasion.name(), bytes);
            }
            None => {}
        }
        Ok(Step::Done)
    }

    async fn discard(&self, kept: &Kept) -> Result<Step, StoreError> {
        self.stores.alerts.discard_telling(kept.place).await.map(|()| Step::Done)
    }

    async fn found(&self) -> Result<Option<Arc<AppSnapshot>>, StoreError> {
        self.roster.app(MANAGEMENT, &IdOrUid::Uid(APP_UID.to_owned())).await
    }

    /// The application, made when it is first needed.
    async fn app(&self, place: u64) -> Result<Option<Arc<AppSnapshot>>, StoreError> {
        if let Some(found) = self.found().await? {
            return Ok(Some(found));
        }
        let spec = ApplicationSpec {
            name: "Alerts".to_owned(),
            uid: Some(APP_UID.to_owned()),
            throttle_rate: None,
            metadata: "{}".to_owned(),
        };
        let random = notice_random(&self.installation, place);
        match self.stores.directory.create_app(MANAGEMENT, spec, random).await {
            Ok(_) | Err(StoreError::Conflict(_)) => self.found().await,
            Err(fault) => Err(fault),
        }
    }

    /// Whether something is on its way to the first endpoint of a route.
    async fn waits(&self, app: &AppSnapshot, route: &str) -> Result<bool, StoreError> {
        let first = app.endpoints.iter().find(|it| it.spec.uid.as_deref() == Some(route));
        match first {
            Some(first) if first.spec.disabled.is_none() => {
                Ok(self.stores.history.waiting(first.key, 1).await? > 0)
            }
            Some(_) | None => Ok(false),
        }
    }

    /// The endpoint of a request as its route says.
    async fn endpoint(
        &self,
        app: &AppSnapshot,
        route: &str,
        request: &Request,
        place: u64,
    ) -> Result<Arc<Endpoint>, StoreError> {
        let uid = ways::uid(route, &request.place);
        let found = app.endpoints.iter().find(|it| it.spec.uid.as_ref() == Some(&uid));
        if let Some(found) = found {
            return match ways::change(found, request) {
                Some(change) => self.stores.directory.change_endpoint(found.key, change).await,
                None => Ok(Arc::clone(found)),
            };
        }
        let secret = match request.secret.clone() {
            Some(secret) => secret,
            None => (self.alerting.secret)()?,
        };
        let new = NewEndpoint {
            app: app.app.key,
            spec: ways::spec(uid, request),
            secret: LiveSecret { secret, expires_at: None },
            random: notice_random(&self.installation, place),
        };
        self.stores.directory.create_endpoint(new).await
    }

    /// Deletes the endpoints of routes that are gone; what waits for them is cancelled. What waits
    /// for the others goes where they lead now.
    async fn tidy(&self, routes: &[Route], rules: &[String]) -> Result<(), StoreError> {
        let Some(app) = self.found().await? else { return Ok(()) };
        let mut changed = false;
        for endpoint in &app.endpoints {
            if !routes.iter().any(|route| ways::is_of(endpoint, route)) {
                self.stores.directory.delete_endpoint(endpoint.key).await?;
                changed = true;
            }
        }
        for route in routes {
            let way = (route, &self.alerting.wording);
            changed |= ways::mend(&self.stores, &app, way, rules).await?;
        }
        if changed {
            self.roster.forget(app.app.key);
        }
        Ok(())
    }
}
