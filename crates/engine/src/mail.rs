//! Chore: e-mails that the store keeps, gathered and handed to whoever sends them.
//!
//! In: mails with the endpoint they are about. Out: letters, each at least once and under the same
//! number, until it was taken, was refused for good, or is too old. A mail server that is down
//! costs nobody but the letters: this is a task of its own.
//! Never: word a letter or know a mail server (whoever starts the engine does), or say in a log
//! whom it goes to.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use domain::application::Application;
use domain::attempt::Attempt;
use domain::email::EmailAddress;
use domain::endpoint::Endpoint;
use domain::limits::{MAIL_AGE_MAX, PAGE_ROWS_MAX, WAITING_COUNTED_MAX};
use domain::nodes::Chore;
use domain::notice::News;
use metrics::{Counter, counter};
use resilience::{Clock, Timestamp};
use store::history::AttemptFilter;
use store::nodes::Share;
use store::notices::Mail;
use store::page::{Direction, PageOf};
use store::{StoreError, Stores};
use tokio::sync::Notify;

use crate::chores::idle;

/// Mails looked at in one read.
const PIECE: usize = 100;
/// Failed attempts that a letter tells of.
const ATTEMPTS: usize = 3;
/// Nothing is due: mails that somebody else wrote are found so late.
const IDLE: Duration = Duration::from_secs(60);
/// After the first failure, doubled by each.
const AGAIN: Duration = Duration::from_secs(10);
const AGAIN_MAX: Duration = Duration::from_secs(30 * 60);

/// All that a letter may tell.
#[derive(Clone, Debug)]
pub struct Letter {
    /// Its number: the same whenever it is sent.
    pub number: u64,
    /// Whom it goes to.
    pub to: EmailAddress,
    /// What happened.
    pub news: News,
    /// When it happened.
    pub at: Timestamp,
    /// To which endpoint.
    pub endpoint: Arc<Endpoint>,
    /// Of which application.
    pub app: Arc<Application>,
    /// Its last failed attempts, newest first.
    pub attempts: Vec<Attempt>,
    /// Deliveries that wait for it, counted up to [`WAITING_COUNTED_MAX`].
    pub waiting: u64,
    /// When the oldest was accepted of those that have been due for longest.
    pub oldest: Option<Timestamp>,
}

/// A letter to on-call people.
#[derive(Clone, Debug)]
pub struct AlertLetter {
    /// Its number: the same whenever it is sent.
    pub number: u64,
    /// Whom it goes to.
    pub to: Vec<EmailAddress>,
    /// Its subject.
    pub subject: String,
    /// Its text.
    pub text: String,
    /// When it was written.
    pub at: Timestamp,
}

/// Why a letter was not taken; the text is for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailFault {
    /// Nothing can be sent now.
    Down(String),
    /// This one cannot be sent now.
    Later(String),
    /// This one is not taken at all.
    Refused(String),
}

/// The answer of a mailer.
pub type Mailing<'a> = Pin<Box<dyn Future<Output = Result<(), MailFault>> + Send + 'a>>;

/// Sends letters.
pub trait Mailer: Send + Sync {
    /// Sends one; `Ok` once somebody else answers for it. It ends within a minute.
    fn send(&self, letter: Letter) -> Mailing<'_>;
    /// The same for a letter to on-call people.
    fn send_alert(&self, letter: AlertLetter) -> Mailing<'_>;
}

/// How often something failed, and when it is due again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wait {
    failures: u32,
    until: Timestamp,
}

impl Wait {
    /// When it is over.
    pub(crate) const fn until(&self) -> Timestamp {
        self.until
    }

    /// Makes it longer after one more failure.
    pub(crate) fn lengthen(&mut self, now: Timestamp) {
        let step = AGAIN.saturating_mul(1 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        self.until = now.plus(step.min(AGAIN_MAX));
    }

    /// Whether it is not over; a clock that was set back does not make it longer than it is meant
    /// to be.
    pub(crate) fn holds(&self, now: Timestamp) -> bool {
        now < self.until && self.until < now.plus(AGAIN_MAX).plus(AGAIN_MAX)
    }
}

/// What became of letters, to owners or of alerts; there is a figure of each kind though none is
/// sent.
pub struct Counts {
    pub(crate) sent: Counter,
    pub(crate) failed: Counter,
    pub(crate) given_up: Counter,
}

impl Counts {
    /// Handles on the installed recorder.
    pub fn new() -> Self {
        let of_result = |result| counter!("peyk_mails_total", "result" => result);
        Self {
            sent: of_result("sent"),
            failed: of_result("failed"),
            given_up: of_result("given_up"),
        }
    }
}

impl Default for Counts {
    fn default() -> Self {
        Self::new()
    }
}

/// Hands letters over.
pub struct PostOffice {
    stores: Stores,
    clock: Arc<dyn Clock>,
    mailer: Arc<dyn Mailer>,
    /// Letters that were not taken.
    waits: HashMap<u64, Wait>,
    /// The mailer as a whole.
    down: Wait,
    counts: Counts,
    share: Arc<Share>,
}

impl PostOffice {
    /// Hands what `stores` keep to `mailer`.
    pub fn new(
        stores: Stores,
        clock: Arc<dyn Clock>,
        mailer: Arc<dyn Mailer>,
        counts: Counts,
    ) -> Self {
        let (share, down) = (stores.nodes.share(), Wait::default());
        Self { stores, clock, mailer, waits: HashMap::new(), down, counts, share }
    }

