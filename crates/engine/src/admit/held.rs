//! What holds a lane beside its breaker, as it is shown.
//!
//! Never: hold anything; the gate and the lane do.

use resilience::Timestamp;

use super::{Decision, Gate};

/// Why nothing but a probe is sent though the breaker would let it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// A run of refusals to different messages.
    Refusals,
    /// `Retry-After` on 429 or 503, or 429 alone.
    RetryAfter,
    /// The head of an ordered lane waits until it is tried again.
    Head,
    /// A dead letter of a lane in strict order.
    Gap,
}

impl HeldBy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Refusals, Self::RetryAfter, Self::Head, Self::Gap];

    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refusals => "refusals",
            Self::RetryAfter => "retry_after",
            Self::Head => "head",
            Self::Gap => "gap",
        }
    }
}

/// A hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// What holds.
    pub by: HeldBy,
    /// Until then; past, one delivery is let through, and what it comes to decides. `None`: until
    /// somebody ends it.
    pub until: Option<Timestamp>,
    /// Of refusals: when the first of the run came.
    pub run: Option<Timestamp>,
}

impl Gate {
    /// What holds the lane beside the breaker: of several, what lasts longest.
    pub fn held(&self, now: Timestamp) -> Option<Held> {
        let head = self.hold.head().filter(|head| *head > now);
        let run = |by| self.refusals.holding().filter(|_| by == HeldBy::Refusals);
        let of = |by, until: Option<Timestamp>| {
            until.map(|until| Held { by, until: Some(until), run: run(by) })
        };
        let all = [
            of(HeldBy::Head, head),
            of(HeldBy::RetryAfter, self.hold.of_receiver()),
            of(HeldBy::Refusals, self.refusals.until()),
        ];
        all.into_iter().flatten().max_by_key(|held| held.until)
    }

    /// How many sends may be out at once.
    pub const fn window(&self) -> u32 {
        self.window.limit()
    }

    /// When the rate lets the next send through, if not now.
    pub fn rate_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.rate.as_ref().and_then(|rate| rate.peek(now).err())
    }

    /// Until when breaker and holds keep everything back: `Go`, when they do not, or what they
    /// wait for.
    pub fn waits(&self, now: Timestamp) -> Decision {
        let mut latest = Decision::Go;
        for step in self.steps(now) {
            match (step, latest) {
                (Decision::Go | Decision::Probe, _) => {}
                (Decision::Wait(Some(until)), Decision::Wait(Some(known))) => {
                    latest = Decision::Wait(Some(until.max(known)));
                }
                (Decision::Wait(Some(_)), _) => latest = step,
                (Decision::Wait(None), _) => return step,
            }
        }
        latest
    }
}
