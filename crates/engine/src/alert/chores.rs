//! The tasks of alerts: put together from what the engine is made of, and begun.
//!
//! Never: work of their own.

use std::sync::Arc;

use domain::nodes::Chore;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::letters::Clerk;
use super::look::{Dispatching, Lookout};
use super::lost::{self, Scribe};
use super::parts::Alerting;
use super::tell::Teller;
use super::watch::Watch;
use crate::parts::Parts;
use crate::roster::Roster;
use crate::run::Command;

/// Who is woken about alerts.
#[derive(Clone, Default)]
pub(crate) struct AlertBells {
    /// Rules, routes or silences changed.
    pub(crate) changed: Arc<Notify>,
    /// There are notifications for routes over HTTP.
    pub(crate) told: Arc<Notify>,
    /// There are notifications for letters.
    pub(crate) written: Arc<Notify>,
}

/// The tasks of alerts, before they begin.
pub(crate) struct Alerts {
    watch: Watch,
    teller: Teller,
    clerk: Option<Clerk>,
    scribe: Scribe,
    bells: AlertBells,
}

impl Alerts {
    /// From what the engine is made of, whose watcher from now on tells them of their routes, too.
    pub(crate) fn new(
        parts: &mut Parts,
        roster: &Arc<Roster>,
        mut alerting: Alerting,
        commands: mpsc::UnboundedSender<Command>,
        bells: AlertBells,
    ) -> Self {
        let (share, own) = (parts.stores.nodes.share(), alerting.is_evaluator);
        alerting.is_evaluator = Arc::new(move || own() && share.does(Chore::Alerts));
        let (stores, clock) = (|| parts.stores.clone(), || Arc::clone(&parts.clock));
        let lookout = Lookout::new(stores(), Arc::clone(roster), dispatching(commands));
        let mails = parts.mailer.is_some();
        let clerk = parts
            .mailer
            .as_ref()
            .map(|mailer| Clerk::new(stores(), clock(), Arc::clone(mailer), alerting.clone()));
        let teller = Teller::new(
            stores(),
            Arc::clone(roster),
            (alerting.clone(), mails),
            parts.tracing.clone(),
        );
        let watch = Watch::new(stores(), clock(), alerting, lookout);
        let (ear, scribe) = lost::pair(Arc::clone(&parts.observer), Arc::clone(roster));
        parts.observer = Arc::new(ear);
        Self { watch, teller, clerk, scribe, bells }
    }

    /// Begins.
    pub(crate) fn start(self) -> Vec<JoinHandle<()>> {
        let Self { watch, teller, clerk, scribe, bells } = self;
        let mut started = vec![
            tokio::spawn(watch.run(bells.changed)),
            tokio::spawn(teller.run(bells.told)),
            tokio::spawn(scribe.run()),
        ];
        started.extend(clerk.map(|clerk| tokio::spawn(clerk.run(bells.written))));
        started
    }
}

/// What alerts ask the dispatcher; there is no answer once it has ended.
fn dispatching(commands: mpsc::UnboundedSender<Command>) -> Dispatching {
    let sends = commands.clone();
    Dispatching {
        next_sends: Box::new(move |endpoints| {
            let (reply, wait) = oneshot::channel();
            let _gone = sends.send(Command::NextSends(endpoints, reply));
            Box::pin(async move { wait.await.ok() })
        }),
        paused: Box::new(move || {
            let (reply, wait) = oneshot::channel();
            let _gone = commands.send(Command::Paused(reply));
            Box::pin(async move { wait.await.ok() })
        }),
    }
}
