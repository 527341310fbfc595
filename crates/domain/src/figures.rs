//! Figures: how many sends ended how, how long they took and which send of its delivery each was;
//! dead letters by reason; messages accepted.
//!
//! What is counted is a closed set, and distributions have fixed bounds, so that figures of many
//! minutes are added without loss.
//! Never: an average; what was added up cannot be told apart again.

use std::time::Duration;

use crate::classify::Class;
use crate::dead_letter::DeadReason;

/// Upper bounds of the distribution of durations, each included; one more bucket holds the rest.
pub const TOOK_BOUNDS_MS: [u64; 26] = [
    1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 1_500, 2_000,
    3_000, 5_000, 7_000, 10_000, 15_000, 30_000,
];
/// Upper bounds of the distribution of numbers of sends, each included; one more bucket holds the
/// rest.
pub const NUMBER_BOUNDS: [u32; 7] = [1, 2, 3, 4, 5, 10, 20];

/// Buckets of durations.
pub const TOOK_BUCKETS: usize = TOOK_BOUNDS_MS.len() + 1;
/// Buckets of numbers of sends.
pub const NUMBER_BUCKETS: usize = NUMBER_BOUNDS.len() + 1;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Sends of this class, by the usual classifier whatever the endpoint's own policy retries.
    Sent(Class),
    /// Deliveries given up.
    Dead(DeadReason),
    /// Messages.
    Accepted,
}

/// How many, and of sends how they are distributed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// By how long they took.
    pub took: [u64; TOOK_BUCKETS],
    /// By which send of its delivery it was.
    pub numbers: [u64; NUMBER_BUCKETS],
}

impl Tally {
    /// One that is not a send.
    pub fn one() -> Self {
        Self { count: 1, ..Self::default() }
    }

    /// Counts one send; how long it took counts in whole microseconds.
    pub fn send(&mut self, took: Duration, number: u32) {
        let micros = took.as_micros();
        let bucket = TOOK_BOUNDS_MS.partition_point(|bound| u128::from(*bound) * 1_000 < micros);
        self.count += 1;
        self.took[bucket] += 1;
        self.numbers[NUMBER_BOUNDS.partition_point(|bound| *bound < number)] += 1;
    }

    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        add(&mut self.took, &other.took);
        add(&mut self.numbers, &other.numbers);
    }

    /// The duration that this share of the sends, from 0 to 1, did not exceed: within the bucket
    /// it falls in, as if that were evenly filled. `None` without any.
    pub fn took_quantile(&self, share: f64) -> Option<Duration> {
        let all: u64 = self.took.iter().sum();
        let rank = to_float(all) * share.clamp(0.0, 1.0);
        let (mut below, mut low) = (0_u64, 0_u64);
        for (bucket, count) in self.took.iter().enumerate() {
            let high = TOOK_BOUNDS_MS.get(bucket).copied().unwrap_or(low);
            if *count > 0 && to_float(below + count) >= rank {
                let part = ((rank - to_float(below)) / to_float(*count)).clamp(0.0, 1.0);
                let ms = to_float(high - low).mul_add(part, to_float(low));
                return Some(Duration::from_secs_f64(ms / 1_000.0));
            }
            (below, low) = (below + count, high);
        }
        None
    }
}

/// Everything that is counted, of a span of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    sent: [Tally; Class::ALL.len()],
    dead: [u64; DeadReason::ALL.len()],
    accepted: u64,
}

impl Figures {
    /// Adds to one of them.
    pub fn add(&mut self, what: Counted, tally: &Tally) {
        match what {
            Counted::Sent(class) => self.sent[class as usize].add(tally),
            Counted::Dead(reason) => self.dead[reason as usize] += tally.count,
            Counted::Accepted => self.accepted += tally.count,
        }
    }

    /// Adds those of another span.
    pub fn add_all(&mut self, other: &Self) {
        for (sum, tally) in self.sent.iter_mut().zip(&other.sent) {
            sum.add(tally);
        }
        add(&mut self.dead, &other.dead);
        self.accepted += other.accepted;
    }

