//! Why a delivery is where it is, in one sentence, with the terms that set its next time.
//!
//! In: what is stored of a delivery and what its lane says. Out: a reason that scripts can rely on,
//! a sentence for people, and when something happens next. Of several things that keep a delivery
//! back the one that lasts longest is told.
//! Never: say what is not known, or show a receiver's words unmarked.

use std::time::Duration;

use domain::classify::describe;
use domain::dead_letter::{DeadLetter, DeadReason};
use domain::delivery::{CancelReason, DeliveryState};
use domain::endpoint::{Disabled, Endpoint, Ordering};
use domain::ids::Kind;
use domain::message::Message;
use domain::policy::RetrySettings;
use engine::{Held, HeldBy, NextSend, Situation};
use resilience::{RetryAfter, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use store::history::{AttemptRow, DeliveryRow};
use store::recoveries::Recovery;

use super::attempt::{TERMS, term_name};
use super::{time, time_or_none};
use crate::api::shapes::{EndpointId, MessageId, Time, or_null};
use crate::spelling::duration_text;

mod waits;

/// Why a delivery is where it is.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DeliveryExplainedOut")]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExplainOut {
    #[schemars(with = "MessageId")]
    msg_id: String,
    #[schemars(with = "EndpointId")]
    endpoint_id: String,
    #[schemars(extend("enum" = ["pending", "delivered", "dead", "cancelled"]))]
    state: &'static str,
    #[schemars(extend("enum" = REASONS))]
    reason: &'static str,
    /// For people.
    sentence: String,
    /// When something happens next, if that is known and not past.
    #[schemars(with = "Option<Time>")]
    next_attempt: Option<String>,
    /// Sends made.
    attempts: u32,
    /// While it is pending.
    terms: Option<TermsOut>,
}

/// What sets the time of the next attempt.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DeliveryTermsOut")]
#[serde(rename_all = "camelCase")]
struct TermsOut {
    /// Its own time, or that of the message that an ordered endpoint tries first, if that is later;
    /// null when nobody knows that one. What else holds the endpoint comes on top.
    #[schemars(with = "Option<Time>")]
    due_at: Option<String>,
    /// Null before the first failure.
    #[schemars(extend("enum" = or_null(&TERMS)))]
    set_by: Option<&'static str>,
    /// From the end of the last attempt to `dueAt`.
    delay_ms: Option<u64>,
    /// What the receiver asked for with its last answer, in seconds.
    retry_after_s: Option<u64>,
    strategy: &'static str,
    base: String,
    cap: String,
    attempts_max: u32,
    age_max: String,
}

/// The reasons, by state.
const REASONS: [&str; 32] = [
    "delivered",
    "in_flight",
    "scheduled",
    "retry",
    "next_in_line",
    "in_line",
    "endpoint_disabled",
    "endpoint_gone",
    "endpoint_suspended",
    "breaker_open",
    "breaker_half_open",
    "breaker_forced_open",
    "hold_refusals",
    "hold_retry_after",
    "hold_head",
    "hold_gap",
    "rate_limit",
    "window_full",
    "server_stopping",
    "server_fault",
    "server_storage",
    "server_suspect",
    "server_full",
    "rejected",
    "gone",
    "forbidden_target",
    "exhausted",
    "expired",
    "poisonous",
    "payload_gone",
    "endpoint_deleted",
    "superseded",
];

/// Everything that is known of a delivery.
pub(crate) struct Known<'a> {
    pub(crate) now: Timestamp,
    pub(crate) message: &'a Message,
    pub(crate) endpoint: &'a Endpoint,
    /// The endpoint was deleted.
    pub(crate) deleted: bool,
    pub(crate) delivery: &'a DeliveryRow,
    pub(crate) last: Option<&'a AttemptRow>,
    pub(crate) letter: Option<&'a DeadLetter>,
    /// What its endpoint is owed after an outage, if it wants that.
    pub(crate) recovery: Option<Recovery>,
    /// The endpoint's policy.
    pub(crate) retry: RetrySettings,
    pub(crate) situation: Situation,
    /// Id of the message that its lane sends first.
    pub(crate) behind: Option<String>,
}

