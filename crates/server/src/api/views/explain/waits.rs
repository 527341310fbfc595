//! What a pending delivery waits for, in words.
//!
//! Never: choose between what the lane and what the row says; that is done before.

use domain::classify::describe;
use domain::endpoint::Ordering;
use domain::policy::Strategy;
use engine::{Held, HeldBy, NextSend, Paused};
use resilience::{Forced, Term, Timestamp};

use super::{Because, Known};
use crate::api::views::time;
use crate::spelling::duration_text;

impl Known<'_> {
    /// The lane keeps it back for longer than its own time.
    pub(super) fn held(&self, hold: Option<Held>) -> Because {
        let breaker = &self.situation.breaker;
        let until = match self.situation.next {
            NextSend::NotBefore(until) => Some(until),
            NextSend::WhenDue | NextSend::Unknown => None,
        };
        let by_hold =
            hold.filter(|hold| breaker.state == "closed" || hold.until > breaker.open_until);
        match by_hold {
            // It is the head itself, whose row keeps its place.
            Some(Held { by: HeldBy::Head, until: Some(until), .. }) if self.behind.is_none() => {
                return self.not_due(until);
            }
            Some(hold) => return self.held_by(hold),
            None => {}
        }
        let since = time(breaker.since);
        let failures = match breaker.consecutive_failures {
            // They are not kept over a restart.
            0 => String::new(),
            1 => ", after a failure".to_owned(),
            count => format!(", after {count} failures in a row"),
        };
        match (breaker.state, breaker.forced) {
            ("suspended", _) => Because::new("endpoint_suspended", format!(
                "Waits: the endpoint is suspended since {since}; one delivery is tried {}.",
                until.map_or_else(|| "now and then".to_owned(), |at| format!("at {}", time(at)))
            )),
            (_, Some(Forced::Open)) => Because::new("breaker_forced_open", format!(
                "Waits: somebody forced the circuit breaker open at {since}; it stays so until it is given back (`auto`)."
            )),
            ("halfOpen", _) => Because::new(
                "breaker_half_open",
                "Waits: the circuit breaker is half open, and one delivery is being tried first.",
            ),
            _ => Because::new("breaker_open", format!(
                "Waits: the circuit breaker is open since {since}{failures}; one delivery is tried {}.",
                until.map_or_else(|| "next".to_owned(), |at| format!("at {}", time(at)))
            )),
        }
        .next(until)
    }

    fn held_by(&self, hold: Held) -> Because {
        let until = hold.until.map_or_else(String::new, |at| format!(" until {}", time(at)));
        let behind = self.behind.as_deref().unwrap_or("another message");
        let (reason, sentence) = match hold.by {
            HeldBy::Refusals => (
                "hold_refusals",
                format!(
                    "Waits{until}: the receiver refused 20 messages in a row, so the endpoint is held; changing its URL, headers or secret ends that."
                ),
            ),
            HeldBy::RetryAfter => (
                "hold_retry_after",
                format!("Waits{until}: the receiver asked for a pause of everything (429 or 503)."),
            ),
            HeldBy::Head => (
                "hold_head",
                format!(
                    "Waits{until}: the endpoint is ordered, and {behind} is tried again first."
                ),
            ),
            HeldBy::Gap => (
                "hold_gap",
                format!(
                    "Waits: the endpoint is in strict order, and {behind} is dead; replay or delete that dead letter."
                ),
            ),
        };
        Because::new(reason, sentence).next(hold.until)
    }

    pub(super) fn not_due(&self, due: Timestamp) -> Because {
        let at = time(due);
        let Some(row) = self.last else {
            let sentence = format!("Scheduled: the message asked for delivery at {at}.");
            return Because::new("scheduled", sentence).next(due);
        };
        let number = row.attempt.number;
        let words = describe(&row.attempt).unwrap_or_else(|| "it was sent".to_owned());
        let by = match row.next {
            Some((_, Term::RetryAfter)) => "the receiver's Retry-After".to_owned(),
            Some((_, Term::AgeLimit)) => format!(
                "the age limit of {}: this is the last attempt",
                duration_text(self.retry.age_max)
            ),
            Some((_, Term::Backoff)) | None => self.backoff(),
        };
        let sentence = format!(
            "Waits until {at} for attempt {}: after attempt {number} ({words}) that time was set by {by}.",
            self.delivery.sends.saturating_add(1),
        );
        Because::new("retry", sentence).next(due)
    }

    /// How the policy comes to a time.
    fn backoff(&self) -> String {
        let (base, cap) = (duration_text(self.retry.base), duration_text(self.retry.cap));
        match self.retry.strategy {
            Strategy::Fixed => format!("the fixed backoff of {base}"),
            Strategy::Schedule => "the schedule of the policy".to_owned(),
            Strategy::Linear => format!("the linear backoff in steps of {base}, at most {cap}"),
            Strategy::Exponential => format!("the exponential backoff from {base}, at most {cap}"),
            Strategy::FullJitter => format!(
                "chance (full_jitter), from nothing to {base} doubled with each failure, at most {cap}"
            ),
            Strategy::DecorrelatedJitter => {
                format!("chance (decorrelated_jitter), from {base} to {cap}")
            }
        }
    }

    /// It is due, and nothing of its endpoint's health keeps it back.
    pub(super) fn waits_for_turn(&self) -> Because {
        let (out, most) = self.situation.window;
        if let Some(paused) = self.situation.paused {
            return paused_because(paused);
        }
        if let Some(behind) = &self.behind {
            let sentence = format!("Waits: the endpoint is ordered, and {behind} goes first.");
            return Because::new("in_line", sentence);
        }
        if let Some(until) = self.situation.rate_until {
            let sentence = format!(
                "Waits: the endpoint takes {} deliveries a second; the next one goes at {}.",
                self.endpoint.spec.throttle_rate.unwrap_or(0),
                time(until)
            );
            return Because::new("rate_limit", sentence).next(until);
        }
        if out > 0 && self.endpoint.spec.ordering != Ordering::Unordered {
            let sentence = "Waits: the endpoint is ordered, and another message is under way.";
            return Because::new("in_line", sentence);
        }
        if out >= most {
            let sentence = format!(
                "Waits: as many deliveries to the endpoint are under way as may be now ({most})."
            );
            return Because::new("window_full", sentence);
        }
        Because::new(
            "next_in_line",
            "Due: it is sent when its turn comes, which is at once unless others wait before it.",
        )
    }
}

fn paused_because(paused: Paused) -> Because {
    match paused {
        Paused::Stopping => Because::new(
            "server_stopping",
            "Waits: the server is stopping; it is sent after the next start.",
        ),
        Paused::OwnFault => Because::new(
            "server_fault",
            "Waits: sending is paused, for the fault is on the server's side.",
        ),
        Paused::Storage => Because::new(
            "server_storage",
            "Waits: nothing is sent while results cannot be written to the database.",
        ),
        Paused::Suspect => Because::new(
            "server_suspect",
            "Waits: what was under way when the process died is sent alone first.",
        ),
        Paused::Full => Because::new(
            "server_full",
            "Waits: as many deliveries are under way as the server may have.",
        ),
    }
}