    /// Sends of a class.
    pub const fn sent(&self, class: Class) -> &Tally {
        &self.sent[class as usize]
    }

    /// All sends.
    pub fn sends(&self) -> Tally {
        let mut all = Tally::default();
        self.sent.iter().for_each(|tally| all.add(tally));
        all
    }

    /// Deliveries given up for this reason.
    pub const fn dead(&self, reason: DeadReason) -> u64 {
        self.dead[reason as usize]
    }

    /// Deliveries given up.
    pub fn all_dead(&self) -> u64 {
        self.dead.iter().sum()
    }

    /// Messages accepted.
    pub const fn accepted(&self) -> u64 {
        self.accepted
    }

    /// The share of sends that were answered 2xx, of those that say something about the receiver;
    /// `None` without any.
    pub fn success_ratio(&self) -> Option<f64> {
        let ours = self.sent(Class::Internal).count;
        let judged = self.sends().count - ours;
        let good = self.sent(Class::Success).count;
        (judged > 0).then(|| to_float(good) / to_float(judged))
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.accepted == 0 && self.all_dead() == 0 && self.sent.iter().all(|sent| sent.count == 0)
    }
}

fn add(sums: &mut [u64], others: &[u64]) {
    for (sum, other) in sums.iter_mut().zip(others) {
        *sum += other;
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share for people; exact up to 2^53")]
const fn to_float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(sends: &[(u64, u32)]) -> Tally {
        let mut tally = Tally::default();
        for (ms, number) in sends {
            tally.send(Duration::from_millis(*ms), *number);
        }
        tally
    }

    #[test]
    fn each_send_falls_into_one_bucket_of_each_kind() {
        for (ms, bucket) in [(0, 0), (1, 0), (2, 1), (4, 3), (30_000, 25), (30_001, 26)] {
            assert_eq!(tally(&[(ms, 1)]).took[bucket], 1, "{ms} ms");
        }
        for (number, bucket) in [(1, 0), (5, 4), (6, 5), (10, 5), (11, 6), (20, 6), (21, 7)] {
            assert_eq!(tally(&[(1, number)]).numbers[bucket], 1, "send {number}");
        }
    }

    #[test]
    fn a_quantile_lies_in_the_bucket_of_its_rank() {
        assert_eq!(Tally::default().took_quantile(0.5), None);
        assert_eq!(Tally::one().took_quantile(0.5), None, "not a send");
        let sends: Vec<_> = (1..=100).map(|ms| (ms, 1)).collect();
        let tally = tally(&sends);
        for (share, ms) in [(0.0, 0), (0.5, 50), (0.95, 95), (0.99, 99), (1.0, 100)] {
            let found = tally.took_quantile(share).unwrap();
            assert_eq!(found.as_millis(), ms, "{share}");
        }
        let slow = self::tally(&[(60_000, 1)]);
        assert_eq!(slow.took_quantile(0.5), Some(Duration::from_secs(30)), "no more is known");
    }

    #[test]
    fn figures_of_two_spans_add_up() {
        let (mut a, mut b) = (Figures::default(), Figures::default());
        assert!(a.is_empty() && a.success_ratio().is_none());
        for class in Class::ALL {
            a.add(Counted::Sent(class), &tally(&[(10, 1)]));
        }
        for reason in DeadReason::ALL {
            b.add(Counted::Dead(reason), &Tally::one());
        }
        b.add(Counted::Accepted, &Tally::one());
        a.add_all(&b);
        assert!(Class::ALL.into_iter().all(|class| a.sent(class).count == 1));
        assert!(DeadReason::ALL.into_iter().all(|reason| a.dead(reason) == 1));
        assert_eq!((a.accepted(), a.all_dead(), a.sends().count), (1, 7, 7));
        assert_eq!(a.success_ratio(), Some(1.0 / 6.0), "our own faults say nothing of a receiver");
    }
}
