//! Suspects: deliveries that were in flight when the process died.
//!
//! They are sent one at a time, the least blamed first; one that was already alone in a crash is
//! sent with nothing beside it. Three crashes while alone convict: the delivery is dead as
//! poisonous. The first, unsuspected crash does not count. After a second the others go on, and a
//! suspect is alone for as long as none of them does.
//! Never: hold back anything else for longer than a second because a suspect's receiver is slow.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::delivery::DeliveryState;
use domain::ids::{EndpointKey, MessageKey};
use domain::limits::CRASHES_ALONE_MAX;
use domain::nodes::Partitions;
use resilience::Timestamp;
use store::StoreError;
use store::history::DeliveryRow;
use store::ledger::Suspect;

use super::flights::Found;
use crate::parts::Stores;

/// A suspect that has been out for so long without ending the process no longer holds the others
/// back.
const ALONE_FOR: Duration = Duration::from_secs(1);
/// One that should be sent with nothing beside it, and after those that are blamed less, waits so
/// long for the others, then goes all the same.
const PATIENCE: Duration = Duration::from_secs(5);

type Key = (EndpointKey, MessageKey);

/// What may be done with a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// An ordinary delivery.
    None,
    /// A suspect whose turn it is.
    Alone,
    /// A suspect that has to wait for another one, or for everything in flight.
    Wait,
    /// It ended the process again and again.
    Convicted,
}

/// What is held against a delivery.
#[derive(Clone, Copy, Debug, Default)]
struct Blame {
    /// Crashes while it was alone in flight.
    crashes: u32,
    /// Sends of it that a crash cut off.
    sends: u32,
}

/// All suspects.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    blames: BTreeMap<Key, Blame>,
    /// The fewest crashes of any of them.
    least: u32,
    out: Option<(Key, Timestamp)>,
    /// Since when the next one waits for silence, or for those that are blamed less.
    since: Timestamp,
    /// Whether the one that is out is still marked as alone.
    marked: bool,
    /// The list has not been stored since the start.
    unkept: bool,
}

impl Suspects {
    /// Adds what was in flight to what is already suspected. The list is to be stored before
    /// anything is sent.
    pub(super) async fn recover(
        stores: &Stores,
        found: &[Found],
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let stored = stores.ledger.suspects().await?;
        if found.is_empty() && stored.is_empty() {
            return Ok(Self::default());
        }
        let mut blames = BTreeMap::new();
        for suspect in stored {
            let key = (suspect.endpoint, suspect.message);
            let found = found.iter().find(|one| (one.endpoint, one.message) == key);
            let again = match found {
                Some(one) => one.manual || is_pending(stores, key).await?,
                // Convicted, delivered or cancelled since: a replay begins without suspicion.
                None => suspect.crashes > 0 && is_pending(stores, key).await?,
            };
            if again {
                blames.insert(key, Blame { crashes: suspect.crashes, sends: suspect.sends });
            }
        }
        for one in found {
            let key = (one.endpoint, one.message);
            if !one.manual && !is_pending(stores, key).await? {
                // Its result was recorded in time.
                continue;
            }
            let blame: &mut Blame = blames.entry(key).or_default();
            blame.crashes = blame.crashes.saturating_add(u32::from(one.alone));
            blame.sends = blame.sends.saturating_add(1);
        }
        let mut suspects = Self { blames, since: now, unkept: true, ..Self::default() };
        suspects.look_for_least();
        Ok(suspects)
    }

    /// Takes over what another node was careful with.
    pub(super) fn adopt(&mut self, suspects: impl Iterator<Item = Suspect>) {
        for Suspect { endpoint, message, crashes, sends } in suspects {
            self.blames.entry((endpoint, message)).or_insert(Blame { crashes, sends });
        }
        self.look_for_least();
    }

    /// Other nodes serve all other endpoints.
    pub(super) fn keep_only(&mut self, is_served: impl Fn(EndpointKey) -> bool) {
        self.blames.retain(|(endpoint, _), _| is_served(*endpoint));
        self.look_for_least();
    }

    /// Other nodes serve these from now on.
    pub(super) fn leave(&mut self, partitions: Partitions) {
        self.keep_only(|endpoint| !partitions.has(endpoint));
    }

