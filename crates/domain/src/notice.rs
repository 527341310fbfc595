//! Notices: what an organisation is told of its own endpoints and deliveries.
//!
//! An organisation is told through the application of the management organisation whose uid is the
//! organisation's id. In: what happened. Out: whether it is worth a notice, and under which name.
//! Never: a notice about the management organisation itself, or the words of a notice; whoever
//! speaks to receivers has those.

use resilience::Timestamp;

use crate::delivery::{Pending, Trigger};
use crate::ids::{EndpointKey, Kind, PublicId};
use crate::verdict::Verdict;

/// Whose applications tell other organisations: `org_00000000000SvixManagement00`.
pub const MANAGEMENT: PublicId = PublicId::from_bytes([
    0, 0, 0, 0, 0, 0, 0, 0, 71, 224, 239, 89, 128, 56, 226, 65, 36, 97, 14, 212,
]);

/// Failed sends after which a delivery is told to be failing.
pub const FAILING_AFTER: u32 = 4;

/// The uid of the application that tells `org`; `None` for the one that is told nothing.
pub fn teller_of(org: PublicId) -> Option<String> {
    (org != MANAGEMENT).then(|| org.text(Kind::Organisation))
}

/// The organisation that an application of the management organisation tells by its uid.
pub fn told_by(uid: &str) -> Option<PublicId> {
    PublicId::parse(Kind::Organisation, uid).filter(|org| *org != MANAGEMENT)
}

/// A run of refusals that holds a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Whose lane.
    pub endpoint: EndpointKey,
    /// When the first of them came.
    pub since: Timestamp,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// An endpoint was created.
    EndpointCreated,
    /// Anything of an endpoint was changed by its owner.
    EndpointUpdated,
    /// An endpoint was deleted.
    EndpointDeleted,
    /// An endpoint was switched off because of what it answered.
    EndpointDisabled {
        /// Since when its sends fail.
        failing_since: Timestamp,
    },
    /// A breaker opened: nothing is sent but probes.
    BreakerOpened {
        /// The first probe is made then.
        until: Timestamp,
    },
    /// A breaker closed: everything is sent again.
    BreakerClosed,
    /// An endpoint fails without a success in between, and is suspended should it go on so.
    EndpointFailing {
        /// Since when its sends fail.
        failing_since: Timestamp,
    },
    /// An endpoint was suspended: nothing is sent but a probe now and then.
    EndpointSuspended {
        /// Since when its sends fail; `None`: they did not, and somebody suspended it.
        failing_since: Option<Timestamp>,
    },
    /// An endpoint is suspended no more: everything is sent again.
    EndpointResumed,
    /// A run of refusals holds an endpoint: nothing is sent but a probe now and then.
    RefusalsHeld(Run),
    /// The run is over: everything is sent again.
    RefusalsEnded(Run),
    /// A delivery failed [`FAILING_AFTER`] times and is tried again.
    AttemptFailing,
    /// A delivery was given up.
    AttemptExhausted,
    /// A delivery arrived after it was told to be failing or given up.
    AttemptRecovered,
}

/// The names of all kinds of news, and a sentence for each.
pub const NAMES: [(&str, &str); 14] = [
    ("endpoint.created", "An endpoint was created."),
    ("endpoint.updated", "An endpoint, its headers or its secrets were changed."),
    ("endpoint.deleted", "An endpoint was deleted."),
    ("endpoint.disabled", "An endpoint was switched off because of what it answered."),
    ("endpoint.breaker.opened", "The breaker of an endpoint opened: nothing is sent but probes."),
    ("endpoint.breaker.closed", "The breaker of an endpoint closed: everything is sent again."),
    ("endpoint.failing", "An endpoint fails without a success, and is going to be suspended."),
    ("endpoint.suspended", "An endpoint was suspended: nothing is sent but a probe now and then."),
    ("endpoint.resumed", "An endpoint is suspended no more: everything is sent again."),
    (
        "endpoint.refusals.held",
        "An endpoint refused 20 messages in a row, and is sent only probes.",
    ),
    ("endpoint.refusals.ended", "A run of refusals is over: everything is sent again."),
    ("message.attempt.failing", "A delivery failed four times and is tried again."),
    ("message.attempt.exhausted", "A delivery was given up and is a dead letter now."),
    ("message.attempt.recovered", "A delivery arrived that was failing or had been given up."),
];

