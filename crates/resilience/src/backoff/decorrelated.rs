//! The expected waits of decorrelated jitter, where the cap makes a closed formula impossible.
//!
//! In: base and cap. Out: the mean of each wait in turn, for people to read and policies to be
//! compared. The spread of one wait is kept as weights on a geometric grid and carried to the next.
//! Never: set a delay. This is the only floating point here, and nothing is ever sent by it.

use std::time::Duration;

const CELLS: i32 = 96;

struct Cell {
    low: f64,
    high: f64,
    weight: f64,
}

impl Cell {
    const fn middle(&self) -> f64 {
        f64::midpoint(self.low, self.high)
    }
}

/// The means of the first `count` waits, a few per cent off at worst.
pub(super) fn means(base: Duration, cap: Duration, count: u32) -> impl Iterator<Item = Duration> {
    let (low, high) = (base.as_secs_f64(), cap.as_secs_f64());
    let room = !base.is_zero() && base < cap;
    let mut cells = if room { grid(low, high) } else { Vec::new() };
    // Before the first wait: exactly the base.
    let mut sources = vec![(low, 1.0)];
    (0..count).map(move |_| {
        if !room {
            return base.min(cap);
        }
        spread(&mut cells, &sources, low, high);
        sources = cells.iter().map(|cell| (cell.middle(), cell.weight)).collect();
        let mean = sources.iter().map(|(wait, weight)| wait * weight).sum();
        Duration::try_from_secs_f64(mean).unwrap_or(cap).clamp(base, cap)
    })
}

fn grid(low: f64, high: f64) -> Vec<Cell> {
    let ratio = (high / low).powf(1.0 / f64::from(CELLS));
    (0..CELLS)
        .map(|n| Cell { low: low * ratio.powi(n), high: low * ratio.powi(n + 1), weight: 0.0 })
        .collect()
}

/// Gives each cell its share of an even draw from `low` to three times each source, at most `high`.
fn spread(cells: &mut [Cell], sources: &[(f64, f64)], low: f64, high: f64) {
    for cell in &mut *cells {
        cell.weight = 0.0;
    }
    for (wait, weight) in sources.iter().filter(|(_, weight)| *weight > 0.0) {
        let top = (wait * 3.0).min(high);
        let density = weight / (top - low);
        for cell in cells.iter_mut().take_while(|cell| cell.low < top) {
            cell.weight += density * (cell.high.min(top) - cell.low);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::Backoff;
    use crate::chance::Seeded;

    #[test]
    fn the_means_are_those_of_drawn_waits() {
        for (ratio, count) in [(2, 6), (10, 8), (300, 14), (1_800, 18)] {
            let (base, cap) = (Duration::from_secs(2), Duration::from_secs(2 * ratio));
            let backoff = Backoff::DecorrelatedJitter { base, cap };
            let (chance, mut last) = (&mut Seeded::new(ratio), vec![Duration::ZERO; 20_000]);
            for (retry, mean) in (0_u32..).zip(means(base, cap, count)) {
                for wait in &mut last {
                    *wait = backoff.delay(retry, *wait, chance);
                }
                let drawn = last.iter().sum::<Duration>() / 20_000;
                let off = drawn.abs_diff(mean);
                assert!(off <= drawn / 20, "{drawn:?}, told {mean:?}, at {retry} of {ratio}");
            }
        }
    }

    #[test]
    fn no_room_means_no_spread() {
        let second = Duration::from_secs(1);
        let all = |base, cap| means(base, cap, 3).collect::<Vec<_>>();
        assert_eq!(all(second, second), [second; 3]);
        assert_eq!(all(second * 5, second), [second; 3]);
        assert_eq!(all(Duration::ZERO, second), [Duration::ZERO; 3]);
        assert_eq!(all(Duration::from_nanos(1), Duration::MAX).len(), 3);
    }
}
