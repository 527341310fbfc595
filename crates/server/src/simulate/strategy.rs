//! The strategies that can be compared, by name.
//!
//! Those that double begin at twice the base, and those that triple at three times, as in the
//! published comparison.
//! Never: compute a wait; the resilience library does.

use std::time::Duration;

use clap::ValueEnum;
use resilience::compat::http_adapter::Formula;
use resilience::{Backoff, Chance, Jitter, Waits};

/// How a client waits after a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Strategy {
    /// Not at all.
    None,
    /// Always the base.
    Fixed,
    /// The base, then twice, then three times.
    Linear,
    /// Doubling, without jitter.
    Exponential,
    /// Doubling, half of it drawn.
    EqualJitter,
    /// Doubling, all of it drawn.
    FullJitter,
    /// From the base to three times the last wait, drawn under the cap.
    DecorrelatedJitter,
    /// The same cut at the cap after the draw, as it is often published.
    DecorrelatedCut,
    /// From the base to a power of three, without memory of the last wait.
    DecorrelatedStateless,
}

impl Strategy {
    /// Its name on the command line and in all output.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fixed => "fixed",
            Self::Linear => "linear",
            Self::Exponential => "exponential",
            Self::EqualJitter => "equal_jitter",
            Self::FullJitter => "full_jitter",
            Self::DecorrelatedJitter => "decorrelated_jitter",
            Self::DecorrelatedCut => "decorrelated_cut",
            Self::DecorrelatedStateless => "decorrelated_stateless",
        }
    }

    /// Its place among all.
    pub(super) const fn number(self) -> u8 {
        self as u8
    }

    /// Its waits.
    pub(super) fn waits(self, base: Duration, cap: Duration) -> Box<dyn Waits> {
        let twice = base.saturating_mul(2);
        let doubling = Backoff::Exponential { base: twice, cap };
        match self {
            Self::None => Box::new(Backoff::Fixed { base: Duration::ZERO }),
            Self::Fixed => Box::new(Backoff::Fixed { base }),
            Self::Linear => Box::new(Backoff::Linear { base, cap }),
            Self::Exponential => Box::new(doubling),
            Self::EqualJitter => {
                Box::new(Backoff::Spread { of: Box::new(doubling), jitter: Jitter::Equal })
            }
            Self::FullJitter => Box::new(Backoff::FullJitter { base: twice, cap }),
            Self::DecorrelatedJitter => Box::new(Backoff::DecorrelatedJitter { base, cap }),
            Self::DecorrelatedCut => {
                let of = Backoff::DecorrelatedJitter { base, cap: Duration::MAX };
                Box::new(Cut { of, cap })
            }
            Self::DecorrelatedStateless => Box::new(Formula::Decorrelated { base, max: cap }),
        }
    }
}

/// Waits that are drawn first and cut at the cap then.
struct Cut {
    of: Backoff,
    cap: Duration,
}

impl Waits for Cut {
    fn wait(&self, retry: u32, last: Duration, chance: &mut dyn Chance) -> Duration {
        self.of.wait(retry, last, chance).min(self.cap)
    }
}
