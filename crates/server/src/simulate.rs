//! The thundering herd, simulated: strategies of backoff compared by how much work they make.
//!
//! In: strategies, numbers of clients, how many runs. Out: for each pair the mean time, calls and
//! peak load with their standard errors, as a table, as CSV, or as a picture. The waits are those
//! of the resilience library.
//! Never: a clock, a formula of backoff of its own, a file.

mod csv;
mod model;
mod strategy;
mod svg;
mod table;

use std::time::Duration;

use resilience::{Chance as _, Seeded};

pub(crate) use csv::to_csv;
use model::run;
pub(crate) use strategy::Strategy;
pub(crate) use svg::to_svg;
pub(crate) use table::to_table;

/// What is compared.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// One row, or line, each.
    pub(crate) strategies: Vec<Strategy>,
    /// One column, or point, each.
    pub(crate) clients: Vec<u16>,
    /// Runs for each pair.
    pub(crate) runs: u32,
    /// The shortest wait.
    pub(crate) base: Duration,
    /// The longest wait.
    pub(crate) cap: Duration,
    /// Where chance begins; the same seed gives the same figures.
    pub(crate) seed: u64,
}

/// A mean and how far it may be off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Mean {
    pub(crate) value: f64,
    /// The standard error.
    pub(crate) error: f64,
}

impl Mean {
    fn of(values: &[f64]) -> Self {
        let count = count(values.len());
        let value = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|one| (one - value).powi(2)).sum::<f64>();
        let variance = squares / (count - 1.0).max(1.0);
        Self { value, error: (variance / count).sqrt() }
    }
}

/// The figures of one strategy with one number of clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) strategy: Strategy,
    pub(crate) clients: u16,
    /// Until every client had succeeded, in milliseconds.
    pub(crate) time_ms: Mean,
    /// Writes that were sent.
    pub(crate) calls: Mean,
    /// Requests that reached the server in the busiest second.
    pub(crate) peak: Mean,
}

impl Plan {
    /// All figures, strategy by strategy.
    pub(crate) fn cells(&self) -> Vec<Cell> {
        let pairs = self
            .strategies
            .iter()
            .flat_map(|strategy| self.clients.iter().map(move |clients| (*strategy, *clients)));
        pairs.map(|(strategy, clients)| self.cell(strategy, clients)).collect()
    }

    fn cell(&self, strategy: Strategy, clients: u16) -> Cell {
        let waits = strategy.waits(self.base, self.cap);
        let mut chance = self.chance(strategy, clients);
        let runs: Vec<_> = (0..self.runs).map(|_| run(&*waits, clients, &mut chance)).collect();
        let mean =
            |figure: fn(&model::Run) -> f64| Mean::of(&runs.iter().map(figure).collect::<Vec<_>>());
        Cell {
            strategy,
            clients,
            time_ms: mean(|run| run.time.as_secs_f64() * 1_000.0),
            calls: mean(|run| f64::from(run.calls)),
            peak: mean(|run| f64::from(run.peak)),
        }
    }

    /// One for each pair, so that a pair's figures do not depend on what else is asked for.
    fn chance(&self, strategy: Strategy, clients: u16) -> Seeded {
        let place = u64::from(strategy.number()) << 16 | u64::from(clients);
        Seeded::new(Seeded::new(self.seed).next_u64() ^ Seeded::new(place).next_u64())
    }
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
