//! `bench policies`: what a guarded call costs, beside other crates and beside a bare round trip.
//!
//! All sides of a figure run in one process, in turn, round after round; the median of the rounds
//! counts. Without the feature `peers` there is nobody beside us, and what is allocated is not
//! counted.
//! Never: compare figures of different runs, guard a call that does anything.

mod ours;
#[cfg(feature = "peers")]
mod peers;
mod sharing;
mod side;

use clap::Args;

use self::side::{Kind, OURS, Side};
use crate::fault::Result;
use crate::machine::{busy_s, cpu_s, now_us};
use crate::stats::{Verdict, median};

/// Nanoseconds of a call with everything around it.
const STACK_NS: f64 = 200.0;

/// Options of `bench policies`.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Options {
    /// Rounds; each measures every side once.
    #[arg(long, default_value_t = 9)]
    rounds: u32,
    /// Calls of one side in one round.
    #[arg(long, default_value_t = 640_000)]
    calls: u32,
    /// Tasks that contend for one breaker.
    #[arg(long, default_value_t = 64)]
    tasks: u32,
    /// Calls that ask Redis.
    #[arg(long, default_value_t = 20_000)]
    asks: u32,
    /// Exit with 1 when a bar is missed.
    #[arg(long)]
    check: bool,
}

/// What one side has come to, a figure for each round.
#[derive(Debug, Default)]
struct Figures {
    alone_ns: Vec<f64>,
    bytes: Vec<f64>,
    together_per_s: Vec<f64>,
}

/// Measures and prints everything; `false` when a bar to be checked was missed.
pub(crate) async fn run(options: Options) -> Result<bool> {
    if !cfg!(feature = "peers") {
        println!("without the feature `peers`: nobody beside us, what is allocated not counted");
    }
    let busy = Busy::now()?;
    let sides = sides()?;
    let figures = measure(&sides, options).await?;
    print(&sides, &figures, options);
    let mut verdicts = bars(&sides, &figures);
    verdicts.extend(sharing::measure(options.asks).await?);
    println!("\nothers used {:.2} cores meanwhile", busy.others()?);
    for verdict in &verdicts {
        println!("{verdict}");
    }
    Ok(verdicts.iter().all(Verdict::met) || !options.check)
}

fn sides() -> Result<Vec<Side>> {
    let sides = ours::sides()?;
    #[cfg(feature = "peers")]
    let sides = sides.into_iter().chain(peers::sides()?).collect();
    Ok(sides)
}

async fn measure(sides: &[Side], options: Options) -> Result<Vec<Figures>> {
    let mut figures: Vec<_> = sides.iter().map(|_| Figures::default()).collect();
    // The first round warms up.
    for round in 0..=options.rounds.max(1) {
        for (side, figures) in sides.iter().zip(&mut figures) {
            let cost = (side.alone)(options.calls).await;
            let each = options.calls / options.tasks.max(1);
            let per_s = (side.together)(options.tasks.max(1), each).await?;
            if round > 0 {
                figures.alone_ns.push(cost.ns);
                figures.bytes.extend(cost.bytes);
                figures.together_per_s.push(per_s);
            }
        }
    }
    Ok(figures)
}

fn print(sides: &[Side], figures: &[Figures], options: Options) {
    println!(
        "medians of {} rounds of {} calls; together: {} tasks on {} threads, one subject\n",
        options.rounds,
        options.calls,
        options.tasks,
        tokio::runtime::Handle::current().metrics().num_workers(),
    );
    println!(
        "{:<22} {:<28} {:>9} {:>12} {:>15}",
        "what", "who", "ns/call", "bytes/call", "together, M/s"
    );
    for (side, figures) in sides.iter().zip(figures) {
        let bytes = counted(figures).map_or_else(|| "-".to_owned(), |bytes| format!("{bytes:.0}"));
        println!(
            "{:<22} {:<28} {:>9.1} {:>12} {:>15.2}",
            side.kind.name(),
            side.name,
            median(&figures.alone_ns),
            bytes,
            median(&figures.together_per_s) / 1e6,
        );
    }
}

