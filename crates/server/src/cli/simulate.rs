//! `peyk simulate`: its arguments, and where its output goes.
//!
//! Never: a figure of its own.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::simulate::{Plan, Strategy, to_csv, to_svg, to_table};

/// Compares strategies of backoff on a herd of clients that all want the same at once.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Strategies, with commas between.
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "none,exponential,equal_jitter,full_jitter,decorrelated_jitter"
    )]
    strategies: Vec<Strategy>,
    /// Numbers of clients, with commas between.
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "10,20,50,100",
        value_parser = clap::value_parser!(u16).range(1..=1_000)
    )]
    clients: Vec<u16>,
    /// Runs for each pair.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(2..=10_000)
    )]
    runs: u32,
    /// The shortest wait.
    #[arg(long, value_name = "SPAN", default_value = "5ms", value_parser = span)]
    base: Duration,
    /// The longest wait.
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = span)]
    cap: Duration,
    /// Where chance begins; the same seed gives the same figures.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// What is written.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Where it is written; without it to standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// For people.
    Table,
    /// For programs.
    Csv,
    /// A picture.
    Svg,
}

/// Longer than this no wait need be.
const SPAN_MAX: Duration = Duration::from_secs(3_600);

/// A span such as `5ms` or `2s`, above zero.
fn span(text: &str) -> Result<Duration, String> {
    let span = text.parse::<jiff::SignedDuration>().ok();
    let span = span.and_then(|span| Duration::try_from(span).ok());
    let span = span.filter(|span| !span.is_zero() && *span <= SPAN_MAX);
    span.ok_or_else(|| "must be a span such as 5ms or 2s, above zero and at most 1h".to_owned())
}

impl Arguments {
    /// Which rule between the arguments is broken, if one is.
    pub(super) fn fault(&self) -> Option<&'static str> {
        (self.cap < self.base).then_some("--cap must not be below --base")
    }

    /// What is to be written.
    pub(super) fn output(&self) -> String {
        let plan = Plan {
            strategies: self.strategies.clone(),
            clients: self.clients.clone(),
            runs: self.runs,
            base: self.base,
            cap: self.cap,
            seed: self.seed,
        };
        let write = match self.format {
            Format::Table => to_table,
            Format::Csv => to_csv,
            Format::Svg => to_svg,
        };
        write(&plan, &plan.cells())
    }

    /// Where it is to be written.
    pub(super) const fn file(&self) -> Option<&PathBuf> {
        self.out.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Ok(Line::try_parse_from(format!("simulate {line}").split_whitespace())?.arguments)
    }

    #[test]
    fn spans_have_units_and_bounds() {
        assert_eq!(span("5ms"), Ok(Duration::from_millis(5)));
        assert_eq!(span("1h"), Ok(Duration::from_secs(3_600)));
        for bad in ["", "5", "0ms", "-1s", "2h", "soon"] {
            assert!(span(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_asked_for_is_what_is_run() {
        let line = "--strategies full_jitter,linear --clients 3,7 --runs 2 --base 1ms --format csv";
        let arguments = parse(line).unwrap();
        let csv = arguments.output();
        let pairs: Vec<_> = csv
            .lines()
            .skip(1)
            .map(|line| line.splitn(4, ',').take(3).collect::<Vec<_>>())
            .collect();
        assert_eq!(pairs[0], ["full_jitter", "3", "2"]);
        assert_eq!(pairs[3], ["linear", "7", "2"]);
        assert_eq!((arguments.fault(), arguments.file()), (None, None));
        assert!(parse("--clients 2 --runs 2").unwrap().output().contains("decorrelated_jitter"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for bad in ["--strategies best", "--clients 0", "--clients 1001", "--runs 1", "--base 5"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse("--base 3s --cap 2s").unwrap().fault().is_some());
    }
}
