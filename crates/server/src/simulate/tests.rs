//! The published figures, cell by cell, and the shapes of the output.

use super::*;

const CLIENTS: [u16; 6] = [10, 20, 50, 100, 150, 190];
/// As many as are behind the known figures.
const RUNS: u32 = 100;

/// Mean time in ms, its standard error, and mean calls, for each number of clients.
type Row = [(f64, f64, f64); 6];

/// Figures of the published model by an independent implementation: base 5 ms, cap 2 s.
const KNOWN: [(Strategy, Row); 6] = [
    (
        Strategy::None,
        [
            (383.0, 4.0, 51.0),
            (599.0, 6.0, 150.0),
            (1_146.0, 4.0, 689.0),
            (2_030.0, 5.0, 2_422.0),
            (2_878.0, 4.0, 5_145.0),
            (3_545.0, 4.0, 8_011.0),
        ],
    ),
    (
        Strategy::Exponential,
        [
            (3_503.0, 138.0, 51.0),
            (14_000.0, 291.0, 148.0),
            (36_401.0, 321.0, 627.0),
            (63_494.0, 392.0, 1_852.0),
            (85_140.0, 430.0, 3_527.0),
            (101_051.0, 434.0, 5_157.0),
        ],
    ),
    (
        Strategy::EqualJitter,
        [
            (692.0, 16.0, 42.0),
            (1_588.0, 48.0, 108.0),
            (4_153.0, 50.0, 346.0),
            (6_681.0, 66.0, 812.0),
            (8_429.0, 61.0, 1_323.0),
            (9_526.0, 65.0, 1_760.0),
        ],
    ),
    (
        Strategy::FullJitter,
        [
            (457.0, 11.0, 39.0),
            (970.0, 24.0, 101.0),
            (2_881.0, 56.0, 333.0),
            (4_854.0, 58.0, 795.0),
            (6_518.0, 56.0, 1_319.0),
            (7_465.0, 51.0, 1_771.0),
        ],
    ),
    (
        Strategy::DecorrelatedCut,
        [
            (443.0, 8.0, 38.0),
            (811.0, 17.0, 102.0),
            (2_207.0, 50.0, 376.0),
            (4_554.0, 80.0, 1_002.0),
            (6_518.0, 84.0, 1_753.0),
            (7_898.0, 85.0, 2_430.0),
        ],
    ),
    (
        Strategy::DecorrelatedStateless,
        [
            (738.0, 30.0, 35.0),
            (1_573.0, 34.0, 85.0),
            (3_364.0, 46.0, 263.0),
            (5_172.0, 51.0, 615.0),
            (6_639.0, 58.0, 1_018.0),
            (7_629.0, 55.0, 1_372.0),
        ],
    ),
];

fn plan(strategies: Vec<Strategy>, clients: Vec<u16>, runs: u32) -> Plan {
    let (base, cap) = (Duration::from_millis(5), Duration::from_secs(2));
    Plan { strategies, clients, runs, base, cap, seed: 20_240_101 }
}

/// Whether two means of different runs may be of one model; the known one is rounded to a whole.
fn agree(ours: Mean, known: f64, known_error: f64) -> bool {
    let error = ours.error.hypot(known_error);
    (ours.value - known).abs() <= 4.0f64.mul_add(error, 0.5)
}

#[test]
fn every_figure_of_the_known_table_comes_out_within_4_standard_errors() {
    std::thread::scope(|scope| {
        for (strategy, row) in &KNOWN {
            scope.spawn(move || {
                let cells = plan(vec![*strategy], CLIENTS.to_vec(), RUNS).cells();
                for (cell, (time, time_error, calls)) in cells.iter().zip(row) {
                    let known = format!("known: {time} ms, {calls} calls; here: {cell:?}");
                    println!("{known}");
                    assert!(agree(cell.time_ms, *time, *time_error), "{known}");
                    // Not known; as many runs of one model err alike.
                    assert!(agree(cell.calls, *calls, cell.calls.error), "{known}");
                }
            });
        }
    });
}

#[test]
fn a_pair_gives_the_same_figures_whatever_else_is_asked_for() {
    let alone = plan(vec![Strategy::FullJitter], vec![20], 5).cells();
    let among = plan(vec![Strategy::None, Strategy::FullJitter], vec![10, 20], 5).cells();
    assert_eq!(alone.last(), among.last());
    let other = Plan { seed: 1, ..plan(vec![Strategy::FullJitter], vec![20], 5) };
    assert_ne!(alone, other.cells());
}

#[test]
fn the_mean_of_a_few_is_known() {
    let mean = Mean::of(&[2.0, 4.0, 6.0]);
    assert!((mean.value - 4.0).abs() < 1e-9 && (mean.error - (4.0f64 / 3.0).sqrt()).abs() < 1e-9);
    assert_eq!(Mean::of(&[3.0]), Mean { value: 3.0, error: 0.0 });
}

#[test]
fn the_outputs_hold_every_pair() {
    let plan = plan(vec![Strategy::None, Strategy::FullJitter], vec![10, 20], 5);
    let cells = plan.cells();
    let csv = to_csv(&plan, &cells);
    assert_eq!(csv.lines().count(), 5);
    assert!(csv.lines().all(|line| line.split(',').count() == 9), "{csv}");
    assert!(csv.lines().nth(4).is_some_and(|line| line.starts_with("full_jitter,20,5,")));
    let table = to_table(&plan, &cells);
    assert_eq!(table.matches("full_jitter").count(), 2, "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let svg = to_svg(&plan, &cells);
    // Two strategies in three panels and in the legend.
    assert_eq!(svg.matches("<polyline").count(), 8);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && !svg.contains("NaN"));
    // Every point lies in the picture.
    let points = svg.split("points=\"").skip(1).filter_map(|rest| rest.split('"').next());
    for point in points.flat_map(|points| points.split(' ')) {
        let (x, y) = point.split_once(',').unwrap();
        let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
        assert!((0.0..1_480.0).contains(&x) && (0.0..500.0).contains(&y), "{point}");
    }
}
