//! Metrics as datagrams in the protocol of DogStatsD.
//!
//! In: what there is now, and what there was the last time. Out: datagrams, each of whole lines:
//! counters by what they grew, gauges as they are, distributions bucket by bucket at the bucket's
//! upper bound, with a sample rate that stands for how many there are.
//! Never: a datagram longer than an Ethernet frame holds.

use std::fmt::Write as _;

use super::samples::{Kind, Labels, Metric, Spread, Value};
use crate::config::telemetry::Naming;

/// Bytes of a datagram: 1,500 of a frame less the headers of IPv6 and UDP, and a few to spare.
const DATAGRAM_BYTES_MAX: usize = 1_432;

/// The datagrams that say what has changed since `before`.
pub(super) fn datagrams(now: &[Metric], before: &[Metric], naming: &Naming) -> Vec<String> {
    let mut datagrams = vec![String::new()];
    for metric in now {
        let known = before.iter().find(|known| known.name == metric.name);
        for (labels, value) in &metric.series {
            let old = known.and_then(|known| known.series.get(labels));
            let name = format!("{}{}", naming.prefix, metric.name);
            let tags = tags(labels, naming);
            for line in lines(metric.kind, value, old) {
                add(&mut datagrams, &format!("{name}:{line}{tags}"));
            }
        }
    }
    datagrams.retain(|datagram| !datagram.is_empty());
    datagrams
}

/// Value, type and rate of each line.
fn lines(kind: Kind, value: &Value, old: Option<&Value>) -> Vec<String> {
    match (kind, value, old) {
        (Kind::Gauge, Value::Number(now), _) => vec![format!("{now}|g")],
        (_, Value::Number(now), old) => {
            let before = match old {
                Some(Value::Number(before)) => *before,
                _ => 0.0,
            };
            let grown = now - before;
            if grown > 0.0 { vec![format!("{grown}|c")] } else { Vec::new() }
        }
        (_, Value::Spread(now), old) => {
            let none = Spread::default();
            let before = match old {
                Some(Value::Spread(before)) => before,
                _ => &none,
            };
            spread(now, before)
        }
    }
}

fn spread(now: &Spread, before: &Spread) -> Vec<String> {
    let mut lines = Vec::new();
    for (bucket, count) in now.counts.iter().enumerate() {
        let grown = count.saturating_sub(before.counts.get(bucket).copied().unwrap_or(0));
        let bound = now.bounds.get(bucket).or_else(|| now.bounds.last());
        if let (Some(bound), true) = (bound, grown > 0) {
            #[expect(clippy::cast_precision_loss, reason = "a rate; exact up to 2^53")]
            let rate = 1.0 / grown as f64;
            lines.push(if grown == 1 {
                format!("{bound}|d")
            } else {
                format!("{bound}|d|@{rate}")
            });
        }
    }
    lines
}

/// Tags of a line, what ends a tag or a line taken out.
fn tags(labels: &Labels, naming: &Naming) -> String {
    let mut tags = String::new();
    let own = labels.iter().map(|(name, value)| format!("{name}:{value}"));
    for tag in own.chain(naming.tags.iter().cloned()) {
        let tag = tag.replace([',', '|', '\n', '#'], "_");
        let sign = if tags.is_empty() { "|#" } else { "," };
        let _infallible = write!(tags, "{sign}{tag}");
    }
    tags
}

fn add(datagrams: &mut Vec<String>, line: &str) {
    let fits = |datagram: &&mut String| datagram.len() + 1 + line.len() <= DATAGRAM_BYTES_MAX;
    match datagrams.last_mut().filter(fits) {
        Some(datagram) => {
            if !datagram.is_empty() {
                datagram.push('\n');
            }
            datagram.push_str(line);
        }
        None => datagrams.push(line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::read;
    use super::*;

    fn text(count: u64, depth: u64, fast: u64) -> Vec<Metric> {
        let all = fast + 1;
        read(&format!(
            "# TYPE a_total counter\na_total{{class=\"x\"}} {count}\n# TYPE depth gauge\n\
             depth {depth}\n# TYPE t histogram\nt_bucket{{le=\"0.5\"}} {fast}\n\
             t_bucket{{le=\"+Inf\"}} {all}\nt_sum 1\nt_count {all}\n"
        ))
    }

    #[test]
    fn it_says_what_has_grown_and_what_is() {
        let naming = Naming { prefix: "p.".to_owned(), tags: vec!["env:a,b".to_owned()] };
        let first = datagrams(&text(3, 7, 4), &[], &naming);
        let expected = "p.a_total:3|c|#class:x,env:a_b\np.depth:7|g|#env:a_b\n\
                        p.t:0.5|d|@0.25|#env:a_b\np.t:0.5|d|#env:a_b";
        assert_eq!(first, [expected]);
        let next = datagrams(&text(3, 7, 5), &text(3, 7, 4), &Naming::default());
        assert_eq!(next, ["depth:7|g\nt:0.5|d"]);
    }

    #[test]
    fn no_datagram_is_longer_than_a_frame_holds_and_no_line_is_cut() {
        let mut page = "# TYPE a gauge\n".to_owned();
        for number in 0..1_000 {
            let _infallible = writeln!(page, "a{{n=\"{number}\"}} {number}");
        }
        let found = datagrams(&read(&page), &[], &Naming::default());
        assert!(found.len() > 5 && found.iter().all(|it| it.len() <= DATAGRAM_BYTES_MAX));
        assert_eq!(found.iter().map(|it| it.lines().count()).sum::<usize>(), 1_000);
    }
}
