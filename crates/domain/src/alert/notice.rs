//! What is told of an incident, in the words of no channel.
//!
//! Names that tenants chose stand in it as they are: whoever writes in the format of a channel
//! escapes all of it.
//! Never: a payload, a URL beyond its origin, or a credential.

use std::collections::BTreeMap;

use resilience::Timestamp;

use super::incident::Incident;
use super::reading::{Failing, Measure};
use super::rule::{Condition, Rule, Severity};
use super::title;
use crate::ids::{Kind, PublicId};
use crate::limits::ALERT_SUBJECTS_MAX;

/// Why something is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// It fires.
    Firing,
    /// More endpoints joined it.
    Updated,
    /// Somebody looks at it.
    Acknowledged,
    /// It is over.
    Resolved,
    /// Nothing happened: somebody tries a route.
    Test,
    /// The end of that, for whoever keeps what is open.
    TestOver,
}

impl Occasion {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Firing,
        Self::Updated,
        Self::Acknowledged,
        Self::Resolved,
        Self::Test,
        Self::TestOver,
    ];

    /// The name of its event type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Firing => "alert.firing",
            Self::Updated => "alert.updated",
            Self::Acknowledged => "alert.acknowledged",
            Self::Resolved => "alert.resolved",
            Self::Test | Self::TestOver => "alert.test",
        }
    }
}

/// One notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Why it is told.
    pub occasion: Occasion,
    /// The incident, `inc_…`.
    pub incident: PublicId,
    /// The rule.
    pub rule: String,
    /// The name of what it watches.
    pub condition: String,
    /// How bad it is.
    pub severity: Severity,
    /// One line.
    pub title: String,
    /// Figures, by what they are.
    pub facts: Vec<(String, String)>,
    /// Whom it is about: those that fail for longest.
    pub subjects: Vec<Failing>,
    /// How many more there are.
    pub more: u64,
    /// What to read about it.
    pub runbook: Option<String>,
    /// Since when the rule holds.
    pub since: Timestamp,
    /// When this is told.
    pub at: Timestamp,
    /// What on-call tools know the incident by: the same for every notification of a rule.
    pub dedup_key: String,
}

impl Notice {
    /// What is told of an incident as it was measured.
    pub fn new(
        (occasion, incident): (Occasion, &Incident),
        rule: &Rule,
        measure: &Measure,
        (now, installation): (Timestamp, &[u8; 16]),
    ) -> Self {
        let (value, threshold) = measure.in_words(&rule.condition);
        let window = rule.condition.window().map(title::span).unwrap_or_default();
        let shown = measure.subjects.len().min(ALERT_SUBJECTS_MAX);
        let mut facts = vec![("value".to_owned(), value.clone())];
        if measure.threshold > 0 {
            facts.push(("threshold".to_owned(), threshold.clone()));
        }
        if !window.is_empty() {
            facts.push(("window".to_owned(), window.clone()));
        }
        facts.extend(measure.facts.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())));
        let own = rule.title.as_deref().and_then(|text| {
            let places: BTreeMap<&str, &str> = BTreeMap::from([
                ("rule", rule.name.as_str()),
                ("severity", rule.severity.name()),
                ("value", value.as_str()),
                ("threshold", threshold.as_str()),
                ("window", window.as_str()),
            ]);
            title::fill(text, |place| places.get(place).map(|text| (*text).to_owned()))
        });
        Self {
            occasion,
            incident: incident.id,
            rule: rule.name.clone(),
            condition: rule.condition.name().to_owned(),
            severity: rule.severity,
            title: own
                .unwrap_or_else(|| in_general(&rule.condition, (&value, &threshold), &window)),
            facts,
            subjects: measure.subjects[..shown].to_vec(),
            more: u64::try_from(measure.subjects.len() - shown).unwrap_or(0),
            runbook: rule.runbook.as_ref().map(|url| url.as_str().to_owned()),
            since: incident.since,
            at: now,
            dedup_key: dedup_key(installation, &rule.name),
        }
    }

    /// What is told of an incident of which nothing is measured any more: its rule is gone, or
    /// somebody acknowledged it.
    pub fn bare(
        occasion: Occasion,
        incident: &Incident,
        (now, installation): (Timestamp, &[u8; 16]),
    ) -> Self {
        Self {
            occasion,
            incident: incident.id,
            rule: incident.rule.clone(),
            condition: String::new(),
            severity: incident.severity,
            title: incident.title.clone(),
            facts: Vec::new(),
            subjects: Vec::new(),
            more: 0,
            runbook: None,
            since: incident.since,
            at: now,
            dedup_key: dedup_key(installation, &incident.rule),
        }
    }

    /// A trial of a route, which stands for no incident.
    pub fn test(
        (occasion, id): (Occasion, PublicId),
        (now, installation): (Timestamp, &[u8; 16]),
    ) -> Self {
        Self {
            occasion,
            incident: id,
            rule: "test".to_owned(),
            condition: "test".to_owned(),
            severity: Severity::Low,
            title: "A trial of this route: nothing is wrong".to_owned(),
            facts: Vec::new(),
            subjects: Vec::new(),
            more: 0,
            runbook: None,
            since: now,
            at: now,
            dedup_key: format!("{}-{}", dedup_key(installation, "test"), id.text(Kind::Incident)),
        }
    }
}

/// The key of a rule: installations that share an on-call tool do not share it.
pub fn dedup_key(installation: &[u8; 16], rule: &str) -> String {
    let installation: String = installation[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("peyk-{installation}-{rule}")
}

fn in_general(condition: &Condition, (value, threshold): (&str, &str), window: &str) -> String {
    match condition {
        Condition::DeadLetters { .. } => {
            let noun = if value == "1" { "dead letter" } else { "dead letters" };
            format!("{value} {noun} in {window}, more than {threshold}")
        }
        Condition::FailureRatio { .. } => {
            format!("{value} of all attempts in {window} failed, more than {threshold}")
        }
        Condition::EndpointFailing { after } => {
            let (count, verb) = if value == "1" { ("An endpoint", "has") } else { (value, "have") };
            let noun = if value == "1" { "" } else { " endpoints" };
            format!("{count}{noun} {verb} failed for {}", title::span(*after))
        }
        Condition::OldestDue { .. } => {
            format!("A delivery is due for {value}, longer than {threshold}")
        }
        Condition::NothingDelivered { .. } => {
            let noun = if value == "1" { "message was" } else { "messages were" };
            format!("Nothing was delivered in {window}, though {value} {noun} accepted")
        }
        Condition::SendingPaused => "Sending is paused for a fault of the server".to_owned(),
    }
}
