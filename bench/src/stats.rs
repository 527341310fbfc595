//! The maths of the figures: percentiles by nearest rank, medians, and how they are printed.
//!
//! Never: interpolate, or leave out the slow ones.

use std::fmt;

/// Times in microseconds, sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Vec<u32>);

impl Times {
    /// Sorts them.
    pub(crate) fn new(mut micros: Vec<u32>) -> Self {
        micros.sort_unstable();
        Self(micros)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The smallest time that at least `percent` of all do not exceed; 0 when there are none.
    pub(crate) fn percentile_us(&self, percent: f64) -> u32 {
        let rank = (percent / 100.0 * self.0.len() as f64).ceil() as usize;
        let index = rank.clamp(1, self.0.len().max(1)) - 1;
        self.0.get(index).copied().unwrap_or(0)
    }

    /// The same in milliseconds.
    pub(crate) fn percentile_ms(&self, percent: f64) -> f64 {
        f64::from(self.percentile_us(percent)) / 1000.0
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "p50 {:.2} ms  p90 {:.2} ms  p99 {:.2} ms  p99.9 {:.2} ms  max {:.2} ms  (n {})",
            self.percentile_ms(50.0),
            self.percentile_ms(90.0),
            self.percentile_ms(99.0),
            self.percentile_ms(99.9),
            self.percentile_ms(100.0),
            self.len(),
        )
    }
}

/// The middle value, or the mean of the two in the middle; 0 when there are none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// A figure beside the bar it has to clear.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    what: String,
    met: bool,
}

impl Verdict {
    /// `value` must be below `bar`.
    pub(crate) fn below(what: &str, value: f64, bar: f64) -> Self {
        Self { what: format!("{what}: {value:.2}, bar < {bar}"), met: value < bar }
    }

    /// `value` must be `bar` at most.
    pub(crate) fn at_most(what: &str, value: f64, bar: f64) -> Self {
        Self { what: format!("{what}: {value:.2}, bar <= {bar}"), met: value <= bar }
    }

    /// `value` must be `bar` at least.
    pub(crate) fn at_least(what: &str, value: f64, bar: f64) -> Self {
        Self { what: format!("{what}: {value:.3}, bar >= {bar}"), met: value >= bar }
    }

    /// A condition that holds or not.
    pub(crate) fn that(what: &str, met: bool) -> Self {
        Self { what: what.to_owned(), met }
    }

    /// Whether the bar was cleared.
    pub(crate) const fn met(&self) -> bool {
        self.met
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<6} {}", if self.met { "met" } else { "MISSED" }, self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let times = Times::new((1..=100).rev().collect());
        assert_eq!(times.percentile_us(50.0), 50);
        assert_eq!(times.percentile_us(99.0), 99);
        assert_eq!(times.percentile_us(99.5), 100);
        assert_eq!(times.percentile_us(0.0), 1);
        assert_eq!(times.percentile_us(100.0), 100);
        assert_eq!(Times::new(vec![7]).percentile_us(99.0), 7);
        assert_eq!(Times::new(Vec::new()).percentile_us(99.0), 0);
    }

    #[test]
    fn medians() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median(&[4.0, 1.0]) - 2.5).abs() < f64::EPSILON);
        assert!(median(&[]).abs() < f64::EPSILON);
    }

    #[test]
    fn verdicts_say_which_side_of_the_bar() {
        assert!(Verdict::below("x", 9.9, 10.0).met());
        assert!(!Verdict::below("x", 10.0, 10.0).met());
        assert!(Verdict::at_most("x", 2.0, 2.0).met());
        assert!(!Verdict::at_least("x", 0.49, 0.5).met());
        assert!(Verdict::that("x", false).to_string().starts_with("MISSED"));
    }
}
