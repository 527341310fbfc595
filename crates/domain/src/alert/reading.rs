//! What one evaluation reads of the installation, and what a condition makes of it.
//!
//! In: counters by the minute, failing endpoints, the oldest delivery that is due, whether sending
//! is paused. Out: a figure, what it is compared with, and whom it is about.
//! Never: grow with history; every part of a reading is bounded.

use std::time::Duration;

use resilience::Timestamp;

use super::rule::{Condition, Rule};
use super::title::span;
use crate::dead_letter::DeadReason;
use crate::ids::PublicId;

/// Counters cover a minute each.
const MINUTE: Duration = Duration::from_secs(60);

/// What was counted in one minute over the whole installation, deliveries of alerts left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Minute {
    /// When it began.
    pub at: Timestamp,
    /// Messages accepted.
    pub accepted: u64,
    /// Deliveries that arrived.
    pub delivered: u64,
    /// Attempts made.
    pub attempts: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Dead letters, in the order of [`DeadReason::ALL`].
    pub dead: [u64; DeadReason::ALL.len()],
}

impl Minute {
    fn add(mut self, other: &Self) -> Self {
        self.accepted += other.accepted;
        self.delivered += other.delivered;
        self.attempts += other.attempts;
        self.failed += other.failed;
        for (sum, more) in self.dead.iter_mut().zip(other.dead) {
            *sum += more;
        }
        self
    }

    fn dead_of(&self, reasons: &[DeadReason]) -> u64 {
        let all = DeadReason::ALL.iter().zip(self.dead);
        all.filter(|(reason, _)| reasons.contains(reason)).map(|(_, count)| count).sum()
    }
}

/// An endpoint that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// Its public id.
    pub endpoint: PublicId,
    /// Its owner's own name for it.
    pub endpoint_uid: Option<String>,
    /// `scheme://host:port` of its URL.
    pub origin: String,
    /// The application.
    pub app: PublicId,
    /// Its name, which a tenant chose.
    pub app_name: String,
    /// Without a success since then.
    pub since: Timestamp,
}

/// What one evaluation goes by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Counters by the minute, at least of the longest window; `None`: they could not be read, and
    /// rules about them stay as they are.
    pub minutes: Option<Vec<Minute>>,
    /// Endpoints that fail, those that fail for longest first.
    pub failing: Vec<Failing>,
    /// When the oldest delivery fell due that nothing holds back.
    pub oldest_due: Option<Timestamp>,
    /// Sending is paused for a fault on this side.
    pub paused: bool,
}

impl Reading {
    /// The sum over a window. A minute that lies in it in part counts whole, so that nothing within
    /// the window is missed.
    fn over(&self, window: Duration, now: Timestamp) -> Option<Minute> {
        let from = now.minus(window);
        let within = |minute: &&Minute| minute.at.plus(MINUTE) > from && minute.at <= now;
        let minutes = self.minutes.as_ref()?.iter().filter(within);
        Some(minutes.fold(Minute::default(), Minute::add))
    }
}

/// What a condition comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    /// The figure.
    pub value: u64,
    /// It holds above this.
    pub threshold: u64,
    /// Who it is about, those that fail for longest first.
    pub subjects: Vec<Failing>,
    /// Further figures, by what they are.
    pub facts: Vec<(&'static str, String)>,
}

