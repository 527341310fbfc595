//! Says in the log what became of notifications that a route did not take, and which routes are
//! off.
//!
//! It watches what the dispatcher tells every watcher, on every node, since any of them may send.
//! Never: say what a route is reached by, or make the dispatcher wait.

use std::sync::Arc;

use domain::dead_letter::DeadReason;
use domain::endpoint::Endpoint;
use domain::notice::MANAGEMENT;
use store::directory::IdOrUid;
use tokio::sync::mpsc;

use super::parts::APP_UID;
use super::ways;
use crate::events::{Event, Observer};
use crate::roster::Roster;

/// What happened to a route.
pub(crate) struct Heard {
    endpoint: Arc<Endpoint>,
    /// Why a notification was given up; `None`: the route is off.
    reason: Option<DeadReason>,
}

/// Passes everything on, and what may be about a route to [`Scribe`].
pub(crate) struct Ear {
    inner: Arc<dyn Observer>,
    heard: mpsc::UnboundedSender<Heard>,
}

impl Observer for Ear {
    fn observe(&self, event: &Event) {
        let heard = match event {
            Event::Buried { endpoint, reason, .. } => Some((endpoint, Some(*reason))),
            Event::EndpointGone { endpoint } => Some((endpoint, None)),
            _ => None,
        };
        if let Some((endpoint, reason)) = heard.filter(|(it, _)| ways::route_of(it).is_some()) {
            let _gone = self.heard.send(Heard { endpoint: Arc::clone(endpoint), reason });
        }
        self.inner.observe(event);
    }
}

/// Writes it down.
pub(crate) struct Scribe {
    roster: Arc<Roster>,
    heard: mpsc::UnboundedReceiver<Heard>,
}

/// Both of them; `inner` goes on seeing everything.
pub(crate) fn pair(inner: Arc<dyn Observer>, roster: Arc<Roster>) -> (Ear, Scribe) {
    let (tells, heard) = mpsc::unbounded_channel();
    (Ear { inner, heard: tells }, Scribe { roster, heard })
}

impl Scribe {
    /// Works until it is dropped.
    pub(crate) async fn run(mut self) {
        while let Some(heard) = self.heard.recv().await {
            // Anybody may describe an endpoint as one of these.
            let own = self.roster.app(MANAGEMENT, &IdOrUid::Uid(APP_UID.to_owned())).await;
            if own.ok().flatten().is_some_and(|own| own.app.key == heard.endpoint.app) {
                write(&heard);
            }
        }
    }
}

fn write(heard: &Heard) {
    let route = ways::route_of(&heard.endpoint).unwrap_or_default();
    match heard.reason {
        None => tracing::warn!(
            route,
            "a route of alerts is off: it answered 410; setting it anew enables it"
        ),
        Some(reason @ DeadReason::ForbiddenTarget) => tracing::warn!(
            route,
            reason = reason.name(),
            "a notification of alerts is given up: its route leads to an address that \
             allowed_targets does not allow"
        ),
        Some(reason) => tracing::warn!(
            route,
            reason = reason.name(),
            "a notification of alerts is given up: its route does not take it"
        ),
    }
}
