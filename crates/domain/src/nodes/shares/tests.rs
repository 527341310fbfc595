//! Fair shares, and how they are reached: by tables, and by rounds over many nodes.
//!
//! Never: a clock.

use super::*;

const ALIVE: Duration = Duration::ZERO;

fn members(ids: impl IntoIterator<Item = i64>) -> Vec<Member> {
    let member = |id| Member { id: NodeId(id), works: true, silent: ALIVE };
    ids.into_iter().map(member).collect()
}

fn counts(owners: &[Option<NodeId>]) -> Vec<usize> {
    let mut counts: HashMap<NodeId, usize> = HashMap::new();
    owners.iter().flatten().for_each(|owner| *counts.entry(*owner).or_default() += 1);
    let mut counts: Vec<usize> = counts.into_values().collect();
    counts.sort_unstable();
    counts
}

/// Rounds until nobody moves anything; what is shed is free in the next round. How many moved.
fn settle(members: &[Member], owners: &mut [Option<NodeId>]) -> (usize, usize) {
    let (mut moved, mut rounds) = (0, 0);
    loop {
        let read = owners.to_vec();
        let mut still = true;
        for member in members {
            let plan = plan(member.id, members, &read, |_| false);
            for place in plan.shed {
                assert_eq!(owners[place], Some(member.id));
                owners[place] = None;
                (still, moved) = (false, moved + 1);
            }
            for place in plan.take {
                assert_eq!(owners[place].replace(member.id), None, "nobody takes the same");
                still = false;
            }
        }
        if still {
            return (moved, rounds);
        }
        rounds += 1;
        assert!(rounds < 10, "it comes to an end");
    }
}

#[test]
fn each_takes_its_part_of_what_is_free() {
    let all = members([3, 1, 2]);
    let owners = [None; 8];
    let take = |id| plan(NodeId(id), &all, &owners, |_| false).take;
    assert_eq!(take(1), [0, 1, 2]);
    assert_eq!((take(2), take(3)), (vec![3, 4, 5], vec![6, 7]));
    assert_eq!(plan(NodeId(9), &all, &owners, |_| false), Plan::default(), "a stranger");
}

#[test]
fn one_that_joins_gets_its_share_from_those_with_more() {
    let mut owners = vec![Some(NodeId(1)); 256];
    assert_eq!(settle(&members([1, 2]), &mut owners).0, 128);
    assert_eq!(settle(&members([1, 2, 3]), &mut owners).0, 85);
    assert_eq!(counts(&owners), [85, 85, 86]);
    assert_eq!(settle(&members([1, 2, 3]), &mut owners), (0, 0), "and nothing moves any more");
}

#[test]
fn what_a_dead_node_had_is_shared_and_nothing_else_moves() {
    let mut owners = vec![None; 256];
    settle(&members([1, 2, 3]), &mut owners);
    for owner in &mut owners {
        *owner = owner.filter(|owner| *owner != NodeId(2));
    }
    assert_eq!(settle(&members([1, 3]), &mut owners), (0, 1));
    assert_eq!(counts(&owners), [128, 128]);
}

#[test]
fn what_leaves_is_not_given_away_twice_and_not_counted() {
    let owners = [Some(NodeId(1)); 4];
    let all = members([1, 2]);
    assert_eq!(plan(NodeId(1), &all, &owners, |_| false).shed, [2, 3]);
    assert_eq!(plan(NodeId(1), &all, &owners, |place| place > 1), Plan::default());
}

#[test]
fn a_node_that_does_not_work_owns_nothing() {
    let mut all = members([1, 2]);
    all[0].works = false;
    let owners = [Some(NodeId(1)), None, None];
    assert_eq!(plan(NodeId(1), &all, &owners, |_| false).shed, [0]);
    assert_eq!(plan(NodeId(2), &all, &owners, |_| false).take, [1, 2]);
    assert_eq!(plan(NodeId(1), &all[..1], &owners, |_| false).shed, [0], "nor if it is alone");
}

#[test]
fn a_hundred_nodes_share_4_096_partitions_and_a_join_moves_one_share() {
    let mut owners = vec![None; 4_096];
    settle(&members(0..100), &mut owners);
    assert_eq!(counts(&owners).iter().max(), Some(&41));
    assert_eq!(counts(&owners).iter().min(), Some(&40));
    let (moved, rounds) = settle(&members(0..101), &mut owners);
    assert!(moved <= 41 && rounds <= 3, "{moved} in {rounds}");
    for owner in &mut owners {
        *owner = owner.filter(|owner| owner.0 % 10 != 0);
    }
    let left: Vec<Member> =
        members(0..101).into_iter().filter(|member| member.id.0 % 10 != 0).collect();
    let (moved, rounds) = settle(&left, &mut owners);
    assert_eq!((moved, rounds), (0, 1), "eleven nodes lost at once");
}

#[test]
fn only_the_silent_are_dead_and_only_a_steady_node_says_so() {
    let mut all = members([1, 2, 3]);
    all[1].silent = LEASE;
    all[2].silent = LEASE + Duration::from_millis(1);
    assert_eq!(dead(NodeId(1), &all, LEASE), [NodeId(3)]);
    assert_eq!(dead(NodeId(3), &all, LEASE), [], "not itself");
    assert_eq!(dead(NodeId(1), &all, LEASE - Duration::from_millis(1)), []);
}
