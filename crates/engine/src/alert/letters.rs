//! Chore: hands notifications on routes of e-mail to whoever sends letters.
//!
//! Each goes out at least once and under the same number, until it was taken, was refused for good,
//! or is too old. A mail server that is down costs nobody but the letters: this is a task of its
//! own.
//! Never: word a letter, or say in a log whom it goes to.

use std::sync::Arc;
use std::time::Duration;

use domain::alert::route::{self, Channel};
use domain::limits::MAIL_AGE_MAX;
use domain::nodes::Chore;
use resilience::{Clock, Timestamp};
use store::alerts::Kept;
use store::nodes::Share;
use store::{StoreError, Stores};
use tokio::sync::Notify;

use super::parts::{Alerting, Worded};
use crate::chores::idle;
use crate::mail::{AlertLetter, Counts, MailFault, Mailer, Wait};

/// Notifications read at a time.
const PIECE: usize = 100;
/// Nothing is due: what somebody else wrote is found so late.
const IDLE: Duration = Duration::from_secs(60);
/// The shortest wait.
const SOON: Duration = Duration::from_secs(1);

/// Hands letters over.
pub struct Clerk {
    stores: Stores,
    clock: Arc<dyn Clock>,
    mailer: Arc<dyn Mailer>,
    alerting: Alerting,
    counts: Counts,
    down: Wait,
    share: Arc<Share>,
}

impl Clerk {
    /// Hands what `stores` keep to `mailer`.
    pub fn new(
        stores: Stores,
        clock: Arc<dyn Clock>,
        mailer: Arc<dyn Mailer>,
        alerting: Alerting,
    ) -> Self {
        let (counts, down, share) = (Counts::new(), Wait::default(), stores.nodes.share());
        Self { stores, clock, mailer, alerting, counts, down, share }
    }

    /// Works until it is dropped; `wake` tells of new notifications.
    pub async fn run(mut self, wake: Arc<Notify>) {
        loop {
            if !self.share.does(Chore::Alerts) {
                idle(&self.share, &wake).await;
                continue;
            }
            let now = self.clock.now();
            let pause = match self.round(now).await {
                Ok(()) if self.down.holds(now) => self.down.until().since(now).clamp(SOON, IDLE),
                Ok(()) => IDLE,
                Err(error) => {
                    tracing::warn!(%error, "letters of alerts cannot be read; trying again");
                    SOON
                }
            };
            tokio::select! {
                () = wake.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Hands over what there is, until the mail server does not take any more.
    pub async fn round(&mut self, now: Timestamp) -> Result<(), StoreError> {
        if self.down.holds(now) {
            return Ok(());
        }
        let stored = self.stores.alerts.configured(Timestamp::MAX).await?.routes;
        let routes = route::in_force(&self.alerting.routes, stored);
        let mut after = 0;
        loop {
            let kept = self.stores.alerts.tellings(after, PIECE).await?;
            let Some(last) = kept.last() else { return Ok(()) };
            after = last.place;
            for kept in kept {
                let route = routes.iter().find(|route| route.name == kept.telling.route);
                let Some(route) = route else { continue };
                let Channel::Email { to } = &route.channel else { continue };
                let worded = (self.alerting.wording)(route, &kept.telling.notice);
                let Some(Worded::Letter { subject, text }) = worded else { continue };
                let (number, at) = (kept.place, kept.telling.notice.at);
                let letter = AlertLetter { number, to: to.clone(), subject, text, at };
                if !self.step(&kept, letter).await? {
                    return Ok(());
                }
            }
        }
    }

    /// One letter; whether the next one may be tried.
    async fn step(&mut self, kept: &Kept, letter: AlertLetter) -> Result<bool, StoreError> {
        let route = kept.telling.route.as_str();
        if self.clock.now() >= letter.at.plus(MAIL_AGE_MAX) {
            tracing::warn!(route, "a letter of an alert is too old to be sent any more");
            self.counts.given_up.increment(1);
            return self.end(kept).await;
        }
        match self.mailer.send_alert(letter).await {
            Ok(()) => {
                self.down = Wait::default();
                let ended = self.end(kept).await?;
                self.counts.sent.increment(1);
                Ok(ended)
            }
            Err(MailFault::Refused(fault)) => {
                tracing::warn!(route, fault, "a letter of an alert is refused for good");
                self.counts.given_up.increment(1);
                self.end(kept).await
            }
            Err(MailFault::Down(fault) | MailFault::Later(fault)) => {
                tracing::warn!(route, fault, "a letter of an alert was not taken; trying again");
                self.counts.failed.increment(1);
                self.down.lengthen(self.clock.now());
                Ok(false)
            }
        }
    }

    async fn end(&self, kept: &Kept) -> Result<bool, StoreError> {
        self.stores.alerts.discard_telling(kept.place).await.map(|()| true)
    }
}
