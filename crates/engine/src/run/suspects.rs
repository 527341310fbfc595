//! Suspects: deliveries that were in flight when the process died.
//!
//! They are sent one at a time; one that was already alone in a crash is sent with nothing beside
//! it. Three crashes while alone convict: the delivery is dead as poisonous. The first, unsuspected
//! crash does not count.
//! Never: hold back anything else for longer than a second because a suspect's receiver is slow.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::delivery::DeliveryState;
use domain::ids::{EndpointKey, MessageKey};
use domain::limits::CRASHES_ALONE_MAX;
use resilience::Timestamp;
use store::StoreError;
use store::history::DeliveryRow;
use store::ledger::Suspect;

use super::flights::Found;
use crate::parts::Stores;

/// A suspect that has been out for so long without ending the process no longer holds the others
/// back.
const ALONE_FOR: Duration = Duration::from_secs(1);
/// One that should be sent with nothing beside it waits so long for the others to end, then goes
/// all the same.
const SILENCE_FOR: Duration = Duration::from_secs(5);

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

/// All suspects.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    crashes: BTreeMap<Key, u32>,
    out: Option<(Key, Timestamp)>,
    /// Since when the next one waits for silence.
    since: Timestamp,
    /// Whether the one that is out is still marked as alone.
    marked: bool,
}

impl Suspects {
    /// Adds what was in flight to what is already suspected, and keeps the list before anything is
    /// sent.
    pub(super) async fn recover(
        stores: &Stores,
        found: &[Found],
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let stored = stores.ledger.suspects().await?;
        if found.is_empty() && stored.is_empty() {
            return Ok(Self::default());
        }
        let mut crashes = BTreeMap::new();
        for suspect in stored {
            let key = (suspect.endpoint, suspect.message);
            let found = found.iter().find(|one| (one.endpoint, one.message) == key);
            let again = match found {
                Some(one) => one.manual || is_pending(stores, key).await?,
                // Convicted, delivered or cancelled since: a replay begins without suspicion.
                None => suspect.crashes > 0 && is_pending(stores, key).await?,
            };
            if again {
                crashes.insert(key, suspect.crashes);
            }
        }
        for one in found {
            let key = (one.endpoint, one.message);
            if !one.manual && !is_pending(stores, key).await? {
                // Its result was recorded in time.
                continue;
            }
            let count = crashes.entry(key).or_insert(0_u32);
            *count = count.saturating_add(u32::from(one.alone));
        }
        let suspects = Self { crashes, since: now, ..Self::default() };
        stores.ledger.keep_suspects(suspects.list()).await?;
        Ok(suspects)
    }

    /// Endpoints with a suspect that crashed the process while alone: their lanes come first.
    pub(super) fn endpoints(&self) -> impl Iterator<Item = EndpointKey> {
        self.crashes.iter().filter(|(_, crashes)| **crashes > 0).map(|((endpoint, _), _)| *endpoint)
    }

    pub(super) fn list(&self) -> Vec<Suspect> {
        let suspect =
            |(&(endpoint, message), &crashes): (&Key, &u32)| Suspect { endpoint, message, crashes };
        self.crashes.iter().map(suspect).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.crashes.is_empty()
    }

    /// What may be done with this delivery while `others` sends are in flight.
    pub(super) fn care(&self, key: Key, others: usize, now: Timestamp) -> Care {
        match self.crashes.get(&key) {
            None => Care::None,
            Some(&crashes) if crashes >= CRASHES_ALONE_MAX => Care::Convicted,
            Some(_) if self.holds_back(now) => Care::Wait,
            Some(&crashes) if crashes > 0 && others > 0 && within(self.since, SILENCE_FOR, now) => {
                Care::Wait
            }
            Some(_) => Care::Alone,
        }
    }

    fn holds_back(&self, now: Timestamp) -> bool {
        self.out.is_some_and(|(_, since)| within(since, ALONE_FOR, now))
    }

    /// Whether nothing at all may start now.
    pub(super) fn wants_silence(&self, now: Timestamp) -> bool {
        self.holds_back(now)
            && self
                .out
                .is_some_and(|(key, _)| self.crashes.get(&key).is_some_and(|count| *count > 0))
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

    /// Whether the one that is out has been out for so long that it does not end the process; says
    /// so once.
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
        self.crashes.remove(&key).is_some_and(|crashes| crashes > 0 || self.crashes.is_empty())
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
