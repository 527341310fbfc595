//! The words that scripts and statements speak, and what they stand for.
//!
//! Never: guess at a word that it does not know.

use std::time::Duration;

use resilience::Forced;
use resilience::circuit::{Cause, Phase};
use resilience::classify::Vote;
use resilience::shared::{Admit, StoreError, Transition};

pub(crate) fn admit(what: &str, generation: u64, number: u64) -> Result<Admit, StoreError> {
    let retry_in = Duration::from_micros(number);
    match what {
        "closed" => Ok(Admit::Closed { generation }),
        "probe" => Ok(Admit::Probe { generation, lease: number }),
        "open" => Ok(Admit::Open { generation, retry_in }),
        "out" => Ok(Admit::ProbeOut { generation, retry_in }),
        "forced" => Ok(Admit::ForcedOpen { generation }),
        _ => Err(unknown(what)),
    }
}

/// None for two empty words.
pub(crate) fn transition(
    to: &str,
    cause: &str,
    generation: u64,
) -> Result<Option<Transition>, StoreError> {
    let (to, cause) = match (to, cause) {
        ("", "") => return Ok(None),
        ("open", "tripped") => (Phase::Open, Cause::Tripped),
        ("open", "failed") => (Phase::Open, Cause::ProbeFailed),
        ("closed", "succeeded") => (Phase::Closed, Cause::ProbeSucceeded),
        _ => return Err(unknown(to)),
    };
    Ok(Some(Transition { generation, to, cause }))
}

pub(crate) fn phase_of(word: &str) -> Result<Phase, StoreError> {
    match word {
        "closed" => Ok(Phase::Closed),
        "open" => Ok(Phase::Open),
        "half_open" => Ok(Phase::HalfOpen),
        _ => Err(unknown(word)),
    }
}

/// None for an empty word.
pub(crate) fn forced_of(word: &str) -> Result<Option<Forced>, StoreError> {
    match word {
        "" => Ok(None),
        "open" => Ok(Some(Forced::Open)),
        "closed" => Ok(Some(Forced::Closed)),
        _ => Err(unknown(word)),
    }
}

pub(crate) const fn vote_name(vote: Vote) -> &'static str {
    match vote {
        Vote::Success => "success",
        Vote::Failure => "failure",
        Vote::Ignore => "ignore",
    }
}

pub(crate) const fn forced_name(forced: Option<Forced>) -> &'static str {
    match forced {
        None => "",
        Some(Forced::Open) => "open",
        Some(Forced::Closed) => "closed",
    }
}

/// Bounded, so that sums of times stay exact in every server's arithmetic.
pub(crate) fn micros(span: Duration) -> i64 {
    const CENTURY: i64 = 3_155_760_000_000_000;
    i64::try_from(span.as_micros()).map_or(CENTURY, |micros| micros.min(CENTURY))
}

fn unknown(word: &str) -> StoreError {
    StoreError::new(format!("unknown word {word:?}"))
}
