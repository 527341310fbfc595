//! Rules: what is watched, and how bad it is.
//!
//! In: what an operator sets. Out: a rule that can work, or the field and the rule it breaks.
//! Never: know whether it holds; `reading` measures, `incident` keeps time.

use std::time::Duration;

use super::title;
use crate::dead_letter::DeadReason;
use crate::error::Invalid;
use crate::limits::{
    ALERT_AFTER_MIN, ALERT_COUNT_MAX, ALERT_NAME_CHARS_MAX, ALERT_WAIT_MAX, ALERT_WINDOW_MAX,
    ALERT_WINDOW_MIN,
};
use crate::target::Target;
use crate::text;

/// A rule is clear at so many percent of what it is compared with, unless it says otherwise.
pub const CLEAR_PERCENT: u8 = 80;
/// A rule is resolved after so long, unless it says otherwise.
pub const CLEAR_AFTER: Duration = Duration::from_secs(60);

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Good to know.
    Low,
    /// Somebody should look at it today.
    Medium,
    /// Somebody should look at it now.
    High,
    /// Somebody is woken.
    Critical,
}

impl Severity {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }

    /// The severity with that stable name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.name() == name)
    }
}

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// More dead letters of these reasons than a number within a window.
    DeadLetters {
        /// The number.
        above: u64,
        /// The window.
        window: Duration,
        /// The reasons, each once.
        reasons: Vec<DeadReason>,
    },
    /// More than so many percent of the attempts within a window failed.
    FailureRatio {
        /// The percentage.
        above_percent: u8,
        /// The window.
        window: Duration,
        /// With fewer attempts nothing is said.
        count_min: u64,
    },
    /// An endpoint fails without a success in between for so long.
    EndpointFailing {
        /// How long.
        after: Duration,
    },
    /// A delivery that nothing holds back is due for longer.
    OldestDue {
        /// How long.
        above: Duration,
    },
    /// Messages are accepted and something is due, and nothing is delivered.
    NothingDelivered {
        /// Within this window.
        window: Duration,
        /// With fewer messages nothing is said.
        count_min: u64,
    },
    /// Sending is paused for a fault on this side.
    SendingPaused,
}

impl Condition {
    /// The names of all conditions.
    pub const NAMES: [&'static str; 6] = [
        "dead_letters",
        "failure_ratio",
        "endpoint_failing",
        "oldest_due",
        "nothing_delivered",
        "sending_paused",
    ];

    /// Its stable name.
    pub const fn name(&self) -> &'static str {
        Self::NAMES[match self {
            Self::DeadLetters { .. } => 0,
            Self::FailureRatio { .. } => 1,
            Self::EndpointFailing { .. } => 2,
            Self::OldestDue { .. } => 3,
            Self::NothingDelivered { .. } => 4,
            Self::SendingPaused => 5,
        }]
    }

    /// The window that counters are read for.
    pub const fn window(&self) -> Option<Duration> {
        match self {
            Self::DeadLetters { window, .. }
            | Self::FailureRatio { window, .. }
            | Self::NothingDelivered { window, .. } => Some(*window),
            Self::EndpointFailing { .. } | Self::OldestDue { .. } | Self::SendingPaused => None,
        }
    }

    /// How bad it is unless somebody says otherwise.
    pub const fn severity(&self) -> Severity {
        match self {
            Self::DeadLetters { .. } | Self::NothingDelivered { .. } | Self::SendingPaused => {
                Severity::Critical
            }
            Self::FailureRatio { .. } | Self::OldestDue { .. } => Severity::High,
            Self::EndpointFailing { .. } => Severity::Medium,
        }
    }

    /// What a title may name of it.
    pub const fn places(&self) -> &'static [&'static str] {
        match self {
            Self::DeadLetters { .. } | Self::FailureRatio { .. } => {
                &["rule", "severity", "value", "threshold", "window"]
            }
            Self::OldestDue { .. } => &["rule", "severity", "value", "threshold"],
            Self::NothingDelivered { .. } => &["rule", "severity", "value", "window"],
            Self::EndpointFailing { .. } | Self::SendingPaused => &["rule", "severity", "value"],
        }
    }

    fn validate(&self) -> Result<(), Invalid> {
        if let Some(window) = self.window() {
            span("window", window, ALERT_WINDOW_MIN, ALERT_WINDOW_MAX)?;
        }
        match self {
            Self::DeadLetters { above, reasons, .. } => {
                if reasons.is_empty() {
                    return Err(Invalid::new("reasons", "must name a reason"));
                }
                number("above", *above, 0)
            }
            Self::FailureRatio { above_percent, count_min, .. } => {
                if !(1..=99).contains(above_percent) {
                    return Err(Invalid::new("above", "must be from 1 to 99 percent"));
                }
                number("countMin", *count_min, 1)
            }
            Self::EndpointFailing { after } => {
                span("after", *after, ALERT_AFTER_MIN, ALERT_WAIT_MAX * 7)
            }
            Self::OldestDue { above } => span("after", *above, ALERT_AFTER_MIN, ALERT_WAIT_MAX),
            Self::NothingDelivered { count_min, .. } => number("countMin", *count_min, 1),
            Self::SendingPaused => Ok(()),
        }
    }
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name, which is part of the key that on-call tools know an incident by.
    pub name: String,
    /// What is watched.
    pub condition: Condition,
    /// How bad it is.
    pub severity: Severity,
    /// Whether it is watched.
    pub enabled: bool,
    /// It fires once it has held so long.
    pub hold: Duration,
    /// It is resolved once it has been clear so long.
    pub clear_after: Duration,
    /// It is clear at so many percent of what it is compared with.
    pub clear_percent: u8,
    /// The routes it is told on; `None` for all.
    pub routes: Option<Vec<String>>,
    /// How it is titled; see [`title`].
    pub title: Option<String>,
    /// What to read about it.
    pub runbook: Option<Target>,
}