impl Measure {
    /// Measures a condition, if what it is about could be read; `counts` says whether an endpoint
    /// is looked at.
    pub fn of(
        condition: &Condition,
        reading: &Reading,
        now: Timestamp,
        counts: impl Fn(PublicId) -> bool,
    ) -> Option<Self> {
        let over = |window: &Duration| reading.over(*window, now);
        Some(match condition {
            Condition::DeadLetters { above, window, reasons } => {
                let sum = over(window)?;
                let facts = reasons.iter().filter_map(|reason| {
                    let count = sum.dead_of(&[*reason]);
                    (count > 0).then(|| (reason.name(), count.to_string()))
                });
                let facts = facts.collect();
                Self { value: sum.dead_of(reasons), threshold: *above, facts, ..Self::default() }
            }
            Condition::FailureRatio { above_percent, window, count_min } => {
                let sum = over(window)?;
                let enough = sum.attempts >= (*count_min).max(1);
                Self {
                    value: if enough { sum.failed * 1_000 / sum.attempts } else { 0 },
                    threshold: u64::from(*above_percent) * 10,
                    facts: vec![
                        ("attempts", sum.attempts.to_string()),
                        ("failed", sum.failed.to_string()),
                    ],
                    ..Self::default()
                }
            }
            Condition::EndpointFailing { after } => {
                let since = now.minus(*after);
                let is = |it: &&Failing| it.since <= since && counts(it.endpoint);
                let subjects: Vec<_> = reading.failing.iter().filter(is).cloned().collect();
                let value = u64::try_from(subjects.len()).unwrap_or(u64::MAX);
                Self { value, subjects, ..Self::default() }
            }
            Condition::OldestDue { above } => {
                let age = reading.oldest_due.map_or(Duration::ZERO, |due| now.since(due));
                Self { value: age.as_secs(), threshold: above.as_secs(), ..Self::default() }
            }
            Condition::NothingDelivered { window, count_min } => {
                let sum = over(window)?;
                // Messages that nobody wants are accepted, too.
                let is_due = reading.oldest_due.is_some();
                let none = is_due && sum.delivered == 0 && sum.accepted >= *count_min;
                let facts = vec![("accepted", sum.accepted.to_string())];
                Self { value: if none { sum.accepted } else { 0 }, facts, ..Self::default() }
            }
            Condition::SendingPaused => {
                Self { value: u64::from(reading.paused), ..Self::default() }
            }
        })
    }

    /// Whether the condition holds.
    pub const fn holds(&self) -> bool {
        self.value > self.threshold
    }

    /// Whether it is clear: it takes less to hold on than to begin, so that a figure that swings
    /// about its threshold does not fire and resolve in turn.
    pub fn is_clear(&self, rule: &Rule) -> bool {
        let percent = u128::from(rule.clear_percent);
        u128::from(self.value) * 100 <= u128::from(self.threshold) * percent
    }

