//! The database, the nodes, what befalls them, and what must hold.
//!
//! A step is 50 ms. A node acts when it runs; one that stands still has its sends in the air, but
//! does nothing more until it has looked at its clock.
//! Never: a decision that `domain::nodes` makes.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use domain::limits::{HAND_OVER_MAX, HEARTBEAT_EVERY, LEASE};
use domain::nodes::shares::{Member, dead, plan};
use domain::nodes::{NodeId, Standing};
use resilience::{Chance as _, Seeded};

const STEP: u64 = 50;
const PARTITIONS: usize = 12;
const NODES: usize = 4;
/// Trouble comes until then, in milliseconds.
const TROUBLE: u64 = 60_000;
/// And all is well again by then.
const END: u64 = 90_000;
/// Messages of each partition.
const MESSAGES: u32 = 400;

/// What happened in a run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) takeovers: u64,
    pub(crate) handovers: u64,
    pub(crate) broken_off: u64,
    /// Writes of nodes that were dead.
    pub(crate) fenced: u64,
    /// Processes that ended because others had declared them dead.
    pub(crate) ended: u64,
    pub(crate) recorded: u64,
}

impl Report {
    pub(crate) fn add(&mut self, other: &Self) {
        self.takeovers += other.takeovers;
        self.handovers += other.handovers;
        self.broken_off += other.broken_off;
        self.fenced += other.fenced;
        self.ended += other.ended;
        self.recorded += other.recorded;
    }
}

/// A send.
#[derive(Clone, Copy, Debug)]
struct Flight {
    message: u32,
    ends: u64,
    /// It ended, and its result is not written down yet.
    landed: bool,
}

/// A process.
#[derive(Debug)]
struct Node {
    id: NodeId,
    /// Its clock runs so many thousandths of the true one.
    rate: u64,
    started: u64,
    still_until: u64,
    cut_until: u64,
    /// By its own clock: when the last renewal that succeeded was begun.
    renewed: u64,
    steady: Option<u64>,
    beats_at: u64,
    /// A heartbeat on its way: begun by its own clock, there by the true one.
    beat: Option<(u64, u64)>,
    owned: Vec<bool>,
    leaving: BTreeMap<usize, u64>,
    flights: BTreeMap<usize, Flight>,
    /// It looks around at once.
    told: bool,
}

impl Node {
    fn new(id: i64, rate: u64, now: u64) -> Self {
        Self {
            id: NodeId(id),
            rate,
            started: now,
            still_until: 0,
            cut_until: 0,
            renewed: 0,
            steady: None,
            beats_at: now,
            beat: None,
            owned: vec![false; PARTITIONS],
            leaving: BTreeMap::new(),
            flights: BTreeMap::new(),
            told: false,
        }
    }

    fn clock(&self, now: u64) -> u64 {
        (now - self.started) * self.rate / 1_000
    }

    fn standing(&self, now: u64) -> Standing {
        Standing::at(Duration::from_millis(self.clock(now) - self.renewed))
    }
}

struct World {
    now: u64,
    chance: Seeded,
    heartbeats: BTreeMap<NodeId, u64>,
    owners: Vec<Option<NodeId>>,
    queues: Vec<VecDeque<u32>>,
    nodes: Vec<Option<Node>>,
    next_id: i64,
    report: Report,
}

pub(crate) fn play(seed: u64) -> Result<Report, String> {
    let mut world = World {
        now: 0,
        chance: Seeded::new(seed),
        heartbeats: BTreeMap::new(),
        owners: vec![None; PARTITIONS],
        queues: vec![(0..MESSAGES).collect(); PARTITIONS],
        nodes: (0..NODES).map(|_| None).collect(),
        next_id: 1,
        report: Report::default(),
    };
    while world.now < END {
        world.befall();
        for place in 0..NODES {
            world.act(place)?;
        }
        world.check()?;
        world.now += STEP;
    }
    world.check_end()?;
    Ok(world.report)
}

impl World {
    fn draw(&mut self, below: u64) -> u64 {
        self.chance.next_u64() % below
    }

