//! Figures as the API shows them.
//!
//! Never: a bucket; quantiles are told instead, and bounds where they are whole numbers.

use std::collections::BTreeMap;

use domain::classify::Class;
use domain::dead_letter::DeadReason;
use domain::figures::{Figures, NUMBER_BOUNDS, Tally};
use schemars::JsonSchema;
use serde::Serialize;
use store::counts::{StepFigures, Steps};

use super::time;
use crate::api::shapes::Time;

/// Figures of a span, as a whole and step by step.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FiguresOut {
    /// The beginning of the first step.
    #[schemars(with = "Time")]
    since: String,
    #[schemars(with = "Time")]
    until: String,
    total: CountsOut,
    /// Steps in which nothing was counted are left out.
    steps: Vec<StepOut>,
}

/// Figures of one step.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "FiguresStepOut")]
#[serde(rename_all = "camelCase")]
struct StepOut {
    /// Its beginning.
    #[schemars(with = "Time")]
    at: String,
    #[serde(flatten)]
    counts: CountsOut,
}

/// What was counted.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "FiguresCountsOut")]
#[serde(rename_all = "camelCase")]
struct CountsOut {
    /// Messages; 0 for an endpoint.
    messages: u64,
    attempts: u64,
    /// Attempts by class.
    classes: BTreeMap<&'static str, u64>,
    /// The share of attempts that were answered 2xx, those that failed on this side left out; null
    /// without any.
    success_rate: Option<f64>,
    /// Durations of attempts; null without any.
    duration_ms: Option<DurationOut>,
    /// Successful attempts by which attempt of their delivery they were.
    attempts_to_success: Vec<UpToOut>,
    /// Deliveries given up, by reason.
    dead_letters: BTreeMap<&'static str, u64>,
}

/// Quantiles.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "FiguresDurationOut")]
struct DurationOut {
    p50: f64,
    p95: f64,
    p99: f64,
}

/// How many there are up to a number, beyond the one before.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "FiguresUpToOut")]
#[serde(rename_all = "camelCase")]
struct UpToOut {
    /// Null for all that are beyond the last one.
    up_to: Option<u32>,
    count: u64,
}

impl FiguresOut {
    /// Shows what was found.
    pub(crate) fn new(steps: &Steps, found: &[StepFigures]) -> Self {
        let mut total = Figures::default();
        found.iter().for_each(|step| total.add_all(&step.figures));
        let shown = |step: &StepFigures| StepOut {
            at: time(step.at),
            counts: CountsOut::new(&step.figures),
        };
        Self {
            since: time(steps.begin()),
            until: time(steps.until),
            total: CountsOut::new(&total),
            steps: found.iter().map(shown).collect(),
        }
    }
}

impl CountsOut {
    fn new(figures: &Figures) -> Self {
        let sends = figures.sends();
        let counted = |class: Class| (class.name(), figures.sent(class).count);
        let dead = |reason: DeadReason| (reason.name(), figures.dead(reason));
        Self {
            messages: figures.accepted(),
            attempts: sends.count,
            classes: Class::ALL.into_iter().map(counted).collect(),
            success_rate: figures.success_ratio(),
            duration_ms: durations(&sends),
            attempts_to_success: numbers(figures.sent(Class::Success)),
            dead_letters: DeadReason::ALL.into_iter().map(dead).collect(),
        }
    }
}

fn durations(sends: &Tally) -> Option<DurationOut> {
    let ms = |share| sends.took_quantile(share).map(|took| took.as_secs_f64() * 1_000.0);
    Some(DurationOut { p50: ms(0.5)?, p95: ms(0.95)?, p99: ms(0.99)? })
}

fn numbers(sends: &Tally) -> Vec<UpToOut> {
    let bounds = NUMBER_BOUNDS.into_iter().map(Some).chain([None]);
    let all = bounds.zip(sends.numbers).map(|(up_to, count)| UpToOut { up_to, count });
    all.collect()
}
