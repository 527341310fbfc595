//! Which node this data directory last ran, so that its next process need not wait for a lease.
//!
//! The lock on the directory says that the process before this one has ended; what it was is known
//! from a file.
//! Never: fail a start because of that file.

use std::path::Path;

use domain::nodes::NodeId;

const FILE: &str = "node";

/// The node that ran here before.
pub(super) fn former(data_dir: &Path) -> Option<NodeId> {
    std::fs::read_to_string(data_dir.join(FILE)).ok()?.trim().parse().ok().map(NodeId)
}

/// Notes which node runs here.
pub(super) fn note(data_dir: &Path, node: NodeId) {
    if let Err(fault) = std::fs::write(data_dir.join(FILE), node.0.to_string()) {
        tracing::warn!(%fault, "a restart of this node will have to wait for its lease");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_process_knows_who_ran_before() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(former(dir.path()), None);
        note(dir.path(), NodeId(-7));
        assert_eq!(former(dir.path()), Some(NodeId(-7)));
        std::fs::write(dir.path().join(FILE), "x").unwrap();
        assert_eq!(former(dir.path()), None);
    }
}