impl Rule {
    /// A rule that fires at once and leaves everything else at its default.
    pub fn new(name: &str, condition: Condition, severity: Severity) -> Self {
        Self {
            name: name.to_owned(),
            condition,
            severity,
            enabled: true,
            hold: Duration::ZERO,
            clear_after: CLEAR_AFTER,
            clear_percent: CLEAR_PERCENT,
            routes: None,
            title: None,
            runbook: None,
        }
    }

    /// Whether it can work; which routes there are is for the caller to say.
    pub fn validate(&self, routes: &[String]) -> Result<(), Invalid> {
        name("name", &self.name)?;
        self.condition.validate()?;
        span("hold", self.hold, Duration::ZERO, ALERT_WAIT_MAX)?;
        span("clearAfter", self.clear_after, Duration::ZERO, ALERT_WAIT_MAX)?;
        if self.clear_percent > 100 {
            return Err(Invalid::new("clearPercent", "must be from 0 to 100"));
        }
        for (at, route) in self.routes.iter().flatten().enumerate() {
            if !routes.contains(route) {
                let fault = Invalid::new(format!("[{at}]"), "must be the name of a route");
                return Err(fault.within("routes"));
            }
        }
        if self.routes.as_ref().is_some_and(Vec::is_empty) {
            let rule = "must name a route; null is for all, and `enabled` for none";
            return Err(Invalid::new("routes", rule));
        }
        let places = self.condition.places();
        self.title.as_deref().map_or(Ok(()), |text| title::validate("title", text, places))
    }

    /// Whether it is told on a route.
    pub fn is_told_on(&self, route: &str) -> bool {
        self.routes.as_ref().is_none_or(|routes| routes.iter().any(|name| name == route))
    }
}