    /// Something happens to somebody, or nothing.
    fn befall(&mut self) {
        for place in 0..NODES {
            if self.nodes[place].is_none() && (self.now > TROUBLE || self.draw(40) == 0) {
                let rate = 980 + self.draw(41);
                let id = self.next_id;
                self.next_id += 1;
                self.heartbeats.insert(NodeId(id), self.now);
                self.nodes[place] = Some(Node::new(id, rate, self.now));
                self.tell();
            }
        }
        if self.now > TROUBLE || self.draw(60) > 0 {
            return;
        }
        let place = usize::try_from(self.draw(NODES as u64)).unwrap();
        let (what, span) = (self.draw(4), self.draw(12_000));
        let until = self.now + span;
        let Some(node) = &mut self.nodes[place] else { return };
        match what {
            0 => self.nodes[place] = None,
            1 => node.still_until = until,
            2 => node.cut_until = until,
            _ => {
                // An orderly end: everything was recorded or broken off before.
                let id = node.id;
                if node.flights.is_empty() && node.cut_until <= self.now {
                    self.nodes[place] = None;
                    self.heartbeats.remove(&id);
                    self.free(id);
                    self.tell();
                }
            }
        }
    }

    fn free(&mut self, of: NodeId) {
        for owner in self.owners.iter_mut().filter(|owner| **owner == Some(of)) {
            *owner = None;
        }
    }

    /// A notification, which half of all nodes do not hear.
    fn tell(&mut self) {
        for place in 0..NODES {
            let hears = self.draw(2) == 0;
            if let Some(node) = &mut self.nodes[place] {
                node.told |= hears;
            }
        }
    }

    fn act(&mut self, place: usize) -> Result<(), String> {
        let Some(mut node) = self.nodes[place].take() else { return Ok(()) };
        if node.still_until > self.now {
            // Its sends are in the air, and end there.
            self.nodes[place] = Some(node);
            return Ok(());
        }
        if node.standing(self.now) == Standing::NoFlight {
            let out = node.flights.len();
            node.flights.retain(|_, flight| flight.landed);
            self.report.broken_off += (out - node.flights.len()) as u64;
        }
        let hears = node.cut_until <= self.now;
        if hears && !self.beat(&mut node) {
            self.report.ended += 1;
            return Ok(());
        }
        self.land(&mut node, hears)?;
        self.release(&mut node, hears);
        self.send(&mut node);
        self.nodes[place] = Some(node);
        Ok(())
    }

    /// Its place among the others; `false` when it was declared dead.
    fn beat(&mut self, node: &mut Node) -> bool {
        if node.beat.is_none() && (node.beats_at <= self.now || std::mem::take(&mut node.told)) {
            node.beats_at = self.now + u64::try_from(HEARTBEAT_EVERY.as_millis()).unwrap();
            node.beat = Some((node.clock(self.now), self.now + self.draw(8) * STEP));
        }
        let Some((begun, there)) = node.beat else { return true };
        if there > self.now {
            return true;
        }
        node.beat = None;
        if !self.heartbeats.contains_key(&node.id) {
            return false;
        }
        self.heartbeats.insert(node.id, self.now);
        if node.steady.is_none() || begun - node.renewed > 3_000 {
            node.steady = Some(node.clock(self.now));
        }
        node.renewed = node.renewed.max(begun);
        self.settle(node);
        true
    }

    fn settle(&mut self, node: &mut Node) {
        let now = self.now;
        let member = |(id, beat): (&NodeId, &u64)| Member {
            id: *id,
            works: true,
            silent: Duration::from_millis(now - beat),
        };
        let read = |beats: &BTreeMap<NodeId, u64>| beats.iter().map(member).collect::<Vec<_>>();
        let steady = node.steady.map_or(0, |since| node.clock(now) - since);
        for silent in dead(node.id, &read(&self.heartbeats), Duration::from_millis(steady)) {
            let is_silent =
                self.heartbeats[&silent] + u64::try_from(LEASE.as_millis()).unwrap() < now;
            if is_silent {
                self.heartbeats.remove(&silent);
                self.free(silent);
                self.report.takeovers += 1;
                self.tell();
            }
        }
        node.leaving.retain(|place, _| self.owners[*place] == Some(node.id));
        let leaves = |place| node.leaving.contains_key(&place);
        let plan = plan(node.id, &read(&self.heartbeats), &self.owners, leaves);
        for place in plan.take {
            if self.owners[place].is_none() {
                self.owners[place] = Some(node.id);
                node.owned[place] = true;
            }
        }
        for place in plan.shed {
            node.owned[place] = false;
            node.leaving.insert(place, now + u64::try_from(HAND_OVER_MAX.as_millis()).unwrap());
        }
    }

