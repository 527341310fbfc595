//! Steps that move deliveries on: results, replays, resends, and what is kept of lanes.
//!
//! Never: a step that changes the directory otherwise than a result does.

use std::sync::Arc;
use std::time::Duration;

use domain::dead_letter::DeadReason;
use domain::delivery::{CancelReason, Pending, Trigger};
use domain::endpoint::Disabled;
use domain::ids::{EndpointKey, MessageKey};
use domain::notice::News;
use store::conformance::samples;
use store::dead_letters::Edited;
use store::ledger::{Follow, Record, RecordNews, Suspect};
use store::prune::{Cursor, Pruned, Retention, days};

use super::{Pick, Post, Step, pick, random};
use crate::model::names::Side;

/// As old as payloads are whose messages name their period here.
const DAYS: Duration = days(5);

impl Side {
    /// Does a step that is about one delivery or one lane.
    pub(super) async fn move_on(&mut self, step: &Step, number: u64) -> String {
        match *step {
            Step::Record { ref picks } => {
                let records = self.results(picks, number).await;
                self.records.extend(records.iter().cloned());
                format!("{:?}", self.world.stores.ledger.record(records).await)
            }
            Step::Repeat { record } => {
                let at = record.checked_rem(self.records.len());
                let Some(record) = at.map(|at| self.records[at].clone()) else {
                    return String::new();
                };
                format!("{:?}", self.world.stores.ledger.record(vec![record]).await)
            }
            Step::KeepLane { endpoint, full } => {
                let Some(key) = pick(&self.endpoints, endpoint) else { return String::new() };
                let lane = if full { samples::lane(key) } else { samples::bare_lane(key) };
                format!("{:?}", self.world.stores.ledger.keep_lanes(vec![lane]).await)
            }
            Step::KeepSuspects { count } => {
                let pairs = self.messages.iter().zip(&self.endpoints).take(count);
                let suspects = pairs.map(|(&message, &endpoint)| Suspect {
                    endpoint,
                    message,
                    crashes: 1,
                    sends: 2,
                });
                let suspects = suspects.collect();
                format!("{:?}", self.world.stores.ledger.keep_suspects(suspects).await)
            }
            Step::Expunge { message } => {
                let Some(message) = pick(&self.messages, message) else { return String::new() };
                format!("{:?}", self.world.stores.history.expunge(message).await)
            }
            Step::Prune { payload, dead_letters, messages } => {
                let longer = |secs: u8| DAYS + Duration::from_secs(u64::from(secs));
                let keep = Retention {
                    payload: longer(payload),
                    dead_letters: longer(dead_letters),
                    messages: longer(messages),
                };
                self.prune(keep).await
            }
            Step::Replay { message, endpoint }
            | Step::ReplayEdited { message, endpoint }
            | Step::Discard { message, endpoint }
            | Step::Resend { message, endpoint } => {
                let delivery = self.delivery(step, message, endpoint).await;
                let Some((message, endpoint)) = delivery else { return String::new() };
                self.move_delivery(step, (message, endpoint), number).await
            }
            _ => String::new(),
        }
    }

    /// A delivery to move: mostly one that is dead, else any message and endpoint.
    async fn delivery(
        &self,
        step: &Step,
        message: usize,
        endpoint: usize,
    ) -> Option<(MessageKey, EndpointKey)> {
        let any = Some((pick(&self.messages, message)?, pick(&self.endpoints, endpoint)?));
        if matches!(step, Step::Resend { .. }) || endpoint.is_multiple_of(5) {
            return any;
        }
        let letters = &self.world.stores.dead_letters;
        let all = store::conformance::world::all();
        let letters = letters.list(store::conformance::world::ORG, Default::default(), all).await;
        let letters: Vec<_> = (letters.unwrap().rows.iter())
            .map(|letter| (letter.message, letter.endpoint))
            .collect();
        pick(&letters, message).or(any)
    }

