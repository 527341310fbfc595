//! Who should own which partition, and who may be declared dead: from what a node has read of the
//! nodes and the owners.
//!
//! Every node decides for itself alone: it gives away what it has beyond its fair share, and takes
//! what is free. Nodes that have read the same decide to take different ones; where they have not,
//! the database gives a partition to one of them.
//! Never: take what somebody owns.

use std::collections::HashMap;
use std::time::Duration;

use super::NodeId;
use crate::limits::LEASE;

/// A node as another one has read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which.
    pub id: NodeId,
    /// Whether it owns partitions at all.
    pub works: bool,
    /// For how long the other one has not seen it say that it lives, by a clock that is not set.
    pub silent: Duration,
}

/// What a node does next; places of partitions among the owners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Free ones to take.
    pub take: Vec<usize>,
    /// Own ones to give away.
    pub shed: Vec<usize>,
}

/// What `me` does next, given all nodes and the owner of each partition. Own ones for which
/// `leaves` holds are on their way out already.
pub fn plan(
    me: NodeId,
    members: &[Member],
    owners: &[Option<NodeId>],
    leaves: impl Fn(usize) -> bool,
) -> Plan {
    let mut workers: Vec<NodeId> =
        members.iter().filter(|member| member.works).map(|member| member.id).collect();
    let mut owned: HashMap<NodeId, usize> = HashMap::new();
    for owner in owners.iter().flatten() {
        *owned.entry(*owner).or_default() += 1;
    }
    let has = |node: &NodeId| owned.get(node).copied().unwrap_or(0);
    // Those with the most keep what does not divide evenly, so that little moves.
    workers.sort_by_key(|node| (std::cmp::Reverse(has(node)), *node));
    let (each, rest) = match workers.len() {
        0 => (0, 0),
        count => (owners.len() / count, owners.len() % count),
    };
    let target = |rank: usize| each + usize::from(rank < rest);
    let mine: Vec<usize> =
        (0..owners.len()).filter(|place| owners[*place] == Some(me) && !leaves(*place)).collect();
    let Some(rank) = workers.iter().position(|node| *node == me) else {
        return Plan { take: Vec::new(), shed: mine };
    };
    let wanted = target(rank);
    if mine.len() >= wanted {
        return Plan { take: Vec::new(), shed: mine[wanted..].to_vec() };
    }
    let free = (0..owners.len()).filter(|place| owners[*place].is_none());
    // Each has a piece of what is free to itself.
    let before: usize = workers[..rank]
        .iter()
        .enumerate()
        .map(|(of, node)| target(of).saturating_sub(has(node)))
        .sum();
    let take = free.skip(before).take(wanted - mine.len()).collect();
    Plan { take, shed: Vec::new() }
}

/// Nodes that `me` may declare dead. A node that was without the database itself until `steady` ago
/// waits, so that all of those that come back with it are heard first.
pub fn dead(me: NodeId, members: &[Member], steady: Duration) -> Vec<NodeId> {
    if steady < LEASE {
        return Vec::new();
    }
    let silent = members.iter().filter(|member| member.id != me && member.silent > LEASE);
    silent.map(|member| member.id).collect()
}

#[cfg(test)]
mod tests;
