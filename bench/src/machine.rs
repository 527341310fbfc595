//! Reads of the machine: the clock of this process, CPU and memory of a process, the file system of
//! a path.
//!
//! Never: guess. What cannot be read is an error or `None`, not zero.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use tokio::time::Instant;

use crate::fault::{Fault, Result, While as _};

/// Clock ticks per second in `/proc/PID/stat`; 100 on every Linux this runs on.
const TICKS_PER_S: f64 = 100.0;

/// Microseconds since this process first asked; one clock for sender and receiver.
pub(crate) fn now_us() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// A number that differs from run to run.
pub(crate) fn run_id() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(std::process::id())
}

/// Who used the CPU between two moments.
#[derive(Clone, Debug)]
pub(crate) struct CpuMark {
    server_s: f64,
    threads: BTreeMap<String, f64>,
    bench_s: f64,
    busy_s: f64,
    at_us: u64,
}

/// CPU used since a mark.
#[derive(Clone, Debug)]
pub(crate) struct CpuUsed {
    /// By the server under test.
    pub(crate) server_s: f64,
    /// By its threads, those of one name together.
    pub(crate) threads: BTreeMap<String, f64>,
    /// By load and receiver.
    pub(crate) bench_s: f64,
    /// By everybody else on this machine, as a share of one core: above a few per cent the figures
    /// are not to be trusted.
    pub(crate) others_cores: f64,
}

impl CpuMark {
    /// Now, for the server with process id `pid`.
    pub(crate) fn now(pid: u32) -> Result<Self> {
        let bench_s = cpu_s(std::process::id())?;
        let threads = threads_s(pid)?;
        Ok(Self { server_s: cpu_s(pid)?, threads, bench_s, busy_s: busy_s()?, at_us: now_us() })
    }

    /// What was used from `self` to `later`.
    pub(crate) fn until(&self, later: Self) -> CpuUsed {
        let (server_s, bench_s) = (later.server_s - self.server_s, later.bench_s - self.bench_s);
        let elapsed_s = (later.at_us - self.at_us).max(1) as f64 / 1e6;
        let others_s = (later.busy_s - self.busy_s - server_s - bench_s).max(0.0);
        let mut threads = later.threads;
        for (name, used_s) in &mut threads {
            *used_s -= self.threads.get(name).copied().unwrap_or(0.0);
        }
        threads.retain(|_, used_s| *used_s > 0.0);
        CpuUsed { server_s, threads, bench_s, others_cores: others_s / elapsed_s }
    }
}

/// Memory of a process, in KiB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// Resident now.
    pub(crate) rss_kib: u64,
    /// Resident at most so far.
    pub(crate) peak_kib: u64,
}

impl Memory {
    /// Resident at most, in MB of a million bytes.
    pub(crate) fn peak_mb(self) -> f64 {
        self.peak_kib as f64 * 1024.0 / 1e6
    }

    /// Resident now, in MB of a million bytes.
    pub(crate) fn rss_mb(self) -> f64 {
        self.rss_kib as f64 * 1024.0 / 1e6
    }
}

/// Memory of process `pid`.
pub(crate) fn memory(pid: u32) -> Result<Memory> {
    let path = format!("/proc/{pid}/status");
    let text = std::fs::read_to_string(&path).while_(&format!("reading {path}"))?;
    Ok(Memory { rss_kib: kib(&text, "VmRSS:")?, peak_kib: kib(&text, "VmHWM:")? })
}

/// User and system seconds that process `pid` has used.
pub(crate) fn cpu_s(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let text = std::fs::read_to_string(&path).while_(&format!("reading {path}"))?;
    ticks(&text).map(|ticks| ticks / TICKS_PER_S)
}

/// User and system seconds that the living threads of process `pid` have used, by thread name.
fn threads_s(pid: u32) -> Result<BTreeMap<String, f64>> {
    let path = format!("/proc/{pid}/task");
    let mut by_name = BTreeMap::new();
    for task in std::fs::read_dir(&path).while_(&format!("reading {path}"))? {
        // A thread may end between the two reads; it counts no more.
        let Ok(stat) = std::fs::read_to_string(task?.path().join("stat")) else { continue };
        let name = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
        let name = name.map_or("?", |(name, _)| name).to_owned();
        *by_name.entry(name).or_insert(0.0) += ticks(&stat)? / TICKS_PER_S;
    }
    Ok(by_name)
}

/// Seconds that all cores together have been busy since the machine started, stolen time included.
pub(crate) fn busy_s() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/stat").while_("reading /proc/stat")?;
    busy_ticks(&text).map(|ticks| ticks / TICKS_PER_S)
}

/// The type of the file system that holds `path`, as the kernel names it.
pub(crate) fn file_system(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    mount_of(&mounts, &path)
}

fn kib(status: &str, name: &str) -> Result<u64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| Fault::new(format!("no {name} in the process status")))
}

/// Fields 14 and 15; the second field is a name in brackets that may hold anything.
fn ticks(stat: &str) -> Result<f64> {
    let after_name = stat.rfind(')').map_or("", |end| &stat[end + 1..]);
    let mut fields = after_name.split_whitespace().skip(11);
    let mut next = || fields.next().and_then(|field| field.parse::<u32>().ok());
    match (next(), next()) {
        (Some(user), Some(system)) => Ok(f64::from(user) + f64::from(system)),
        _ => Err(Fault::new("no CPU times in the process's stat line")),
    }
}

/// The first line: `cpu user nice system idle iowait irq softirq steal …`.
fn busy_ticks(stat: &str) -> Result<f64> {
    let fields = stat.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8);
    let ticks: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
    match ticks[..] {
        [user, nice, system, _idle, _iowait, irq, softirq, steal] => {
            Ok(user + nice + system + irq + softirq + steal)
        }
        _ => Err(Fault::new("no CPU times in /proc/stat")),
    }
}

fn mount_of(mounts: &str, path: &Path) -> Option<String> {
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((Path::new(fields.next()?), fields.next()?))
        })
        .filter(|(point, _)| path.starts_with(point))
        .max_by_key(|(point, _)| point.as_os_str().len())
        .map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_stat_lines_are_read() {
        let status = "Name:\tx\nVmHWM:\t   1200 kB\nVmRSS:\t    800 kB\n";
        assert_eq!(kib(status, "VmHWM:").unwrap(), 1200);
        assert!(kib(status, "VmSwap:").is_err());
        let stat = "42 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0";
        assert!((ticks(stat).unwrap() - 300.0).abs() < f64::EPSILON);
        assert!(ticks("42 (a").is_err());
        assert!(
            (busy_ticks("cpu  1 2 3 900 900 4 5 6 0 0\n").unwrap() - 21.0).abs() < f64::EPSILON
        );
        assert!(busy_ticks("intr 1\n").is_err());
    }

    #[test]
    fn the_longest_mount_point_wins() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n";
        assert_eq!(mount_of(mounts, Path::new("/tmp/x")).as_deref(), Some("tmpfs"));
        assert_eq!(mount_of(mounts, Path::new("/tmpx")).as_deref(), Some("ext4"));
    }

    #[test]
    fn this_process_can_be_read() {
        let pid = std::process::id();
        assert!(memory(pid).unwrap().peak_kib > 0);
        assert!(cpu_s(pid).unwrap() >= 0.0);
        assert!(busy_s().unwrap() > 0.0);
        let mark = CpuMark::now(pid).unwrap();
        assert!(!mark.threads.is_empty());
        assert!(mark.until(CpuMark::now(pid).unwrap()).server_s >= 0.0);
    }
}