    /// Whether the list is to be stored before anything is sent.
    pub(super) const fn is_unkept(&self) -> bool {
        self.unkept
    }

    /// The list is stored.
    pub(super) const fn kept(&mut self) {
        self.unkept = false;
    }

    /// Sending goes on: whoever waits for others waits from now on.
    pub(super) const fn wait_anew(&mut self, now: Timestamp) {
        self.since = now;
    }

    /// Endpoints of suspects, the least blamed first.
    pub(super) fn endpoints(&self) -> Vec<EndpointKey> {
        let mut all: Vec<_> = self.blames.iter().collect();
        all.sort_by_key(|(_, blame)| blame.crashes);
        all.into_iter().map(|((endpoint, _), _)| *endpoint).collect()
    }

    pub(super) fn list(&self) -> Vec<Suspect> {
        let suspect = |(&(endpoint, message), &blame): (&Key, &Blame)| {
            let Blame { crashes, sends } = blame;
            Suspect { endpoint, message, crashes, sends }
        };
        self.blames.iter().map(suspect).collect()
    }

    /// Sends of this delivery that a crash cut off.
    pub(super) fn sends_cut_off(&self, key: Key) -> u32 {
        self.blames.get(&key).map_or(0, |blame| blame.sends)
    }

    fn look_for_least(&mut self) {
        self.least = self.blames.values().map(|blame| blame.crashes).min().unwrap_or(0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blames.is_empty()
    }

    /// What may be done with this delivery while `others` sends are in flight.
    pub(super) fn care(&self, key: Key, others: usize, now: Timestamp) -> Care {
        let Some(&Blame { crashes, .. }) = self.blames.get(&key) else { return Care::None };
        if crashes >= CRASHES_ALONE_MAX {
            return Care::Convicted;
        }
        // Those that are blamed less may have to wait for something else than their turn.
        let waits = crashes > self.least || crashes > 0 && others > 0;
        if self.holds_back(now) || waits && within(self.since, PATIENCE, now) {
            return Care::Wait;
        }
        Care::Alone
    }

    fn holds_back(&self, now: Timestamp) -> bool {
        self.out.is_some_and(|(_, since)| within(since, ALONE_FOR, now))
    }

    /// Whether nothing at all may start now.
    pub(super) fn wants_silence(&self, now: Timestamp) -> bool {
        self.holds_back(now)
            && self
                .out
                .is_some_and(|(key, _)| self.blames.get(&key).is_some_and(|one| one.crashes > 0))
    }

    /// When something held back may go on.
    pub(super) fn next_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.out.map(|(_, since)| since.plus(ALONE_FOR)).filter(|at| *at > now)
    }

    pub(super) fn begin(&mut self, key: Key, now: Timestamp) {
        self.out = Some((key, now));
        self.since = now;
        self.marked = true;
    }

    /// Its send ended and the process lives.
    pub(super) fn end(&mut self, key: Key) {
        self.out = self.out.filter(|(out, _)| *out != key);
    }

    /// Whether the one that was sent last is marked as alone and holds the others back no longer;
    /// says so once.
    pub(super) fn outlived(&mut self, now: Timestamp) -> bool {
        let outlived = self.marked && !self.holds_back(now);
        if outlived {
            self.marked = false;
        }
        outlived
    }

    /// Its record is committed: nothing is suspected any more. Says whether the kept list should be
    /// written again.
    pub(super) fn clear(&mut self, key: Key) -> bool {
        let Some(blame) = self.blames.remove(&key) else { return false };
        self.look_for_least();
        blame.crashes > 0 || self.blames.is_empty()
    }
}

async fn is_pending(stores: &Stores, (endpoint, message): Key) -> Result<bool, StoreError> {
    let deliveries = stores.history.deliveries(message).await?;
    let here = |row: &DeliveryRow| row.endpoint == endpoint && row.state == DeliveryState::Pending;
    Ok(deliveries.iter().any(here))
}

/// Whether less than `span` has passed since `since`; a clock that stepped back ends it.
fn within(since: Timestamp, span: Duration, now: Timestamp) -> bool {
    now >= since && now.since(since) < span
}