    /// Works until it is dropped; `wake` tells of new mails.
    pub async fn run(mut self, wake: Arc<Notify>) {
        loop {
            if !self.share.does(Chore::Mail) {
                idle(&self.share, &wake).await;
                continue;
            }
            let sleep = match self.round().await {
                Ok(next) => next.since(self.clock.now()).clamp(AGAIN / 10, IDLE),
                Err(error) => {
                    tracing::warn!(%error, "e-mails cannot be read; trying again");
                    AGAIN
                }
            };
            tokio::select! {
                () = wake.notified() => {}
                () = tokio::time::sleep(sleep) => {}
            }
        }
    }

    /// Hands over what is due; says when the next one is.
    async fn round(&mut self) -> Result<Timestamp, StoreError> {
        let (mut after, mut next) = (0, Timestamp::MAX);
        loop {
            let mails = self.stores.notices.mails(after, PIECE).await?;
            let Some(last) = mails.last() else { return Ok(next) };
            after = last.place;
            for mail in mails {
                if self.down.holds(self.clock.now()) {
                    return Ok(self.down.until);
                }
                if let Some(until) = self.step(mail).await? {
                    next = next.min(until);
                }
            }
        }
    }

    /// One mail; `Some` when it stays, and until when.
    async fn step(&mut self, mail: Mail) -> Result<Option<Timestamp>, StoreError> {
        let now = self.clock.now();
        if now >= mail.at.plus(MAIL_AGE_MAX) {
            tracing::warn!(endpoint = mail.endpoint.0, "an e-mail is too old to be sent any more");
            self.counts.given_up.increment(1);
            return self.end(mail).await;
        }
        let wait = self.waits.get(&mail.place).copied().unwrap_or_default();
        if wait.holds(now) {
            return Ok(Some(wait.until));
        }
        let Some(letter) = self.letter(mail).await? else { return self.end(mail).await };
        let endpoint = mail.endpoint.0;
        let fault = match self.mailer.send(letter).await {
            Ok(()) => {
                self.down = Wait::default();
                let ended = self.end(mail).await?;
                self.counts.sent.increment(1);
                return Ok(ended);
            }
            Err(fault) => fault,
        };
        let now = self.clock.now();
        match fault {
            MailFault::Refused(fault) => {
                tracing::warn!(endpoint, fault, "an e-mail is refused for good");
                self.counts.given_up.increment(1);
                self.end(mail).await
            }
            MailFault::Later(fault) => {
                tracing::warn!(endpoint, fault, "an e-mail was not taken; trying again");
                self.counts.failed.increment(1);
                let wait = self.waits.entry(mail.place).or_default();
                wait.lengthen(now);
                Ok(Some(wait.until))
            }
            MailFault::Down(fault) => {
                tracing::warn!(fault, "no e-mail can be sent; trying again");
                self.counts.failed.increment(1);
                self.down.lengthen(now);
                Ok(Some(self.down.until))
            }
        }
    }

    async fn end(&mut self, mail: Mail) -> Result<Option<Timestamp>, StoreError> {
        self.waits.remove(&mail.place);
        self.stores.notices.mailed(mail.place).await.map(|()| None)
    }

    /// All that a letter tells, as it is now; `None` if there is nobody to write to any more.
    async fn letter(&self, mail: Mail) -> Result<Option<Letter>, StoreError> {
        let Mail { place: number, endpoint: key, news, at } = mail;
        let Some(endpoint) = self.stores.directory.endpoint(key).await? else { return Ok(None) };
        let Some(to) = endpoint.spec.contact_email.clone() else { return Ok(None) };
        let Some(snapshot) = self.stores.directory.app_by_key(endpoint.app).await? else {
            return Ok(None);
        };
        let failed = AttemptFilter { status: Some(2), ..AttemptFilter::default() };
        let page = PageOf { beyond: None, direction: Direction::Descending, limit: ATTEMPTS };
        let attempts = self.stores.history.attempts_to(key, failed, page).await?;
        let waiting = self.stores.history.waiting(key, WAITING_COUNTED_MAX).await?;
        let first = self.stores.queue.due(key, Timestamp::MAX.into(), PAGE_ROWS_MAX).await?.rows;
        Ok(Some(Letter {
            number,
            to,
            news,
            at,
            endpoint,
            app: snapshot.app,
            attempts: attempts.rows.into_iter().map(|row| row.attempt).collect(),
            waiting,
            oldest: first.iter().map(|row| row.age_from).min(),
        }))
    }
}

#[cfg(test)]
mod tests;