    /// Prunes to the end; what went is seen, pieces may differ.
    async fn prune(&self, keep: Retention) -> String {
        let now = self.world.now().plus(DAYS);
        let (mut from, mut counts) = (Cursor::default(), [0; 4]);
        loop {
            let Pruned { counts: gone, reached, more } =
                self.world.stores.prune.prune(now, keep, from).await.unwrap();
            counts[0] += gone.payloads;
            counts[1] += gone.dead_letters;
            counts[2] += gone.messages;
            counts[3] += gone.attempts;
            from = reached;
            if !more {
                return format!("{counts:?}");
            }
        }
    }

    async fn move_delivery(
        &mut self,
        step: &Step,
        (message, endpoint): (MessageKey, EndpointKey),
        number: u64,
    ) -> String {
        let letters = Arc::clone(&self.world.stores.dead_letters);
        match step {
            Step::Replay { .. } => format!("{:?}", letters.replay(message, endpoint).await),
            Step::Discard { .. } => format!("{:?}", letters.delete(message, endpoint).await),
            Step::Resend { .. } => {
                format!("{:?}", self.world.stores.history.resend(message, endpoint).await)
            }
            _ => {
                let at = usize::try_from(number).unwrap();
                let stale = number.is_multiple_of(3);
                let post = Post {
                    app: at,
                    targets: 1,
                    event_id: None,
                    key: None,
                    stale,
                    kind: 3,
                    named: false,
                };
                let Some(edited) = self.new_message(&post, random(number, 0)).await else {
                    return String::new();
                };
                let edited = Edited { message: edited, edit: samples::edit() };
                let accepted = letters.replay_edited(message, endpoint, edited).await.unwrap();
                format!("{:?}", accepted.map(|accepted| self.accepted(accepted)))
            }
        }
    }

    async fn results(&self, picks: &[Pick], number: u64) -> Vec<Record> {
        let mut records = Vec::new();
        for (at, one) in picks.iter().enumerate() {
            let Some(endpoint) = pick(&self.endpoints, one.endpoint) else { continue };
            let rows = self.world.rows(endpoint).await;
            let Some(row) = pick(&rows, one.row) else { continue };
            records.push(Record { random: random(number, at), ..self.result(row, one) });
        }
        records
    }

    /// What came of sending `row`.
    fn result(&self, row: Pending, one: &Pick) -> Record {
        let now = self.world.now();
        let due_at = now.plus(Duration::from_millis(1_000 * u64::from(one.wait_secs) + 1));
        let status = [200, 503, 404, 0, 0, 0, 410, 500, 204][usize::from(one.result)];
        let attempt = match (one.result, status) {
            (4 | 5, _) => None,
            (_, 0) => Some(samples::timed_out(&row, now)),
            _ => Some(samples::answered(&row, status, now)),
        };
        let expired = Follow::Dead { reason: DeadReason::Expired, error: None };
        let follow = match (one.result, row.trigger) {
            (0 | 8, _) => Follow::Delivered,
            (5, _) => Follow::Cancelled(CancelReason::EndpointDeleted),
            (_, Trigger::Manual) => Follow::Unchanged,
            (2, _) => samples::dead(),
            (4, _) => expired,
            (6, _) => Follow::Dead { reason: DeadReason::Gone, error: None },
            _ => samples::retry(due_at, row.budget_used + 1),
        };
        let lane = (one.result == 7).then(|| samples::lane(row.endpoint));
        let disable = (one.result == 6).then_some(Disabled::Gone);
        let delivery = match one.result {
            0 => Some(News::AttemptRecovered),
            1 => Some(News::AttemptFailing),
            2 | 4 | 6 => Some(News::AttemptExhausted),
            _ => None,
        };
        let breaker = lane.is_some().then_some(News::BreakerOpened { until: due_at });
        let news = RecordNews { delivery, breaker };
        Record { pending: row, attempt, random: [0; 12], follow, lane, disable, run: None, news }
    }
}
