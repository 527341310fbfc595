//! Everything that can be seen of a store, as lines of text.
//!
//! Never: change anything but what was told, which is taken.

use std::time::Duration;

use domain::dead_letter::DeadReason;
use domain::ids::{AppKey, EndpointKey};
use resilience::Timestamp;
use store::conformance::START;
use store::conformance::world::{ORG, all};
use store::counts::{Of, Steps};
use store::dead_letters::DeadFilter;
use store::directory::IdOrUid;
use store::history::{AttemptFilter, MessageFilter, Sent, SentFilter, Standing};
use store::notices::Mail;
use store::page::{Direction, PageOf};

use crate::model::names::Side;

/// The newest, a few.
const fn newest<P>() -> PageOf<P> {
    PageOf { beyond: None, direction: Direction::Descending, limit: 5 }
}

fn some_messages() -> Vec<MessageFilter> {
    let middle = Some(START.plus(Duration::from_secs(8)));
    let none = MessageFilter::default;
    vec![
        none(),
        MessageFilter { event_types: vec!["type-1".to_owned()], ..none() },
        MessageFilter { channel: Some("one".to_owned()), ..none() },
        MessageFilter { tag: Some("blue".to_owned()), ..none() },
        MessageFilter { after: middle, ..none() },
        MessageFilter { before: middle, ..none() },
    ]
}

impl Side {
    /// Looks at everything.
    pub(crate) async fn look(&self) -> Vec<String> {
        let mut lines = self.told();
        self.directory(&mut lines).await;
        self.queue(&mut lines).await;
        for &app in &self.apps {
            self.messages_of(app, &mut lines).await;
        }
        self.history(&mut lines).await;
        self.letters(&mut lines).await;
        self.figures(&mut lines).await;
        let notices = self.world.stores.notices.waiting(1_000).await.unwrap();
        lines.extend(notices.iter().map(|kept| self.notice(&kept.notice)));
        let mails = self.world.stores.notices.mails(0, 1_000).await.unwrap();
        lines.extend(mails.iter().map(|mail| {
            let Mail { endpoint, news, at, .. } = mail;
            format!("mail about {} {news:?} {at:?}", self.endpoint(*endpoint))
        }));
        lines
    }

    /// What `Commits` was told since the last look.
    fn told(&self) -> Vec<String> {
        let fresh = self.world.told.take_fresh();
        let fresh = fresh.iter().map(|fresh| {
            let envelope = fresh.envelope.as_ref().map(|envelope| &envelope.payload);
            let endpoint = fresh.endpoint.as_ref().map(|endpoint| endpoint.version);
            format!("told {} {endpoint:?} {envelope:?}", self.pending(&fresh.pending))
        });
        let withdrawn = self.world.told.take_withdrawn();
        let withdrawn = withdrawn.iter().map(|row| format!("withdrawn {}", self.pending(row)));
        let changed = self.world.told.take_changed();
        let changed = changed.into_iter().map(|(app, endpoint)| {
            let endpoint = endpoint.map(|endpoint| self.endpoint(endpoint));
            format!("changed {} {endpoint:?}", self.app(app))
        });
        fresh.chain(withdrawn).chain(changed).collect()
    }

    async fn directory(&self, lines: &mut Vec<String>) {
        let directory = &self.world.stores.directory;
        for app in directory.apps(ORG, all()).await.unwrap() {
            lines.push(format!(
                "{} {:?} {:?} version {} {:?} {:?}",
                self.app(app.key),
                app.id.random(),
                app.spec,
                app.version,
                app.created_at,
                app.updated_at,
            ));
            let found = directory.app(ORG, IdOrUid::Id(app.id)).await.unwrap().unwrap();
            let keys = found.endpoints.iter().map(|endpoint| self.endpoint(endpoint.key));
            lines.push(format!("has {:?}", keys.collect::<Vec<_>>()));
        }
        for &key in &self.endpoints {
            let found = directory.endpoint(key).await.unwrap();
            lines.push(format!("{:?}", found.map(|found| self.whole_endpoint(&found))));
        }
        for archived_too in [true, false] {
            let found = directory.event_types(ORG, archived_too, all()).await.unwrap();
            lines.push(format!("{found:?}"));
        }
    }

    async fn queue(&self, lines: &mut Vec<String>) {
        let queue = &self.world.stores.queue;
        for limit in [2, 1_000] {
            let found = queue.endpoints(None, limit).await.unwrap();
            let found = found.into_iter().map(|(key, due_at)| (self.endpoint(key), due_at));
            lines.push(format!("{:?}", found.collect::<Vec<_>>()));
        }
        for &key in &self.endpoints {
            for (until, limit) in
                [(self.world.now(), 3), (self.world.now(), 100), (Timestamp::MAX, 1_000)]
            {
                let due = queue.due(key, until.into(), limit).await.unwrap();
                lines.push(format!("{} next {:?}", self.endpoint(key), due.next_due));
                lines.extend(due.rows.iter().map(|row| self.pending(row)));
            }
            let waiting = self.world.stores.history.waiting(key, 5).await.unwrap();
            lines.push(format!("{waiting} waiting"));
        }
        for mut lane in queue.lane_states().await.unwrap() {
            let endpoint = self.endpoint(lane.endpoint);
            lane.endpoint.0 = 0;
            lines.push(format!("{endpoint} {lane:?}"));
        }
        let suspects = self.world.stores.ledger.suspects().await.unwrap();
        lines.extend(suspects.iter().map(|suspect| {
            let (message, endpoint) =
                (self.message(suspect.message), self.endpoint(suspect.endpoint));
            format!("suspect {message} {endpoint} {}", suspect.crashes)
        }));
    }

