//! The figures as a picture: time, calls and peak load over the number of clients.
//!
//! Three panels of lines on a logarithmic scale are a hundred lines of text; a plotting library
//! would be the largest dependency of the server.
//! Never: text from outside; names of strategies need no escaping.

use std::fmt::Write as _;

use super::{Cell, Mean, Plan, Strategy};

const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 40.0;
/// From one panel to the next.
const STEP: f64 = WIDTH + 90.0;
const LEGEND: f64 = 18.0;
/// Told apart also by those who see few colours: lines are dashed differently too.
const COLOURS: [&str; 9] = [
    "#000000", "#e69f00", "#56b4e9", "#009e73", "#d55e00", "#0072b2", "#cc79a7", "#8a6d00",
    "#777777",
];
const DASHES: [&str; 3] = ["none", "6 3", "2 2"];

struct Panel {
    title: &'static str,
    figure: fn(&Cell) -> Mean,
}

const PANELS: [Panel; 3] = [
    Panel { title: "time until all are done, ms", figure: |cell| cell.time_ms },
    Panel { title: "calls", figure: |cell| cell.calls },
    Panel { title: "requests in the busiest second", figure: |cell| cell.peak },
];

/// The whole picture.
pub(crate) fn to_svg(plan: &Plan, cells: &[Cell]) -> String {
    let width = LEFT + STEP * 3.0;
    let height = TOP + HEIGHT + 50.0 + LEGEND * super::count(plan.strategies.len());
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"white\"/>\n"
    );
    for (number, panel) in PANELS.iter().enumerate() {
        draw(&mut text, panel, LEFT + STEP * super::count(number), plan, cells);
    }
    for (number, strategy) in plan.strategies.iter().enumerate() {
        let y = LEGEND.mul_add(super::count(number), TOP + HEIGHT + 50.0);
        line(&mut text, *strategy, &[(LEFT, y), (LEFT + 40.0, y)]);
        label(&mut text, (LEFT + 50.0, y + 4.0), "start", strategy.name());
    }
    text.push_str("</svg>\n");
    text
}

/// Where values stand in a panel.
struct Scale {
    left: f64,
    clients_max: f64,
    /// Powers of ten.
    low: f64,
    high: f64,
}

impl Scale {
    fn of(panel: &Panel, left: f64, cells: &[Cell]) -> Self {
        let logs = cells.iter().map(|cell| (panel.figure)(cell).value.max(1.0).log10());
        let (low, high) = logs.fold((f64::MAX, 0.0_f64), |(low, high), log| {
            (low.min(log.floor()), high.max(log.ceil()))
        });
        let low = low.min(high - 1.0).max(0.0);
        let clients = cells.iter().map(|cell| f64::from(cell.clients)).fold(1.0, f64::max);
        Self { left, clients_max: clients, low, high: high.max(low + 1.0) }
    }

    fn x(&self, clients: f64) -> f64 {
        (WIDTH / self.clients_max).mul_add(clients, self.left)
    }

    fn y(&self, log: f64) -> f64 {
        TOP + HEIGHT * (self.high - log) / (self.high - self.low)
    }
}

fn draw(text: &mut String, panel: &Panel, left: f64, plan: &Plan, cells: &[Cell]) {
    let scale = Scale::of(panel, left, cells);
    label(text, (left + WIDTH / 2.0, TOP - 15.0), "middle", panel.title);
    let mut power = scale.low;
    while power <= scale.high {
        let y = scale.y(power);
        grid(text, (left, y), (left + WIDTH, y));
        label(text, (left - 8.0, y + 4.0), "end", &format!("{:.0}", 10_f64.powf(power)));
        power += 1.0;
    }
    for clients in &plan.clients {
        let x = scale.x(f64::from(*clients));
        grid(text, (x, TOP), (x, TOP + HEIGHT));
        label(text, (x, TOP + HEIGHT + 16.0), "middle", &clients.to_string());
    }
    for strategy in &plan.strategies {
        let own = cells.iter().filter(|cell| cell.strategy == *strategy);
        let mut points: Vec<_> = own
            .map(|cell| {
                let log = (panel.figure)(cell).value.max(1.0).log10();
                (scale.x(f64::from(cell.clients)), scale.y(log))
            })
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        line(text, *strategy, &points);
    }
}

fn grid(text: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _never_fails = writeln!(
        text,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#dddddd\"/>",
        from.0, from.1, to.0, to.1,
    );
}

fn label(text: &mut String, at: (f64, f64), anchor: &str, words: &str) {
    let _never_fails = writeln!(
        text,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{words}</text>",
        at.0, at.1,
    );
}

fn line(text: &mut String, strategy: Strategy, points: &[(f64, f64)]) {
    let number = usize::from(strategy.number());
    let colour = COLOURS.get(number % COLOURS.len()).copied().unwrap_or("black");
    let dash = DASHES.get(number % DASHES.len()).copied().unwrap_or("none");
    let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _never_fails = writeln!(
        text,
        "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
         stroke-dasharray=\"{dash}\" points=\"{}\"/>",
        points.join(" "),
    );
}
