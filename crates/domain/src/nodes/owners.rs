//! Who owns each partition, as it was last read, and which node a message is best committed by.
//!
//! What is here may be old: it says where to ask first, never who may act.
//! Never: ask a database.

use super::{NodeId, Partition};
use crate::ids::EndpointKey;
use crate::limits::PARTITIONS;

/// The owner of each partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owners(Vec<Option<NodeId>>);

impl Default for Owners {
    /// Nobody owns anything.
    fn default() -> Self {
        Self(vec![None; PARTITIONS])
    }
}

impl Owners {
    /// In the order of the partitions; those that are left out are nobody's.
    pub fn new(owners: &[Option<NodeId>]) -> Self {
        let mut all = owners.to_vec();
        all.resize(PARTITIONS, None);
        Self(all)
    }

    /// Who serves this endpoint.
    pub fn of(&self, endpoint: EndpointKey) -> Option<NodeId> {
        self.0[usize::from(Partition::of(endpoint).0)]
    }

    /// The node that serves most of these endpoints, `me` where no other one serves more.
    pub fn nearest(&self, me: NodeId, endpoints: impl Iterator<Item = EndpointKey>) -> NodeId {
        let mut counts = vec![(me, 0_usize)];
        for owner in endpoints.filter_map(|endpoint| self.of(endpoint)) {
            match counts.iter_mut().find(|(node, _)| *node == owner) {
                Some((_, count)) => *count += 1,
                None => counts.push((owner, 1)),
            }
        }
        // Of equals the last one is taken, which is this node once the order is turned round.
        let most = counts.into_iter().rev().max_by_key(|(_, count)| *count);
        most.map_or(me, |(node, _)| node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: NodeId = NodeId(1);
    const YOU: NodeId = NodeId(2);

    /// An endpoint in each of the first `count` partitions that `owner` has.
    fn of(owners: &Owners, owner: Option<NodeId>, count: usize) -> Vec<EndpointKey> {
        (1..10_000).map(EndpointKey).filter(|key| owners.of(*key) == owner).take(count).collect()
    }

    #[test]
    fn the_nearest_node_serves_most_and_this_one_goes_before_its_equals() {
        let thirds = (0..PARTITIONS).map(|at| [Some(ME), Some(YOU), None][at % 3]);
        let owners = Owners::new(&thirds.collect::<Vec<_>>());
        // endpoints of mine, of another's, of nobody's; the nearest
        let table = [
            (0, 0, 0, ME),
            (1, 0, 0, ME),
            (0, 1, 0, YOU),
            (0, 0, 5, ME),
            (2, 2, 0, ME),
            (2, 3, 0, YOU),
            (1, 2, 9, YOU),
        ];
        for (mine, yours, nobodys, nearest) in table {
            let mut all = of(&owners, Some(YOU), yours);
            all.extend(of(&owners, Some(ME), mine));
            all.extend(of(&owners, None, nobodys));
            let found = owners.nearest(ME, all.into_iter());
            assert_eq!(found, nearest, "{mine} {yours} {nobodys}");
        }
    }

    #[test]
    fn what_was_not_read_is_nobodys() {
        assert_eq!(Owners::new(&[]), Owners::default());
        assert_eq!(Owners::default().of(EndpointKey(1)), None);
        assert_eq!(Owners::default().nearest(ME, [EndpointKey(1)].into_iter()), ME);
    }
}