fn bars(sides: &[Side], figures: &[Figures]) -> Vec<Verdict> {
    let of = |kind: Kind, ours: bool, figure: fn(&Figures) -> &[f64]| -> Vec<f64> {
        let pairs = sides.iter().zip(figures);
        let meant = pairs.filter(|(side, _)| side.kind == kind && (side.name == OURS) == ours);
        meant.map(|(_, figures)| median(figure(figures))).collect()
    };
    let mut verdicts = Vec::new();
    for kind in Kind::ALL {
        let name = kind.name();
        let alone = |ours| of(kind, ours, |figures| &figures.alone_ns);
        if let (Some(ours), Some(best)) = (least(alone(true)), least(alone(false))) {
            let what = format!("{name}, time: ours / the fastest other");
            verdicts.push(Verdict::at_most(&what, ours / best, 1.0));
        }
        let together = |ours| of(kind, ours, |figures| &figures.together_per_s);
        if let (Some(ours), Some(best)) = (greatest(together(true)), greatest(together(false))) {
            let what = format!("{name}, calls/s of contending tasks: ours / the fastest other");
            verdicts.push(Verdict::at_least(&what, ours / best, 1.0));
        }
        let ours =
            sides.iter().zip(figures).filter(|(side, _)| side.kind == kind && side.name == OURS);
        for bytes in ours.filter_map(|(_, figures)| counted(figures)) {
            verdicts.push(Verdict::below(&format!("{name}, bytes allocated"), bytes, 0.1));
        }
    }
    for ns in of(Kind::Stack, true, |figures| &figures.alone_ns) {
        verdicts.push(Verdict::at_most(&format!("{}, ns", Kind::Stack.name()), ns, STACK_NS));
    }
    verdicts
}

/// Bytes of a call, where they are counted.
fn counted(figures: &Figures) -> Option<f64> {
    (!figures.bytes.is_empty()).then(|| median(&figures.bytes))
}

fn least(values: Vec<f64>) -> Option<f64> {
    values.into_iter().reduce(f64::min)
}

fn greatest(values: Vec<f64>) -> Option<f64> {
    values.into_iter().reduce(f64::max)
}

/// CPU that the machine and this process have used, and when.
struct Busy {
    others_s: f64,
    at_us: u64,
}

impl Busy {
    fn now() -> Result<Self> {
        Ok(Self { others_s: busy_s()? - cpu_s(std::process::id())?, at_us: now_us() })
    }

    /// Cores that everybody else has used since.
    fn others(&self) -> Result<f64> {
        let now = Self::now()?;
        let elapsed_us = now.at_us.saturating_sub(self.at_us).max(1);
        Ok((now.others_s - self.others_s).max(0.0) * 1e6 / elapsed_us as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn every_kind_of_ours_is_measured_alone_and_together() {
        let sides = ours::sides().unwrap();
        let options = Options { rounds: 1, calls: 128, tasks: 4, asks: 0, check: true };
        let figures = measure(&sides, options).await.unwrap();
        assert_eq!(sides.iter().map(|side| side.kind).collect::<Vec<_>>(), Kind::ALL);
        for figures in &figures {
            assert!(median(&figures.alone_ns) > 0.0 && median(&figures.together_per_s) > 0.0);
        }
        print(&sides, &figures, options);
    }

    #[test]
    fn the_fastest_other_is_the_bar() {
        let side = |name| Side::new(Kind::Share, name, ours::Idle);
        let figures = |ns: f64, per_s: f64| Figures {
            alone_ns: vec![ns],
            bytes: vec![0.0],
            together_per_s: vec![per_s],
        };
        let sides = [side(OURS), side("one"), side("other")];
        let met = |ns, per_s| -> Vec<bool> {
            let figures = [figures(ns, per_s), figures(20.0, 7.0), figures(30.0, 9.0)];
            bars(&sides, &figures).iter().map(Verdict::met).collect()
        };
        assert_eq!(met(20.0, 9.0), [true, true, true]);
        assert_eq!(met(21.0, 8.0), [false, false, true]);
    }
}
