//! The life of a delivery: one message on its way to one endpoint.
//!
//! `pending(due_at)` → `delivered` | `dead(reason)` | `cancelled(reason)`; `dead` → `pending` by
//! replay.
//! The picture is docs/lifecycle.md, and a test holds the two together.
//! Never: decide; see `verdict`.

use std::time::Duration;

use resilience::Timestamp;

use crate::dead_letter::DeadReason;
use crate::ids::{EndpointKey, MessageKey};

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// Waiting for its due time, its endpoint or its turn; "in flight" is memory of the owner.
    Pending,
    /// A receiver answered 2xx.
    Delivered,
    /// Given up, kept with everything known about it.
    Dead(DeadReason),
    /// Never to be sent.
    Cancelled(CancelReason),
}

/// Every legal move, by the stable names of the states, and what makes it.
///
/// The picture in docs/lifecycle.md is drawn from these.
pub const TRANSITIONS: [(&str, &str, &str); 8] = [
    ("pending", "pending", "retry"),
    ("pending", "delivered", "2xx"),
    ("pending", "dead", "given up"),
    ("pending", "cancelled", "endpoint deleted"),
    ("dead", "pending", "replay"),
    ("dead", "delivered", "resend answered 2xx"),
    ("dead", "cancelled", "replayed with another payload"),
    ("cancelled", "delivered", "late 2xx"),
];

impl DeliveryState {
    /// The stable name, whatever the reason.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Dead(_) => "dead",
            Self::Cancelled(_) => "cancelled",
        }
    }

    /// Whether a delivery may move from `self` to `next`.
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Pending, _)
                | (Self::Dead(_), Self::Pending | Self::Delivered)
                | (Self::Dead(_), Self::Cancelled(CancelReason::Superseded))
                | (Self::Cancelled(_), Self::Delivered)
        )
    }
}

/// Why a delivery was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CancelReason {
    /// The endpoint was deleted.
    EndpointDeleted,
    /// A dead letter was replayed with another payload, as a new message.
    Superseded,
}

impl CancelReason {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::EndpointDeleted, Self::Superseded];

    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EndpointDeleted => "endpoint_deleted",
            Self::Superseded => "superseded",
        }
    }
}

/// Why a send is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// By the policy.
    #[default]
    Scheduled,
    /// Somebody asked for one extra send.
    Manual,
    /// Somebody put a dead delivery back; the sends after this one are by the policy.
    Replay,
    /// Somebody asked for a delivery where there was none: of a message that the endpoint never
    /// got, or with another payload. The sends after this one are by the policy.
    Asked,
}

impl Trigger {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Scheduled, Self::Manual, Self::Replay, Self::Asked];

    /// Whether it is one send beside the delivery, which the policy has no say in.
    pub const fn is_extra(self) -> bool {
        matches!(self, Self::Manual)
    }

    /// Whether a person asked for this very send.
    pub const fn is_by_hand(self) -> bool {
        matches!(self, Self::Manual | Self::Replay | Self::Asked)
    }
}

/// A row of pending work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Where it goes.
    pub endpoint: EndpointKey,
    /// Not before then.
    pub due_at: Timestamp,
    /// What goes.
    pub message: MessageKey,
    /// Age runs from here: acceptance or the last replay.
    pub age_from: Timestamp,
    /// Sends of this delivery ever made; the next one is number `sends + 1`.
    pub sends: u32,
    /// Sends counted against `attempts_max` since acceptance or the last replay.
    pub budget_used: u32,
    /// The delay before this one; zero at first.
    pub last_delay: Duration,
    /// Why it is sent.
    pub trigger: Trigger,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn states() -> Vec<DeliveryState> {
        let dead = DeadReason::ALL.into_iter().map(DeliveryState::Dead);
        let cancelled = CancelReason::ALL.into_iter().map(DeliveryState::Cancelled);
        [DeliveryState::Pending, DeliveryState::Delivered]
            .into_iter()
            .chain(dead)
            .chain(cancelled)
            .collect()
    }

    #[test]
    fn the_table_of_moves_is_the_rule() {
        let mut moves = BTreeSet::new();
        for from in states() {
            for to in states().into_iter().filter(|&to| from.may_become(to)) {
                moves.insert((from.name(), to.name()));
            }
        }
        let table: BTreeSet<_> = TRANSITIONS.iter().map(|&(from, to, _)| (from, to)).collect();
        assert_eq!(moves, table);
        assert_eq!(table.len(), TRANSITIONS.len(), "no move twice");
    }

    #[test]
    fn what_is_delivered_stays_delivered() {
        assert!(states().into_iter().all(|to| !DeliveryState::Delivered.may_become(to)));
    }

    #[test]
    fn rp_04_a_dead_letter_has_a_way_back() {
        for reason in DeadReason::ALL {
            assert!(DeliveryState::Dead(reason).may_become(DeliveryState::Pending));
            assert_eq!(DeadReason::from_name(reason.name()), Some(reason));
        }
    }
}
