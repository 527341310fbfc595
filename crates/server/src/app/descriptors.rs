//! Whether the process may open as many descriptors as sends in flight can need.
//!
//! Never: refuse to start; a warning says what to raise.

/// For the API's connections, the database and the rest.
const BESIDE_SENDS: usize = 512;

/// Warns when the limit is too low.
pub(super) fn check(sends_max: usize) {
    // Where there is no such file, nothing is known and nothing is said.
    let Ok(limits) = std::fs::read_to_string("/proc/self/limits") else { return };
    let needed = sends_max + BESIDE_SENDS;
    if let Some(limit) = soft_limit(&limits).filter(|limit| *limit < needed) {
        tracing::warn!(
            limit,
            needed,
            "the limit of open files is below what {sends_max} sends at once can need: \
             raise it with `ulimit -n {needed}` or LimitNOFILE"
        );
    }
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
