//! Stage 4: what follows from an attempt, as a record for the ledger.
//!
//! In: the row, the facts, the verdict, the lane's state if the result changed it. Out: a `Record`.
//! Never: judge (that is `domain::verdict`) or send.

use domain::attempt::Attempt;
use domain::classify::{self, Class};
use domain::delivery::Pending;
use domain::endpoint::Disabled;
use domain::notice::News;
use domain::verdict::Verdict;
use domain::{dead_letter::DeadReason, delivery::CancelReason};
use resilience::Chance;
use store::ledger::{Follow, LaneState, Record, RecordNews};
use store::prune::PAYLOAD_GONE;

/// A judged attempt.
pub struct Judged {
    /// The row the send was made for.
    pub pending: Pending,
    /// The facts.
    pub attempt: Attempt,
    /// How they were classified.
    pub class: Class,
    /// What was decided; `Stay` records nothing.
    pub verdict: Verdict,
    /// An ordered endpoint's retry keeps its place.
    pub keeps_place: bool,
}

/// The record of a judged attempt; `None` when nothing is to be recorded.
pub fn of_attempt(
    judged: Judged,
    lane: Option<LaneState>,
    chance: &mut dyn Chance,
) -> Option<Record> {
    let Judged { pending, attempt, class, verdict, keeps_place } = judged;
    let news = RecordNews { delivery: News::of(&pending, &verdict), breaker: None };
    let follow = match verdict {
        Verdict::Stay => return None,
        Verdict::Delivered => Follow::Delivered,
        Verdict::Unchanged => Follow::Unchanged,
        Verdict::Dead(reason) => Follow::Dead { reason, error: classify::describe(&attempt) },
        Verdict::Retry { due_at, delay, term, budget_used } => {
            let tried_at = due_at;
            let due_at = if keeps_place { pending.due_at } else { due_at };
            Follow::Retry { due_at, tried_at, budget_used, delay, term }
        }
    };
    let disable = (class == Class::Gone).then_some(Disabled::Gone);
    let attempt = Some(attempt);
    let random = random(chance);
    Some(Record { pending, attempt, random, follow, lane, disable, run: None, news })
}

/// The record of a row that is given up without a send.
pub fn of_dead(pending: Pending, reason: DeadReason, chance: &mut dyn Chance) -> Record {
    let error = match reason {
        DeadReason::Expired => "the age limit passed before it could be sent",
        DeadReason::PayloadGone => PAYLOAD_GONE,
        DeadReason::Poisonous => "sending it ended the process again and again",
        _ => "not sent",
    };
    let follow = Follow::Dead { reason, error: Some(error.to_owned()) };
    let delivery = News::of(&pending, &Verdict::Dead(reason));
    let news = RecordNews { delivery, breaker: None };
    Record { news, ..unsent(pending, follow, chance) }
}

/// The record of a row whose endpoint is gone.
pub fn of_cancelled(pending: Pending, reason: CancelReason, chance: &mut dyn Chance) -> Record {
    unsent(pending, Follow::Cancelled(reason), chance)
}

fn unsent(pending: Pending, follow: Follow, chance: &mut dyn Chance) -> Record {
    Record {
        pending,
        attempt: None,
        random: random(chance),
        follow,
        lane: None,
        disable: None,
        run: None,
        news: RecordNews::default(),
    }
}

fn random(chance: &mut dyn Chance) -> [u8; 12] {
    let mut random = [0; 12];
    random[..8].copy_from_slice(&chance.next_u64().to_le_bytes());
    random[8..].copy_from_slice(&chance.next_u64().to_le_bytes()[..4]);
    random
}