    /// The figure and its threshold as people read them.
    pub fn in_words(&self, condition: &Condition) -> (String, String) {
        let percent = |permille: u64| format!("{}.{} %", permille / 10, permille % 10);
        let secs = |secs| span(Duration::from_secs(secs));
        match condition {
            Condition::FailureRatio { .. } => (percent(self.value), percent(self.threshold)),
            Condition::OldestDue { .. } => (secs(self.value), secs(self.threshold)),
            Condition::DeadLetters { .. }
            | Condition::EndpointFailing { .. }
            | Condition::NothingDelivered { .. }
            | Condition::SendingPaused => (self.value.to_string(), self.threshold.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::rule::Severity;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_030);

    fn minute(ago: u64) -> Minute {
        let at = Timestamp::from_secs(1_800_000_000).minus(MINUTE * u32::try_from(ago).unwrap());
        Minute { at, ..Minute::default() }
    }

    fn dead(ago: u64, reason: DeadReason, count: u64) -> Minute {
        let mut minute = minute(ago);
        let place = DeadReason::ALL.iter().position(|it| *it == reason).unwrap();
        minute.dead[place] = count;
        minute
    }

    fn measure(condition: &Condition, minutes: Vec<Minute>) -> Measure {
        let reading = Reading { minutes: Some(minutes), ..Reading::default() };
        Measure::of(condition, &reading, NOW, |_| true).unwrap()
    }

    #[test]
    fn dead_letters_count_by_reason_and_window() {
        let condition = Condition::DeadLetters {
            above: 10,
            window: MINUTE * 5,
            reasons: vec![DeadReason::Exhausted, DeadReason::Expired],
        };
        let rows = [
            (vec![dead(0, DeadReason::Exhausted, 10)], 10, false),
            (vec![dead(0, DeadReason::Exhausted, 10), dead(5, DeadReason::Expired, 1)], 11, true),
            // Older than the window.
            (vec![dead(0, DeadReason::Exhausted, 10), dead(6, DeadReason::Expired, 1)], 10, false),
            // The customer's own refusals stand apart.
            (vec![dead(0, DeadReason::Rejected, 99), dead(0, DeadReason::Gone, 99)], 0, false),
        ];
        for (minutes, value, holds) in rows {
            let measure = measure(&condition, minutes.clone());
            assert_eq!((measure.value, measure.holds()), (value, holds), "{minutes:?}");
        }
        let told = measure(&condition, vec![dead(1, DeadReason::Expired, 3)]).facts;
        assert_eq!(told, [("expired", "3".to_owned())]);
    }

    #[test]
    fn a_ratio_needs_enough_attempts() {
        let condition =
            Condition::FailureRatio { above_percent: 5, window: MINUTE * 10, count_min: 100 };
        let of = |attempts, failed| vec![Minute { attempts, failed, ..minute(1) }];
        let rows =
            [(0, 0, false), (99, 99, false), (100, 5, false), (100, 6, true), (1_000, 51, true)];
        for (attempts, failed, holds) in rows {
            assert_eq!(
                measure(&condition, of(attempts, failed)).holds(),
                holds,
                "{attempts} {failed}"
            );
        }
        let words = measure(&condition, of(1_000, 51)).in_words(&condition);
        assert_eq!(words, ("5.1 %".to_owned(), "5.0 %".to_owned()));
    }

    #[test]
    fn ob_05_nothing_delivered_is_no_alert_where_nothing_was_to_deliver() {
        let condition = Condition::NothingDelivered { window: MINUTE * 10, count_min: 20 };
        let rows = [
            (0, 0, true, false),
            (19, 0, true, false),
            (20, 0, true, true),
            (20, 1, true, false),
            (20, 0, false, false),
        ];
        for (accepted, delivered, is_due, holds) in rows {
            let minutes = Some(vec![Minute { accepted, delivered, ..minute(2) }]);
            let reading =
                Reading { minutes, oldest_due: is_due.then_some(NOW), ..Reading::default() };
            let measure = Measure::of(&condition, &reading, NOW, |_| true).unwrap();
            assert_eq!(measure.holds(), holds, "{accepted} {delivered} {is_due}");
        }
    }

    #[test]
    fn endpoints_count_once_they_have_failed_long_enough() {
        let failing = |key, ago: u64| Failing {
            endpoint: PublicId::new(key, [0; 12]),
            endpoint_uid: None,
            origin: "https://a.example:443".into(),
            app: PublicId::new(9, [0; 12]),
            app_name: "A".into(),
            since: NOW.minus(Duration::from_secs(ago)),
        };
        let failing = vec![failing(1, 4_000), failing(2, 3_600), failing(3, 3_599)];
        let reading = Reading { failing, ..Reading::default() };
        let condition = Condition::EndpointFailing { after: MINUTE * 60 };
        let of =
            |counts: fn(PublicId) -> bool| Measure::of(&condition, &reading, NOW, counts).unwrap();
        let all = of(|_| true);
        let some = of(|endpoint| endpoint != PublicId::new(1, [0; 12]));
        assert_eq!((all.value, some.value), (2, 1));
        assert_eq!(some.subjects[0].endpoint, PublicId::new(2, [0; 12]));
    }

    #[test]
    fn age_and_pause_are_read_as_they_are() {
        let condition = Condition::OldestDue { above: MINUTE * 5 };
        for (ago, holds) in [(0, false), (300, false), (301, true)] {
            let oldest_due = Some(NOW.minus(Duration::from_secs(ago)));
            let reading = Reading { oldest_due, ..Reading::default() };
            let measure = Measure::of(&condition, &reading, NOW, |_| true).unwrap();
            assert_eq!(measure.holds(), holds, "{ago}");
        }
        for paused in [false, true] {
            let reading = Reading { paused, ..Reading::default() };
            let measure = Measure::of(&Condition::SendingPaused, &reading, NOW, |_| true);
            assert_eq!(measure.unwrap().holds(), paused);
        }
    }

    #[test]
    fn it_takes_less_to_hold_on_than_to_begin() {
        let rule = Rule::new("a", Condition::SendingPaused, Severity::High);
        let of = |value| Measure { value, threshold: 10, ..Measure::default() };
        let rows = [(11, true, false), (10, false, false), (9, false, false), (8, false, true)];
        for (value, holds, clear) in rows {
            assert_eq!((of(value).holds(), of(value).is_clear(&rule)), (holds, clear), "{value}");
        }
        let none = Measure::default();
        assert!(!none.holds() && none.is_clear(&rule), "what is about nobody is clear");
    }
}