/// A reason, its sentence, and when something happens next.
struct Because {
    reason: &'static str,
    sentence: String,
    next: Option<Timestamp>,
}

impl Because {
    fn new(reason: &'static str, sentence: impl Into<String>) -> Self {
        Self { reason, sentence: sentence.into(), next: None }
    }

    fn next(self, next: impl Into<Option<Timestamp>>) -> Self {
        Self { next: next.into(), ..self }
    }
}

impl ExplainOut {
    /// Says why.
    pub(crate) fn new(known: &Known<'_>) -> Self {
        let because = known.because();
        let pending = known.delivery.state == DeliveryState::Pending && !known.deleted;
        Self {
            msg_id: known.message.id.text(Kind::Message),
            endpoint_id: known.endpoint.id.text(Kind::Endpoint),
            state: if known.is_cancelled() { "cancelled" } else { known.delivery.state.name() },
            reason: because.reason,
            sentence: because.sentence,
            next_attempt: because.next.filter(|at| *at > known.now).and_then(time_or_none),
            attempts: known.delivery.sends,
            terms: known.delivery.due_at.filter(|_| pending).map(|own| known.terms(own)),
        }
    }
}

impl Known<'_> {
    /// What waits for a deleted endpoint is cancelled when it is next read.
    fn is_cancelled(&self) -> bool {
        self.deleted && self.delivery.state == DeliveryState::Pending
    }

    fn because(&self) -> Because {
        match self.delivery.state {
            _ if self.is_cancelled() => cancelled(CancelReason::EndpointDeleted),
            DeliveryState::Cancelled(reason) => cancelled(reason),
            DeliveryState::Delivered => self.delivered(),
            DeliveryState::Dead(reason) => self.dead(reason),
            DeliveryState::Pending => self.pending(),
        }
    }

    fn delivered(&self) -> Because {
        let sentence = match self.last {
            Some(row) if (200..300).contains(&row.attempt.status()) => format!(
                "Delivered: attempt {} of {} was answered {}.",
                row.attempt.number,
                time(row.attempt.started_at),
                row.attempt.status()
            ),
            _ => "Delivered: the receiver answered 2xx.".to_owned(),
        };
        Because::new("delivered", sentence)
    }

    fn dead(&self, reason: DeadReason) -> Because {
        let what = match reason {
            DeadReason::Rejected => "the receiver refused it".to_owned(),
            DeadReason::Gone => "the receiver is gone for good".to_owned(),
            DeadReason::ForbiddenTarget => "its address may not be dialled".to_owned(),
            DeadReason::Exhausted => match self.retry.sends_max() {
                1 => "its only attempt was used".to_owned(),
                most => format!("all {most} attempts were used"),
            },
            DeadReason::Expired => {
                format!("it was older than {}", duration_text(self.retry.age_max))
            }
            DeadReason::Poisonous => "the process died while it was sent, again and again".into(),
            DeadReason::PayloadGone => "its payload was deleted while it waited".to_owned(),
        };
        let at =
            self.letter.map_or_else(String::new, |dead| format!(" since {}", time(dead.dead_at)));
        let last = self.last_words().map_or_else(String::new, |last| format!("; at last {last}"));
        let then = match self.letter {
            _ if self.message.payload_gone => "Its payload is gone: it cannot be sent again.",
            None => "Its dead letter was deleted: it can be sent again by a resend.",
            Some(letter) => self.way_back(letter),
        };
        Because::new(reason.name(), format!("Dead{at}: {what}{last}. {then}"))
    }

    /// How a dead letter is sent again.
    fn way_back(&self, letter: &DeadLetter) -> &'static str {
        let of_outage = matches!(letter.reason, DeadReason::Exhausted | DeadReason::Expired);
        let recovery = self.recovery.filter(|it| of_outage && letter.dead_at >= it.since);
        match recovery.map(|recovery| recovery.ready) {
            None => "Replay it once the cause is mended.",
            Some(_) if self.endpoint.spec.disabled.is_some() => {
                "It goes back by itself once the endpoint is enabled and works; or replay it."
            }
            Some(false) => "It goes back by itself once the endpoint works again; or replay it.",
            Some(true) => "The endpoint works again: it goes back by itself, in its turn.",
        }
    }

    /// What the last attempt came to.
    fn last_words(&self) -> Option<String> {
        describe(&self.last?.attempt)
    }

    fn pending(&self) -> Because {
        let Situation { in_flight, breaker, .. } = &self.situation;
        let number = self.delivery.sends.saturating_add(1);
        if *in_flight {
            return Because::new("in_flight", format!("Attempt {number} is under way."));
        }
        match self.endpoint.spec.disabled {
            Some(Disabled::ByOwner) => {
                let sentence =
                    "Waits: the endpoint is disabled. Enabling it sends what waits, oldest first.";
                return Because::new("endpoint_disabled", sentence);
            }
            Some(Disabled::Gone) => {
                let sentence = "Waits: the endpoint answered 410 and was disabled. Enabling it sends what waits, oldest first.";
                return Because::new("endpoint_gone", sentence);
            }
            None => {}
        }
        let due = self.delivery.due_at.unwrap_or(self.now);
        let next = self.situation.next;
        let held = !matches!(next, NextSend::WhenDue);
        let outlasts = match next {
            NextSend::NotBefore(until) => until > due,
            NextSend::Unknown => true,
            NextSend::WhenDue => false,
        };
        if held && outlasts {
            return self.held(breaker.hold);
        }
        if due > self.now {
            return self.not_due(due);
        }
        self.waits_for_turn()
    }

    /// When it is due, by its row and by the order of its endpoint.
    fn due(&self, own: Timestamp) -> Option<Timestamp> {
        if self.endpoint.spec.ordering == Ordering::Unordered {
            return Some(own);
        }
        match (&self.behind, self.situation.breaker.hold) {
            (_, Some(Held { by: HeldBy::Head, until: Some(until), .. })) => Some(own.max(until)),
            // The head's row keeps its place; the last attempt tells when it is tried again.
            (None, _) => {
                Some(self.last.and_then(|row| row.next).map_or(own, |(at, _)| own.max(at)))
            }
            (Some(_), _) => (own > self.now).then_some(own),
        }
    }

    fn terms(&self, own: Timestamp) -> TermsOut {
        let set = self.last.and_then(|row| Some((row, row.next?)));
        let delay = set.map(|(row, (at, _))| {
            let ended = row.attempt.started_at.plus(row.attempt.took);
            at.since(ended)
        });
        let hint = self.last.map(|row| row.attempt.retry_after());
        TermsOut {
            due_at: self.due(own).and_then(time_or_none),
            set_by: set.map(|(_, (_, term))| term_name(term)),
            delay_ms: delay.map(millis),
            retry_after_s: match hint {
                Some(RetryAfter::Wait(wait)) => Some(wait.as_secs()),
                _ => None,
            },
            strategy: self.retry.strategy.name(),
            base: duration_text(self.retry.base),
            cap: duration_text(self.retry.cap),
            attempts_max: self.retry.sends_max(),
            age_max: duration_text(self.retry.age_max),
        }
    }
}

fn cancelled(reason: CancelReason) -> Because {
    match reason {
        CancelReason::EndpointDeleted => {
            Because::new("endpoint_deleted", "Cancelled: the endpoint was deleted.")
        }
        CancelReason::Superseded => Because::new(
            "superseded",
            "Cancelled: it was replayed with another payload, as a new message.",
        ),
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
