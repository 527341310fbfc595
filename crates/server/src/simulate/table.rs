//! The figures as a table for people.
//!
//! Never: more digits than the runs give.

use std::fmt::Write as _;

use super::{Cell, Mean, Plan};

/// What was run, and a line for each cell.
pub(crate) fn to_table(plan: &Plan, cells: &[Cell]) -> String {
    let mut text = format!(
        "base {:?}, cap {:?}, {} runs, seed {}; mean ± standard error\n\n{:<22} {:>7} {:>16} {:>15} \
         {:>14}\n",
        plan.base,
        plan.cap,
        plan.runs,
        plan.seed,
        "strategy",
        "clients",
        "time ms",
        "calls",
        "peak/s",
    );
    let mut last = None;
    for cell in cells {
        if last.is_some_and(|last| last != cell.strategy) {
            text.push('\n');
        }
        last = Some(cell.strategy);
        let _never_fails = writeln!(
            text,
            "{:<22} {:>7} {:>16} {:>15} {:>14}",
            cell.strategy.name(),
            cell.clients,
            shown(cell.time_ms),
            shown(cell.calls),
            shown(cell.peak),
        );
    }
    text
}

fn shown(mean: Mean) -> String {
    format!("{:.0} ± {:.0}", mean.value, mean.error.ceil())
}