impl News {
    /// The name of its event type.
    pub const fn name(self) -> &'static str {
        let place = match self {
            Self::EndpointCreated => 0,
            Self::EndpointUpdated => 1,
            Self::EndpointDeleted => 2,
            Self::EndpointDisabled { .. } => 3,
            Self::BreakerOpened { .. } => 4,
            Self::BreakerClosed => 5,
            Self::EndpointFailing { .. } => 6,
            Self::EndpointSuspended { .. } => 7,
            Self::EndpointResumed => 8,
            Self::RefusalsHeld(_) => 9,
            Self::RefusalsEnded(_) => 10,
            Self::AttemptFailing => 11,
            Self::AttemptExhausted => 12,
            Self::AttemptRecovered => 13,
        };
        NAMES[place].0
    }

    /// What a verdict is to whoever is told of the delivery: failing once a life, recovered only
    /// after one of the others. One extra send is no news, whatever it comes to.
    pub fn of(pending: &Pending, verdict: &Verdict) -> Option<Self> {
        if pending.trigger.is_extra() {
            return None;
        }
        match verdict {
            Verdict::Retry { budget_used, .. } => {
                let before = pending.budget_used < FAILING_AFTER;
                (before && *budget_used >= FAILING_AFTER).then_some(Self::AttemptFailing)
            }
            Verdict::Dead(_) => Some(Self::AttemptExhausted),
            Verdict::Delivered => {
                let replayed = pending.trigger == Trigger::Replay;
                let told = replayed || pending.sends >= FAILING_AFTER;
                told.then_some(Self::AttemptRecovered)
            }
            Verdict::Stay | Verdict::Unchanged => None,
        }
    }

    /// What `later` is to somebody who was not told of `self`, both of one breaker, or both of one
    /// suspension: an opening that is over is nothing.
    pub const fn then(self, later: Self) -> Option<Self> {
        match (self, later) {
            (Self::BreakerOpened { .. }, Self::BreakerClosed)
            | (Self::EndpointSuspended { .. }, Self::EndpointResumed) => None,
            _ => Some(later),
        }
    }
}

/// A public id and the owner's own.
pub type Named = (PublicId, Option<String>);

/// The last send of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastAttempt {
    /// Its public id.
    pub id: PublicId,
    /// Status code, 0 for none.
    pub status: u16,
    /// When it began.
    pub at: Timestamp,
}

/// One notice: all that its message says, as it was then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Who is told.
    pub org: PublicId,
    /// What happened.
    pub news: News,
    /// The application it happened in.
    pub app: Named,
    /// The endpoint it happened to.
    pub endpoint: Named,
    /// The message, where it is about one, or because of one.
    pub message: Option<Named>,
    /// The last send of that message to the endpoint, if there was one.
    pub attempt: Option<LastAttempt>,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use resilience::Term;

    use super::*;
    use crate::dead_letter::DeadReason;
    use crate::ids::{EndpointKey, MessageKey};

    fn row(sends: u32, budget_used: u32, trigger: Trigger) -> Pending {
        Pending {
            endpoint: EndpointKey(1),
            due_at: Timestamp::EPOCH,
            message: MessageKey(1),
            age_from: Timestamp::EPOCH,
            sends,
            budget_used,
            last_delay: Duration::ZERO,
            trigger,
        }
    }

    #[test]
    fn an_organisation_is_told_by_the_application_with_its_id() {
        let text = "org_00000000000SvixManagement00";
        assert_eq!(PublicId::parse(Kind::Organisation, text), Some(MANAGEMENT));
        let org = PublicId::new(7, [9; 12]);
        assert_eq!(told_by(&teller_of(org).unwrap()), Some(org));
        assert_eq!((teller_of(MANAGEMENT), told_by(text)), (None, None), "and it tells not itself");
        assert_eq!(told_by("customer-1"), None);
    }

    #[test]
    fn only_turns_of_a_delivery_are_news() {
        use News::{AttemptExhausted, AttemptFailing, AttemptRecovered};
        use Trigger::{Asked, Manual, Replay, Scheduled};
        let again = |budget_used| {
            let (delay, term) = (Duration::ZERO, Term::Backoff);
            Verdict::Retry { due_at: Timestamp::EPOCH, delay, term, budget_used }
        };
        let dead = Verdict::Dead(DeadReason::Exhausted);
        let rows = [
            (row(0, 0, Scheduled), Verdict::Delivered, None),
            (row(2, 2, Scheduled), again(3), None),
            (row(3, 3, Scheduled), again(4), Some(AttemptFailing)),
            (row(4, 4, Scheduled), again(5), None),
            (row(3, 3, Scheduled), Verdict::Delivered, None),
            (row(4, 4, Scheduled), Verdict::Delivered, Some(AttemptRecovered)),
            (row(0, 0, Scheduled), dead, Some(AttemptExhausted)),
            (row(9, 9, Scheduled), dead, Some(AttemptExhausted)),
            (row(9, 9, Scheduled), Verdict::Stay, None),
            // Given up at once, or before it was sent, and put back; but not what was never there.
            (row(1, 0, Replay), Verdict::Delivered, Some(AttemptRecovered)),
            (row(0, 0, Replay), Verdict::Delivered, Some(AttemptRecovered)),
            (row(0, 0, Asked), Verdict::Delivered, None),
            (row(9, 0, Manual), Verdict::Delivered, None),
            (row(9, 3, Manual), Verdict::Unchanged, None),
            (row(9, 3, Manual), dead, None),
        ];
        for (row, verdict, news) in rows {
            assert_eq!(News::of(&row, &verdict), news, "{row:?} {verdict:?}");
        }
    }

    #[test]
    fn an_opening_that_is_over_was_nothing() {
        let opened = News::BreakerOpened { until: Timestamp::EPOCH };
        assert_eq!(opened.then(News::BreakerClosed), None);
        assert_eq!(News::BreakerClosed.then(opened), Some(opened));
        assert_eq!(opened.then(opened), Some(opened));
        let suspended = News::EndpointSuspended { failing_since: None };
        assert_eq!(suspended.then(News::EndpointResumed), None);
        let failing = News::EndpointFailing { failing_since: Timestamp::EPOCH };
        assert_eq!(failing.then(suspended), Some(suspended));
    }
}
