//! How many connections the process may take, given how many files it may open, and whether that
//! leaves enough for sends.
//!
//! Never: refuse to start; a warning says what to raise.

/// Connections of the API at once, where there are descriptors enough.
const CONNECTIONS_MAX: usize = 4_096;
/// For the database and the rest.
const BESIDE: usize = 512;

/// Connections of the API at once: at most half of what may be open. Warns when that or sends may
/// run out.
pub(super) fn connections_max(sends_max: usize) -> usize {
    // Where there is no such file, nothing is known and nothing is said.
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let Some(limit) = soft_limit(&limits) else { return CONNECTIONS_MAX };
    let needed = sends_max + CONNECTIONS_MAX + BESIDE;
    let connections_max = CONNECTIONS_MAX.min(limit / 2);
    if limit < needed {
        tracing::warn!(
            limit,
            needed,
            connections_max,
            "the limit of open files is below what {sends_max} sends and {CONNECTIONS_MAX} \
             connections at once can need: raise it with `ulimit -n {needed}` or LimitNOFILE"
        );
    }
    connections_max
}

/// The soft limit; `None` when it is unlimited or not there.
fn soft_limit(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_found() {
        let text = "Limit Soft Hard Units\nMax processes 1 2 processes\n\
                    Max open files            1024                 524288               files\n";
        assert_eq!(soft_limit(text), Some(1_024));
        assert_eq!(soft_limit("Max open files unlimited unlimited files"), None);
        assert_eq!(soft_limit(""), None);
    }
}
