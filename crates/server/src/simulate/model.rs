//! Clients that read one row and write it back under optimistic locking, all beginning at once: the
//! model by which strategies of backoff are usually compared.
//!
//! A write succeeds if nobody wrote since its read; else the client waits, reads again and writes
//! again. Each hop between client and server takes about 10 ms. The server has no limit.
//! Never: floating point in the course of a run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use resilience::{Chance, Waits};

/// What one run came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Until the last client heard that its write succeeded.
    pub(super) time: Duration,
    /// Writes that were sent.
    pub(super) calls: u32,
    /// Reads and writes that reached the server in the busiest second.
    pub(super) peak: u32,
}

#[derive(Clone, Default)]
struct Client {
    conflicts: u32,
    last_wait: Duration,
    /// The version that it read, while a write is on its way.
    read: Option<u32>,
}

/// One run.
pub(super) fn run(waits: &dyn Waits, clients: u16, chance: &mut dyn Chance) -> Run {
    let (mut version, mut calls, mut time) = (0, 0, Duration::ZERO);
    let mut seconds = BTreeMap::<u64, u32>::new();
    let mut herd = vec![Client::default(); usize::from(clients)];
    // Arrivals at the server.
    let mut arrivals: BinaryHeap<_> =
        (0..herd.len()).map(|id| Reverse((hop(chance), id))).collect();
    while let Some(Reverse((now, id))) = arrivals.pop() {
        let Some(client) = herd.get_mut(id) else { continue };
        *seconds.entry(now.as_secs()).or_default() += 1;
        let told = now + hop(chance);
        let Some(read) = client.read.take() else {
            client.read = Some(version);
            arrivals.push(Reverse((told + hop(chance), id)));
            continue;
        };
        calls += 1;
        if read == version {
            version += 1;
            time = time.max(told);
            continue;
        }
        client.last_wait = waits.wait(client.conflicts, client.last_wait, chance);
        client.conflicts += 1;
        arrivals.push(Reverse((told + client.last_wait + hop(chance), id)));
    }
    Run { time, calls, peak: seconds.into_values().max().unwrap_or(0) }
}

/// About 10 ms, with a standard deviation of 2 ms: the sum of eight even bytes is close to a bell
/// curve, with a mean of 1,020 and a deviation of 209.
fn hop(chance: &mut dyn Chance) -> Duration {
    let sum: u64 = chance.next_u64().to_le_bytes().into_iter().map(u64::from).sum();
    Duration::from_micros((10_000 + sum * 2_000 / 209).saturating_sub(1_020 * 2_000 / 209))
}

#[cfg(test)]
mod tests {
    use resilience::{Backoff, Seeded};

    use super::*;

    #[test]
    fn a_hop_takes_10_ms_and_varies_by_2() {
        let chance = &mut Seeded::new(1);
        let hops: Vec<_> = (0..20_000).map(|_| hop(chance).as_secs_f64() * 1_000.0).collect();
        let mean = hops.iter().sum::<f64>() / 20_000.0;
        let variance = hops.iter().map(|hop| (hop - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!((mean - 10.0).abs() < 0.06, "{mean}");
        assert!((variance.sqrt() - 2.0).abs() < 0.04, "{}", variance.sqrt());
    }

    #[test]
    fn one_client_alone_reads_and_writes_once() {
        let waits = Backoff::Fixed { base: Duration::from_secs(1) };
        let run = run(&waits, 1, &mut Seeded::new(1));
        assert_eq!((run.calls, run.peak), (1, 2));
        assert!((30..50).contains(&run.time.as_millis()), "four hops: {:?}", run.time);
    }

    #[test]
    fn every_client_wins_once_and_waits_count() {
        let wait = |secs| Backoff::Fixed { base: Duration::from_secs(secs) };
        let slow = run(&wait(60), 20, &mut Seeded::new(1));
        let quick = run(&wait(0), 20, &mut Seeded::new(1));
        assert!(slow.calls >= 20 && slow.time > Duration::from_secs(60));
        assert!(quick.time < Duration::from_secs(2) && quick.peak > slow.peak);
    }
}
