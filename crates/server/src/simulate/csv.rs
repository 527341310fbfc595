//! The figures as comma-separated values, one line for each pair.
//!
//! Never: a name that would need quoting.

use std::fmt::Write as _;

use super::{Cell, Plan};

/// A header, and a line for each cell.
pub(crate) fn to_csv(plan: &Plan, cells: &[Cell]) -> String {
    let mut text = "strategy,clients,runs,time_ms,time_ms_se,calls,calls_se,peak_per_sec,\
                    peak_per_sec_se\n"
        .to_owned();
    for cell in cells {
        let (name, clients, runs) = (cell.strategy.name(), cell.clients, plan.runs);
        let _never_fails = write!(text, "{name},{clients},{runs}");
        for mean in [cell.time_ms, cell.calls, cell.peak] {
            let _never_fails = write!(text, ",{:.1},{:.2}", mean.value, mean.error);
        }
        text.push('\n');
    }
    text
}