    async fn messages_of(&self, app: AppKey, lines: &mut Vec<String>) {
        let history = &self.world.stores.history;
        for filter in some_messages() {
            let newest = history.messages(app, filter.clone(), newest(), false).await.unwrap().rows;
            let whole = history.messages(app, filter.clone(), all(), true).await.unwrap().rows;
            lines.push(format!("{} with {filter:?}", self.app(app)));
            lines.extend(newest.iter().map(|message| self.whole_message(message)));
            lines.extend(whole.iter().map(|message| self.whole_message(message)));
        }
    }

    async fn history(&self, lines: &mut Vec<String>) {
        let history = &self.world.stores.history;
        let failed = AttemptFilter { status: Some(2), ..AttemptFilter::default() };
        for &key in &self.messages {
            for row in history.deliveries(key).await.unwrap() {
                let (endpoint, state) = (self.endpoint(row.endpoint), row.state);
                let (due_at, sends) = (row.due_at, row.sends);
                lines.push(format!(
                    "{} to {endpoint}: {state:?} {due_at:?} {sends}",
                    self.message(key)
                ));
            }
            let envelope = self.world.stores.queue.envelope(key).await.unwrap();
            lines.push(format!(
                "{:?}",
                envelope.map(|found| (found.id.random(), found.payload.clone()))
            ));
            for filter in [AttemptFilter::default(), failed.clone()] {
                let rows = history.attempts_of(key, filter, all()).await.unwrap().rows;
                lines.extend(rows.iter().map(|row| self.attempt(row)));
            }
        }
        for &key in &self.endpoints {
            self.sent(key, lines).await;
            for message in some_messages() {
                let filter = AttemptFilter { message, ..AttemptFilter::default() };
                let rows = history.attempts_to(key, filter.clone(), all()).await.unwrap().rows;
                lines.push(format!("{} with {filter:?}", self.endpoint(key)));
                lines.extend(rows.iter().map(|row| self.attempt(row)));
            }
            let rows = history.attempts_to(key, failed.clone(), newest()).await.unwrap().rows;
            lines.extend(rows.iter().map(|row| self.attempt(row)));
        }
    }

    /// What went to an endpoint, and how often.
    async fn sent(&self, key: EndpointKey, lines: &mut Vec<String>) {
        let history = &self.world.stores.history;
        let past = self.world.stores.directory.past_endpoints(vec![key]).await.unwrap().remove(0);
        lines.push(format!("{} {:?} {:?}", self.endpoint(key), past.id.random(), past.spec));
        let standings = [Standing::Dead, Standing::Retried].to_vec();
        for filter in [
            SentFilter::default(),
            SentFilter { standings, payloads: true, ..SentFilter::default() },
        ] {
            let rows = history.messages_to(past.app, key, filter, all()).await.unwrap().rows;
            for Sent { message, delivery } in rows {
                let (message, endpoint) =
                    (self.whole_message(&message), self.endpoint(delivery.endpoint));
                let (state, due_at, sends) = (delivery.state, delivery.due_at, delivery.sends);
                lines.push(format!("{message} to {endpoint} {state:?} {due_at:?} {sends}"));
            }
        }
        let middle = START.plus(Duration::from_secs(8));
        for until in [None, Some(self.world.now())] {
            let counts = history.count_attempts(key, middle, until).await.unwrap();
            lines.push(format!("{counts:?}"));
        }
    }

    /// What was counted, by the minute.
    async fn figures(&self, lines: &mut Vec<String>) {
        let steps = Steps {
            from: START,
            until: START.plus(Duration::from_secs(3_600)),
            step: Duration::from_secs(60),
        };
        let whole = [Of::All, Of::Org(ORG)];
        // The first ones have most of it; all of them would take as long as the rest together.
        let apps = self.apps.iter().take(2).map(|app| Of::App(*app));
        let endpoints = self.endpoints.iter().take(2).map(|endpoint| Of::Endpoint(*endpoint));
        for of in whole.into_iter().chain(apps).chain(endpoints) {
            let found = self.world.stores.counts.read(of, steps).await.unwrap();
            lines.push(format!("{found:?}"));
        }
        let recent = self.world.stores.counts.recent(self.world.now(), 1).await.unwrap();
        lines.push(format!("{recent:?}"));
    }

    async fn letters(&self, lines: &mut Vec<String>) {
        let none = DeadFilter::default;
        let middle = Some(START.plus(Duration::from_secs(8)));
        let mut filters = vec![
            none(),
            DeadFilter { reasons: vec![DeadReason::Rejected, DeadReason::Gone], ..none() },
            DeadFilter { event_types: vec!["type-0".to_owned()], ..none() },
            DeadFilter { after: middle, ..none() },
            DeadFilter { before: middle, ..none() },
        ];
        filters.extend(self.apps.iter().map(|&app| DeadFilter { app: Some(app), ..none() }));
        let to = self.endpoints.iter().map(|&to| DeadFilter { endpoint: Some(to), ..none() });
        filters.extend(to);
        for filter in filters {
            let letters = &self.world.stores.dead_letters;
            let found = letters.list(ORG, filter.clone(), all()).await.unwrap().rows;
            lines.push(format!("{} letters", found.len()));
            lines.extend(found.iter().map(|letter| self.letter(letter)));
            let found = letters.list(ORG, filter, newest()).await.unwrap().rows;
            lines.extend(found.iter().map(|letter| self.letter(letter)));
        }
    }
}
