//! Partitions that come to this node and go from it, where several nodes share a store.
//!
//! One that comes is served once the states of its lanes are read. One that goes begins nothing
//! more; what it has in flight gets 2 s, and once its results are committed it is released, each as
//! soon as it can be, so that no endpoint waits for another one's receiver.
//! Never: decide what comes or goes; the store's nodes do.

use std::time::Duration;

use domain::ids::EndpointKey;
use domain::limits::HAND_OVER_MAX;
use domain::nodes::{Partition, Partitions, Standing};
use resilience::Timestamp;
use store::StoreError;
use store::ledger::LaneState;
use tokio::time::sleep;

use super::arrived::{Arrived, read};
use super::home::Home;
use super::lane::Lane;
use super::refill::READ_AGAIN;
use super::{Command, Dispatcher};
use crate::parts::Stores;

/// Between two looks at what goes.
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Dispatcher {
    /// Partitions are served here from now on, once it was read what is in them.
    pub(super) fn acquired(&mut self, partitions: Partitions) {
        if partitions.is_empty() {
            return;
        }
        self.homes.round += 1;
        self.homes.mine = self.homes.mine.and(partitions);
        self.homes.leaving = self.homes.leaving.without(partitions);
        self.homes.arriving.insert(self.homes.round, partitions);
        tracing::info!(partitions = partitions.len(), "endpoints come to this node");
        self.read_arriving(self.homes.round, Duration::ZERO);
    }

    fn read_arriving(&self, round: u64, pause: Duration) {
        let stores = self.stores.clone();
        self.report(async move {
            sleep(pause).await;
            Command::Arrived(round, read(&stores).await.map(Box::new))
        });
    }

    /// It was read what is in partitions that come.
    pub(super) fn arrived(
        &mut self,
        round: u64,
        read: Result<Box<Arrived>, StoreError>,
        now: Timestamp,
    ) {
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                tracing::warn!(%error, "lanes that come to this node not read; trying again");
                return self.read_arriving(round, READ_AGAIN);
            }
        };
        let Some(come) = self.homes.arriving.remove(&round) else { return };
        let Arrived { states, due, suspects } = *read;
        self.kept.retain(|endpoint, _| !come.has(*endpoint));
        let own = states.into_iter().filter(|state| come.has(state.endpoint));
        self.kept.extend(own.map(|state| (state.endpoint, state)));
        self.suspects.adopt(suspects.into_iter().filter(|one| come.has(one.endpoint)));
        let unsent = self.until(now).unsent();
        for (endpoint, due) in due.into_iter().filter(|(endpoint, _)| come.has(*endpoint)) {
            let lane = self.lanes.entry(endpoint).or_insert_with(Lane::new);
            lane.book.note_due(due);
            lane.book.fall_due(unsent);
            self.rest_or_turn(endpoint);
        }
        let woken: Vec<EndpointKey> =
            self.lanes.keys().filter(|endpoint| come.has(**endpoint)).copied().collect();
        woken.into_iter().for_each(|endpoint| self.enqueue(endpoint));
    }

    /// Partitions go: nothing more is begun in them.
    pub(super) fn shed(&mut self, partitions: Partitions) {
        tracing::info!(partitions = partitions.len(), "endpoints go to other nodes");
        self.homes.mine = self.homes.mine.without(partitions);
        self.homes.leaving = self.homes.leaving.and(partitions);
        for coming in self.homes.arriving.values_mut() {
            *coming = coming.without(partitions);
        }
        self.homes.arriving.retain(|_, coming| !coming.is_empty());
        self.report(async move {
            sleep(HAND_OVER_MAX).await;
            Command::ShedOver(partitions)
        });
        self.look_at_shed();
    }

    /// What is in flight has had its time.
    pub(super) fn shed_over(&mut self, partitions: Partitions) {
        let late = partitions.without(partitions.without(self.homes.leaving));
        self.flights.abort_those(|endpoint| late.has(endpoint));
    }

    /// Releases what has nothing under way.
    pub(super) fn look_at_shed(&mut self) {
        self.homes.looking = false;
        if self.homes.leaving.is_empty() {
            return;
        }
        let busy: Partitions = self
            .lanes
            .iter()
            .filter(|(endpoint, lane)| self.homes.leaving.has(**endpoint) && lane.is_busy())
            .map(|(endpoint, _)| Partition::of(*endpoint))
            .collect();
        let free = self.homes.leaving.without(busy);
        self.homes.leaving = busy;
        if !free.is_empty() {
            self.forget_lanes(free);
            release(self.stores.clone(), free);
        }
        if !busy.is_empty() && !std::mem::replace(&mut self.homes.looking, true) {
            self.report(async {
                sleep(LOOK_EVERY).await;
                Command::LookAtShed
            });
        }
    }

    fn forget_lanes(&mut self, partitions: Partitions) {
        self.kept.retain(|endpoint, _| !partitions.has(*endpoint));
        self.suspects.leave(partitions);
        let gone = |(endpoint, _): &(&EndpointKey, &Lane)| partitions.has(**endpoint);
        let keys: Vec<EndpointKey> = self.lanes.iter().filter(gone).map(|(key, _)| *key).collect();
        for key in keys {
            let Some(mut lane) = self.lanes.remove(&key) else { continue };
            self.ids = self.ids.saturating_sub(lane.book.owned());
            if let Some(at) = lane.timer {
                self.timers.remove(&(at, key));
            }
            for item in lane.book.empty() {
                self.uncache(&item);
            }
        }
    }

    /// Another node wrote rows of these endpoints.
    pub(super) fn woken(&mut self, endpoints: Vec<EndpointKey>) {
        for endpoint in endpoints {
            if self.homes.of(endpoint) == Home::Elsewhere {
                continue;
            }
            let lane = self.lanes.entry(endpoint).or_insert_with(Lane::new);
            lane.book.park();
            // A replay or a resend may close a gap.
            self.ask_again_of_gap(endpoint);
            self.enqueue(endpoint);
        }
    }

    /// Lanes that other nodes serve are shown as they were stored.
    pub(super) fn learned(&mut self, asked: &[EndpointKey], states: Vec<LaneState>) {
        for endpoint in asked {
            if self.homes.of(*endpoint) == Home::Elsewhere {
                self.kept.remove(endpoint);
            }
        }
        for state in states {
            if self.homes.of(state.endpoint) == Home::Elsewhere {
                self.kept.insert(state.endpoint, state);
            }
        }
    }

    /// Breaks off what is in flight when the lease is about to end.
    pub(super) fn look_at_lease(&mut self) {
        let standing = self.share.standing();
        if standing == Standing::NoFlight && !std::mem::replace(&mut self.homes.cut_off, true) {
            if self.flights.count() > 0 {
                tracing::warn!("sends broken off: the lease of this node was not renewed in time");
            }
            self.flights.abort();
        }
        if standing == Standing::Holds {
            self.homes.cut_off = false;
        }
    }
}

impl Lane {
    /// Whether it has anything under way that must end before another node serves it.
    fn is_busy(&self) -> bool {
        self.in_flight > 0 || self.unrecorded > 0 || self.book.is_refilling()
    }
}

/// Releases partitions, however often it takes.
fn release(stores: Stores, partitions: Partitions) {
    tokio::spawn(async move {
        while let Err(error) = stores.nodes.release(partitions).await {
            if !error.is_retryable() {
                tracing::warn!(%error, "endpoints that go to other nodes were not released");
                return;
            }
            sleep(READ_AGAIN).await;
        }
    });
}
