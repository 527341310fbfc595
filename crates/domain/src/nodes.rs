//! Many nodes on one database: which partition an endpoint falls into, and for how long a node may
//! go on without a word from the database. Who owns what is decided in `shares`.
//!
//! A partition has one owner, so that what must be exact for an endpoint is the owner's memory.
//! Never: ask a clock or a database; ages and what was read are arguments.

pub mod owners;
pub mod shares;

use std::time::Duration;

use crate::ids::EndpointKey;
use crate::limits::{LEASE_FLIGHT_MAX, LEASE_START_MAX, PARTITIONS};

const WORDS: usize = PARTITIONS / 64;

/// A node, from the start of its process to its end; a later process is another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub i64);

/// A part of all endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(pub u16);

impl Partition {
    /// The partition of an endpoint, for ever the same.
    pub const fn of(endpoint: EndpointKey) -> Self {
        // The finalizer of splitmix64: endpoints that were made one after another lie apart.
        let mut mixed = endpoint.0.cast_unsigned();
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        #[expect(clippy::cast_possible_truncation, reason = "PARTITIONS fits 16 bits")]
        Self((mixed % PARTITIONS as u64) as u16)
    }
}

/// A set of partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partitions([u64; WORDS]);

impl Partitions {
    /// All of them.
    pub const ALL: Self = Self([u64::MAX; WORDS]);

    /// From words of 64 partitions each, the first in the lowest bit of the first.
    pub const fn from_words(words: [u64; WORDS]) -> Self {
        Self(words)
    }

    /// As [`Partitions::from_words`] takes it.
    pub const fn words(&self) -> [u64; WORDS] {
        self.0
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Whether this one is in it.
    pub const fn contains(&self, partition: Partition) -> bool {
        let place = partition.0 as usize % PARTITIONS;
        self.0[place / 64] >> (place % 64) & 1 == 1
    }

    /// Whether the endpoint's is in it.
    pub const fn has(&self, endpoint: EndpointKey) -> bool {
        self.contains(Partition::of(endpoint))
    }

    /// Adds one.
    pub const fn insert(&mut self, partition: Partition) {
        let place = partition.0 as usize % PARTITIONS;
        self.0[place / 64] |= 1 << (place % 64);
    }

    /// Takes one out.
    pub const fn remove(&mut self, partition: Partition) {
        let place = partition.0 as usize % PARTITIONS;
        self.0[place / 64] &= !(1 << (place % 64));
    }

    /// Those in either.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// Those in this one only.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// Each of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Partition> + '_ {
        (0..PARTITIONS).filter_map(|place| {
            let partition = Partition(u16::try_from(place).ok()?);
            self.contains(partition).then_some(partition)
        })
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

impl FromIterator<Partition> for Partitions {
    fn from_iter<I: IntoIterator<Item = Partition>>(all: I) -> Self {
        let mut set = Self::default();
        all.into_iter().for_each(|partition| set.insert(partition));
        set
    }
}

/// Work that one node does for all. Each goes with a partition, so that it has an owner wherever
/// that one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chore {
    /// What is old enough is taken away.
    Prune,
    /// Background tasks are worked on.
    Tasks,
    /// Notices become messages.
    Announce,
    /// Letters are sent.
    Mail,
    /// What deleted endpoints left behind is cancelled.
    Sweep,
    /// What was committed is rolled up into figures.
    Figures,
    /// Rules of alerts are evaluated, and what follows is sent.
    Alerts,
}

impl Chore {
    /// Whoever owns this one does it.
    pub const fn partition(self) -> Partition {
        Partition(self as u16)
    }
}

/// What a node may do, by how long ago it began the last renewal of its lease that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Everything.
    Holds,
    /// It begins no send: it might outlast the lease.
    NoStart,
    /// It breaks off what is in flight: somebody else may send it soon.
    NoFlight,
}

impl Standing {
    /// By that age.
    pub fn at(age: Duration) -> Self {
        if age >= LEASE_FLIGHT_MAX {
            Self::NoFlight
        } else if age >= LEASE_START_MAX {
            Self::NoStart
        } else {
            Self::Holds
        }
    }

    /// How long until it changes by itself; `None` when it does not.
    pub fn changes_in(age: Duration) -> Option<Duration> {
        let ends = match Self::at(age) {
            Self::Holds => LEASE_START_MAX,
            Self::NoStart => LEASE_FLIGHT_MAX,
            Self::NoFlight => return None,
        };
        Some(ends.saturating_sub(age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::LEASE;

    #[test]
    fn endpoints_fall_into_partitions_evenly_and_for_ever() {
        assert_eq!(Partition::of(EndpointKey(1)), Partition::of(EndpointKey(1)));
        // What is stored in a database depends on it.
        assert_eq!([1, 2, 1_000].map(|key| Partition::of(EndpointKey(key)).0), [229, 138, 215]);
        let mut counts = [0_u32; PARTITIONS];
        for key in 1..=100_000 {
            counts[usize::from(Partition::of(EndpointKey(key)).0)] += 1;
        }
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(*least > 300 && *most < 480, "{least} to {most}");
    }

    #[test]
    fn a_set_has_what_was_added() {
        let mut set = Partitions::default();
        assert!(set.is_empty() && Partitions::ALL.len() == PARTITIONS);
        [0, 63, 64, 255].map(Partition).into_iter().for_each(|one| set.insert(one));
        assert_eq!(set.iter().map(|one| one.0).collect::<Vec<_>>(), [0, 63, 64, 255]);
        set.remove(Partition(64));
        assert_eq!((set.len(), set.contains(Partition(64))), (3, false));
        let rest = Partitions::ALL.without(set);
        assert_eq!((rest.len(), rest.and(set)), (253, Partitions::ALL));
        assert_eq!(Partitions::from_words(set.words()), set);
    }

    #[test]
    fn a_node_stops_before_its_lease_is_over() {
        let at = |millis| Standing::at(Duration::from_millis(millis));
        let cases = [
            (0, Standing::Holds),
            (3_999, Standing::Holds),
            (4_000, Standing::NoStart),
            (5_499, Standing::NoStart),
            (5_500, Standing::NoFlight),
        ];
        for (millis, expected) in cases {
            assert_eq!(at(millis), expected, "{millis} ms");
        }
        assert!(LEASE_FLIGHT_MAX < LEASE);
        let left = |millis| Standing::changes_in(Duration::from_millis(millis));
        assert_eq!(left(1_000), Some(Duration::from_secs(3)));
        assert_eq!((left(5_000), left(6_000)), (Some(Duration::from_millis(500)), None));
    }
}