/// The rules of the settings, each replaced by the stored one of its name; then the other stored
/// ones.
pub fn in_force(settings: &[Rule], stored: Vec<Rule>) -> Vec<Rule> {
    let own = |rule: &&Rule| stored.iter().all(|it| it.name != rule.name);
    let mut all: Vec<_> = settings.iter().filter(own).cloned().collect();
    all.extend(stored);
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// The name of a rule or a route: letters, digits, `-`, `_` and `.`.
pub fn name(field: &str, name: &str) -> Result<(), Invalid> {
    text::uid(field, name, None)?;
    if name.len() > ALERT_NAME_CHARS_MAX {
        let rule = format!("must be at most {ALERT_NAME_CHARS_MAX} characters");
        return Err(Invalid::new(field, rule));
    }
    Ok(())
}

fn number(field: &str, value: u64, least: u64) -> Result<(), Invalid> {
    if (least..=ALERT_COUNT_MAX).contains(&value) {
        return Ok(());
    }
    Err(Invalid::new(field, format!("must be from {least} to {ALERT_COUNT_MAX}")))
}

fn span(field: &str, value: Duration, least: Duration, most: Duration) -> Result<(), Invalid> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let (least, most) = (title::span(least), title::span(most));
    Err(Invalid::new(field, format!("must be from {least} to {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(count: u64) -> Duration {
        Duration::from_secs(count * 60)
    }

    #[test]
    fn what_cannot_work_names_its_field() {
        let letters = |above, window, reasons| Condition::DeadLetters { above, window, reasons };
        let ratio = |above_percent, count_min| Condition::FailureRatio {
            above_percent,
            window: minutes(10),
            count_min,
        };
        let rows = [
            (letters(10, minutes(5), vec![DeadReason::Expired]), None),
            (letters(0, minutes(1_440), vec![DeadReason::Gone]), None),
            (letters(10, minutes(0), vec![DeadReason::Gone]), Some("window")),
            (letters(10, minutes(1_441), vec![DeadReason::Gone]), Some("window")),
            (letters(10, minutes(5), vec![]), Some("reasons")),
            (letters(u64::MAX, minutes(5), vec![DeadReason::Gone]), Some("above")),
            (ratio(5, 1), None),
            (ratio(0, 1), Some("above")),
            (ratio(100, 1), Some("above")),
            (ratio(5, 0), Some("countMin")),
            (Condition::EndpointFailing { after: minutes(60) }, None),
            (Condition::EndpointFailing { after: minutes(0) }, Some("after")),
            (Condition::OldestDue { above: minutes(0) }, Some("after")),
            (Condition::NothingDelivered { window: minutes(5), count_min: 0 }, Some("countMin")),
            (Condition::SendingPaused, None),
        ];
        for (condition, field) in rows {
            let rule = Rule::new("a", condition.clone(), Severity::High);
            let fault = rule.validate(&[]).err().map(|fault| fault.loc[1].clone());
            assert_eq!(fault.as_deref(), field, "{condition:?}");
        }
    }

    #[test]
    fn a_rule_names_itself_routes_and_title_as_they_can_be() {
        let good = Rule::new("paused", Condition::SendingPaused, Severity::Low);
        let routes = ["ops".to_owned()];
        let rows = [
            (good.clone(), None),
            (Rule { routes: Some(vec!["ops".into()]), ..good.clone() }, None),
            (Rule { routes: Some(vec![]), ..good.clone() }, Some("routes")),
            (Rule { routes: Some(vec!["dev".into()]), ..good.clone() }, Some("routes")),
            (Rule { name: "a b".into(), ..good.clone() }, Some("name")),
            (Rule { name: "a".repeat(65), ..good.clone() }, Some("name")),
            (Rule { title: Some("{valu}".into()), ..good.clone() }, Some("title")),
            (Rule { title: Some("{rule}: {severity}".into()), ..good.clone() }, None),
            (Rule { title: Some("in {window}".into()), ..good.clone() }, Some("title")),
            (Rule { title: Some("above {threshold}".into()), ..good.clone() }, Some("title")),
            (Rule { clear_percent: 101, ..good.clone() }, Some("clearPercent")),
            (Rule { hold: minutes(1_441), ..good.clone() }, Some("hold")),
        ];
        for (rule, field) in rows {
            let fault = rule.validate(&routes).err().map(|fault| fault.loc[1].clone());
            assert_eq!(fault.as_deref(), field, "{rule:?}");
        }
        assert!(good.is_told_on("any"));
        let (a, b) =
            (Rule { name: "a".into(), ..good.clone() }, Rule { name: "b".into(), ..good.clone() });
        let changed = Rule { enabled: false, ..b.clone() };
        assert_eq!(in_force(&[b, a.clone()], vec![changed.clone()]), [a, changed]);
        assert!(Severity::ALL.iter().all(|it| Severity::from_name(it.name()) == Some(*it)));
    }
}