    /// Sends end, and are written down if the database is heard and the node is not dead.
    fn land(&mut self, node: &mut Node, hears: bool) -> Result<(), String> {
        for flight in node.flights.values_mut().filter(|flight| flight.ends <= self.now) {
            flight.landed = true;
        }
        let landed: Vec<(usize, u32)> = node
            .flights
            .iter()
            .filter(|(_, flight)| flight.landed)
            .map(|(place, flight)| (*place, flight.message))
            .collect();
        for (place, message) in landed.into_iter().filter(|_| hears) {
            if !self.heartbeats.contains_key(&node.id) {
                self.report.fenced += 1;
                continue;
            }
            if self.owners[place] != Some(node.id) {
                return Err(format!("{:?} writes for {place}, which it does not own", node.id));
            }
            if self.queues[place].pop_front() != Some(message) {
                return Err(format!("{message} of {place} is written out of order, or twice"));
            }
            node.flights.remove(&place);
            self.report.recorded += 1;
        }
        Ok(())
    }

    /// What goes is released once nothing of it is under way.
    fn release(&mut self, node: &mut Node, hears: bool) {
        for (place, until) in node.leaving.clone() {
            if until <= self.now {
                let out = node.flights.get(&place).is_some_and(|flight| !flight.landed);
                if out {
                    node.flights.remove(&place);
                    self.report.broken_off += 1;
                }
            }
            let is_free = !node.flights.contains_key(&place);
            if is_free && hears && self.heartbeats.contains_key(&node.id) {
                if self.owners[place] == Some(node.id) {
                    self.owners[place] = None;
                    self.report.handovers += 1;
                    self.tell();
                }
                node.leaving.remove(&place);
            }
        }
    }

    /// What waits is in memory: a send may begin though the database is not heard.
    fn send(&mut self, node: &mut Node) {
        for place in 0..PARTITIONS {
            let may = node.owned[place] && !node.flights.contains_key(&place);
            if !may || node.standing(self.now) != Standing::Holds {
                continue;
            }
            let Some(message) = self.queues[place].front().copied() else { continue };
            let slow = if self.draw(20) == 0 { 9_000 } else { 300 };
            let ends = self.now + STEP + self.draw(slow);
            node.flights.insert(place, Flight { message, ends, landed: false });
        }
    }

    /// No endpoint has two sends that a running process is making.
    fn check(&self) -> Result<(), String> {
        for place in 0..PARTITIONS {
            let out = self.nodes.iter().flatten().filter(|node| {
                let flight = node.flights.get(&place);
                node.still_until <= self.now && flight.is_some_and(|flight| !flight.landed)
            });
            let senders: Vec<NodeId> = out.map(|node| node.id).collect();
            if senders.len() > 1 {
                return Err(format!("at {} ms {senders:?} send to {place}", self.now));
            }
        }
        Ok(())
    }

    fn check_end(&self) -> Result<(), String> {
        let alive: Vec<NodeId> = self.nodes.iter().flatten().map(|node| node.id).collect();
        for (place, owner) in self.owners.iter().enumerate() {
            if !owner.is_some_and(|owner| alive.contains(&owner)) {
                return Err(format!("{place} is served by nobody at the end: {owner:?}"));
            }
        }
        let most = PARTITIONS.div_ceil(NODES);
        for id in alive {
            let owned = self.owners.iter().filter(|owner| **owner == Some(id)).count();
            if owned > most {
                return Err(format!("{id:?} has {owned} of {PARTITIONS} at the end"));
            }
        }
        Ok(())
    }
}
