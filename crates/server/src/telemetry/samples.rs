//! All series at one moment, read from the text that `/metrics` gives, for those who are sent them.
//!
//! The recorder keeps the series; whatever is sent elsewhere says the same as what is scraped.
//! Never: fail; a line that does not read is left out.

use std::collections::BTreeMap;

/// What kind of number a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How values are distributed.
    Histogram,
}

/// Names and values of labels, in order.
pub(super) type Labels = Vec<(String, String)>;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Spread(Spread),
}

/// A distribution.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Spread {
    /// Upper bounds, but for the last bucket, which has none.
    pub(super) bounds: Vec<f64>,
    /// How many values are in each bucket.
    pub(super) counts: Vec<u64>,
    pub(super) sum: f64,
}

/// A metric with all its series.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Metric {
    pub(super) name: String,
    pub(super) help: String,
    pub(super) kind: Kind,
    pub(super) series: BTreeMap<Labels, Value>,
}

/// Reads them.
pub(super) fn read(text: &str) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    let mut help = BTreeMap::new();
    for line in text.lines() {
        if let Some((name, words)) = line.strip_prefix("# HELP ").and_then(|it| it.split_once(' '))
        {
            help.insert(name.to_owned(), words.to_owned());
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' '))
        {
            let kind = match kind {
                "counter" => Kind::Counter,
                "gauge" => Kind::Gauge,
                "histogram" => Kind::Histogram,
                _ => continue,
            };
            let help = help.remove(name).unwrap_or_default();
            metrics.push(Metric { name: name.to_owned(), help, kind, series: BTreeMap::new() });
        } else if let (Some(metric), Some(sample)) = (metrics.last_mut(), sample(line)) {
            metric.take(sample);
        }
    }
    for metric in &mut metrics {
        metric.series.values_mut().for_each(Value::apart);
    }
    metrics
}

/// A line that is no comment.
struct Sample<'a> {
    name: &'a str,
    labels: Labels,
    value: f64,
}

fn sample(line: &str) -> Option<Sample<'_>> {
    if line.starts_with('#') {
        return None;
    }
    let (head, value) = line.rsplit_once(' ')?;
    let (name, labels) = match head.split_once('{') {
        None => (head, Vec::new()),
        Some((name, rest)) => (name, labels(rest.strip_suffix('}')?)?),
    };
    Some(Sample { name, labels, value: value.parse().ok()? })
}

/// `a="b",c="d"`, with backslashes before quotes, backslashes and for line ends.
fn labels(text: &str) -> Option<Labels> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, quoted) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut end = None;
        let mut escaped = false;
        for (at, letter) in quoted.char_indices() {
            match (escaped, letter) {
                (true, 'n') => value.push('\n'),
                (true, other) => value.push(other),
                (false, '"') => {
                    end = Some(at);
                    break;
                }
                (false, '\\') => {}
                (false, other) => value.push(other),
            }
            escaped = !escaped && letter == '\\';
        }
        found.push((name.trim_start_matches(',').to_owned(), value));
        rest = &quoted[end? + 1..];
    }
    Some(found)
}

impl Metric {
    fn take(&mut self, sample: Sample<'_>) {
        let Sample { name, mut labels, value } = sample;
        let Some(part) = name.strip_prefix(&*self.name) else { return };
        if self.kind != Kind::Histogram {
            if part.is_empty() {
                self.series.insert(labels, Value::Number(value));
            }
            return;
        }
        let bound = labels.iter().position(|(name, _)| name == "le").map(|at| labels.remove(at).1);
        let spread = self.series.entry(labels).or_insert_with(|| Value::Spread(Spread::default()));
        let Value::Spread(spread) = spread else { return };
        match (part, bound) {
            ("_sum", None) => spread.sum = value,
            ("_bucket", Some(bound)) => {
                if bound != "+Inf" {
                    spread.bounds.extend(bound.parse::<f64>().ok());
                }
                spread.counts.push(to_count(value));
            }
            _ => {}
        }
    }
}

impl Value {
    /// Buckets come with all that are below them.
    fn apart(&mut self) {
        let Self::Spread(spread) = self else { return };
        let mut below = 0;
        for count in &mut spread.counts {
            let all = *count;
            *count = all.saturating_sub(below);
            below = all;
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count that was written as a number; exact up to 2^53"
)]
const fn to_count(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# HELP a_total How often.
# TYPE a_total counter
a_total{route="/x/{id}",status="2xx"} 3
a_total{route="q\"\\\n",status="5xx"} 1

# HELP depth How deep.
# TYPE depth gauge
depth 2.5

# TYPE took_seconds histogram
took_seconds_bucket{kind="a",le="0.1"} 2
took_seconds_bucket{kind="a",le="1"} 5
took_seconds_bucket{kind="a",le="+Inf"} 6
took_seconds_sum{kind="a"} 7.25
took_seconds_count{kind="a"} 6
nonsense
"#;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn every_series_is_read_once() {
        let metrics = read(TEXT);
        let names: Vec<_> = metrics.iter().map(|metric| (&*metric.name, metric.kind)).collect();
        let expected =
            [("a_total", Kind::Counter), ("depth", Kind::Gauge), ("took_seconds", Kind::Histogram)];
        assert_eq!(names, expected);
        assert_eq!((&*metrics[0].help, &*metrics[2].help), ("How often.", ""));
        let series: Vec<_> = metrics[0].series.iter().collect();
        let one = vec![pair("route", "/x/{id}"), pair("status", "2xx")];
        let other = vec![pair("route", "q\"\\\n"), pair("status", "5xx")];
        assert_eq!(series, [(&one, &Value::Number(3.0)), (&other, &Value::Number(1.0))]);
        assert_eq!(metrics[1].series.get(&vec![]), Some(&Value::Number(2.5)));
        let spread = Spread { bounds: vec![0.1, 1.0], counts: vec![2, 3, 1], sum: 7.25 };
        assert_eq!(metrics[2].series.get(&vec![pair("kind", "a")]), Some(&Value::Spread(spread)));
    }
}
