//! Results: what a send came to is judged, and goes on its way to the ledger.
//!
//! Never: release an id; `recorded` does once the record of it is committed.

use std::sync::Arc;
use std::time::Duration;

use domain::attempt::{Attempt, Failure, FailureKind, Outcome};
use domain::classify::{Class, classify, describe};
use domain::dead_letter::DeadReason;
use domain::delivery::{CancelReason, Pending};
use domain::endpoint::Endpoint;
use domain::ids::MessageKey;
use domain::target::Host;
use domain::verdict::{self, Case, Verdict};
use resilience::{RetryAfter, RetryAfterMode, Timestamp};
use store::ledger::Follow;

use super::entry::Entry;
use super::flights::Flight;
use super::lane::Home;
use super::{Dispatcher, Ended};
use crate::admit::{self, Pass, Settled};
use crate::events::Event;
use crate::lanes::Item;
use crate::record::{self, Judged};

/// A send that is over, as it is judged.
struct Landed {
    pending: Pending,
    endpoint: Arc<Endpoint>,
    attempt: Attempt,
    class: Class,
    settled: Settled,
}

impl Dispatcher {
    /// A send ended.
    pub(super) fn finished(&mut self, slot: usize, ended: Ended, now: Timestamp) {
        let Some(flight) = self.flights.end(slot) else { return };
        let endpoint = flight.pending.endpoint;
        if flight.suspect {
            self.suspects.end((endpoint, flight.pending.message));
        }
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.in_flight = lane.in_flight.saturating_sub(1);
            let idle = usize::from(lane.in_flight == 0);
            self.busy_lanes = self.busy_lanes.saturating_sub(idle);
        }
        match ended {
            Ended::Attempted(attempt) => self.judge(flight, *attempt, now),
            Ended::PayloadGone => {
                self.release_pass(&flight, now);
                self.give_up(
                    Item { pending: flight.pending, envelope: None },
                    DeadReason::PayloadGone,
                );
            }
            Ended::NotBegun if flight.is_overdue() => self.judge_overdue(flight, now),
            Ended::NotBegun => {
                self.release_pass(&flight, now);
                self.put_back(Item { pending: flight.pending, envelope: None });
                if !self.draining && !self.homes.breaks_off(endpoint) {
                    self.pause("the send could not be begun", now);
                }
            }
            Ended::Broken => self.judge_broken(flight, now),
        }
        self.enqueue(endpoint);
        self.feed_starved();
    }

    fn release_pass(&mut self, flight: &Flight, now: Timestamp) {
        if let (Some(known), Some(pass)) = (self.known(flight.pending.endpoint), &flight.pass) {
            known.gate.release(pass, now);
        }
    }

    fn pause(&mut self, reason: &str, now: Timestamp) {
        let is_news = !self.own_fault.is_on_trial();
        let pause = self.own_fault.pause(now);
        // Those that follow until something is reached are the same pause.
        if is_news {
            tracing::warn!(reason, "sending paused: the fault is on this side");
        }
        self.observer.observe(&Event::SendingPaused { pause });
    }

    /// Whether a failure is ours and not the receiver's.
    fn is_own_fault(&mut self, endpoint: &Endpoint, attempt: &Attempt, class: Class) -> bool {
        let before = match &attempt.outcome {
            Outcome::Answered(_) => false,
            Outcome::Failed(failure) => failure.kind.before_connection(),
        };
        let internal = class == Class::Internal;
        let was_on_trial = self.own_fault.is_on_trial();
        let is_ours = match endpoint.spec.target.host_for_dns() {
            _ if class == Class::Forbidden => false,
            Host::Name(name) => self.own_fault.observe(name, before, internal),
            Host::Ip(address) => self.own_fault.observe(address, before, internal),
        };
        if was_on_trial && !self.own_fault.is_on_trial() {
            tracing::info!("sending goes on: the fault on this side is over");
        }
        is_ours
    }

    fn judge(&mut self, flight: Flight, attempt: Attempt, now: Timestamp) {
        let Flight { pending, endpoint, pass, .. } = flight;
        let Some(known) = self.known(pending.endpoint) else {
            return self.judge_late(pending, endpoint, attempt);
        };
        let mut class = classify(&attempt, &known.retry_on);
        if self.is_own_fault(&endpoint, &attempt, class) {
            class = Class::Internal;
            self.pause(&describe(&attempt).unwrap_or_default(), now);
        }
        self.telemetry.attempted(class, attempt.took);
        let settled = match pass {
            Some(pass) => self.settle(&pass, pending.message, (&endpoint, &attempt, class), now),
            None => self.settle_manual(endpoint.key, &attempt, class),
        };
        self.follow(Landed { pending, endpoint, attempt, class, settled }, now);
    }

    fn settle(
        &mut self,
        pass: &Pass,
        message: MessageKey,
        (endpoint, attempt, class): (&Endpoint, &Attempt, Class),
        now: Timestamp,
    ) -> Settled {
        let Some(Home::Known(known)) = self.lanes.get_mut(&endpoint.key).map(|lane| &mut lane.home)
        else {
            return Settled::default();
        };
        let hint = match known.policy.retry_after {
            RetryAfterMode::Ignore => RetryAfter::Absent,
            RetryAfterMode::Exact | RetryAfterMode::AtLeast => attempt.retry_after(),
        };
        let outcome = admit::Outcome { class, status: attempt.status(), hint, message };
        known.gate.settle(pass, outcome, now, &mut *self.chance)
    }

    /// The task of a send broke off. It counts as an attempt, or it would break off for ever;
    /// nobody else is blamed.
    fn judge_broken(&mut self, flight: Flight, now: Timestamp) {
        self.release_pass(&flight, now);
        let Flight { pending, endpoint, .. } = flight;
        tracing::error!(endpoint = pending.endpoint.0, "a send broke off");
        let text = "the send broke off because of a fault in the sender";
        let attempt = unseen(&pending, FailureKind::Internal, text, now);
        if self.known(pending.endpoint).is_none() {
            return self.judge_late(pending, endpoint, attempt);
        }
        self.telemetry.attempted(Class::Internal, attempt.took);
        let settled = Settled::default();
        self.follow(Landed { pending, endpoint, attempt, class: Class::Transient, settled }, now);
    }

    /// The transport did not keep the deadline.
    fn judge_overdue(&mut self, flight: Flight, now: Timestamp) {
        let text = "no complete answer in time";
        let attempt = unseen(&flight.pending, FailureKind::Timeout, text, now);
        self.judge(flight, attempt, now);
    }

    /// What follows from a send, on its way to the ledger.
    fn follow(&mut self, landed: Landed, now: Timestamp) {
        let Landed { pending, endpoint, attempt, class, settled } = landed;
        let Some(lane) = self.lanes.get_mut(&pending.endpoint) else { return };
        let Home::Known(known) = &mut lane.home else { return };
        let case = Case { attempt: &attempt, class, policy: &known.policy, pending: &pending, now };
        let verdict = verdict::judge(&case, &mut *self.chance);
        if verdict == Verdict::Stay {
            return self.put_back(Item { pending, envelope: None });
        }
        let mut keeps_place = known.is_ordered()
            && !pending.trigger.is_extra()
            && !lane.withdrawn_out.contains(&pending.message);
        let mut retry_at = None;
        if let Verdict::Retry { due_at, .. } = verdict {
            retry_at = Some(due_at);
            if keeps_place {
                known.gate.hold_head(retry_at);
            }
        } else {
            keeps_place = false;
        }
        let state = known.changed_state();
        let told = known.breaker_news(settled.change);
        // Of several sends that are told so together the first disables the endpoint, and its owner
        // is told once.
        let disables = class == Class::Gone && !std::mem::replace(&mut known.gone, true);
        let judged = Judged { pending, attempt, class, verdict, keeps_place };
        let Some(mut record) = record::of_attempt(judged, state, &mut *self.chance) else { return };
        record.disable = record.disable.filter(|_| disables);
        record.news.breaker = told;
        record.run = settled.run;
        let (endpoint, class) = (Some(endpoint), Some(class));
        self.results_push(Entry { record, endpoint, class, settled, retry_at, keeps_place });
    }

    /// The endpoint was deleted while the send was out: a 2xx still counts, anything else is a
    /// cancellation.
    fn judge_late(&mut self, pending: Pending, endpoint: Arc<Endpoint>, attempt: Attempt) {
        let class = classify(&attempt, &self.settings.retry.retry_on);
        self.telemetry.attempted(class, attempt.took);
        let reason = CancelReason::EndpointDeleted;
        let mut record = record::of_cancelled(pending, reason, &mut *self.chance);
        if class == Class::Success {
            record.follow = Follow::Delivered;
        }
        record.attempt = Some(attempt);
        self.results_push(Entry { class: Some(class), ..Entry::unsent(record, Some(endpoint)) });
    }

    pub(super) fn results_push(&mut self, entry: Entry) {
        if let Some(lane) = self.lanes.get_mut(&entry.record.pending.endpoint) {
            lane.unrecorded += 1;
        }
        self.results.unrecorded += 1;
        self.results.waiting.push(entry);
    }
}

/// A send of whose end nothing is known but this.
fn unseen(pending: &Pending, kind: FailureKind, text: &str, now: Timestamp) -> Attempt {
    Attempt {
        number: pending.sends.saturating_add(1),
        started_at: now,
        took: Duration::ZERO,
        trigger: pending.trigger,
        outcome: Outcome::Failed(Failure { kind, text: text.to_owned() }),
        resent: false,
    }
}
