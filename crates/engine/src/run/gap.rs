//! Strict order: a dead delivery is a gap in a lane, and nothing is sent past it until it is
//! replayed or deleted.
//!
//! The store knows the dead letters; a lane is asked of when its endpoint is read, and while it is
//! blocked each second.
//! Never: send past a gap that is not known to be closed.

use domain::ids::{AppKey, EndpointKey, MessageKey};
use store::StoreError;
use store::dead_letters::DeadFilter;
use store::page::{Direction, PageOf};

use super::lane::{GapState, Home};
use super::refill::READ_AGAIN;
use super::{Command, Dispatcher};
use crate::parts::Stores;

impl Dispatcher {
    /// A lane whose gap is not known asks; one that knows its gap is asked of each second.
    pub(super) fn ask_of_gap(&mut self, endpoint: EndpointKey) {
        if self.lanes.get(&endpoint).is_some_and(|lane| lane.gap.dead().is_none()) {
            self.ask_again_of_gap(endpoint);
        }
    }

    /// Asks the store whether the lane has dead letters.
    pub(super) fn ask_again_of_gap(&mut self, key: EndpointKey) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        let Home::Known(known) = &lane.home else { return };
        if !known.is_strict() || !lane.gap.blocks() || lane.gap.asking {
            return;
        }
        lane.gap.asking = true;
        let asked = (known.endpoint.app, key, lane.gap.dead());
        let stores = self.stores.clone();
        self.report(async move { Command::Gap(key, find(stores, asked).await) });
    }

    /// The store has answered.
    pub(super) fn gap(
        &mut self,
        endpoint: EndpointKey,
        found: Result<Option<MessageKey>, StoreError>,
    ) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return };
        lane.gap.asking = false;
        if std::mem::take(&mut lane.gap.outdated) {
            return self.ask_again_of_gap(endpoint);
        }
        match found {
            Ok(Some(dead)) => lane.gap.state = GapState::Open(dead),
            Ok(None) => lane.gap.state = GapState::Closed,
            Err(error) => {
                tracing::warn!(%error, "dead letters not read; trying again");
                let again = self.clock.now().plus(READ_AGAIN);
                self.set_timer(endpoint, again);
                return;
            }
        }
        self.enqueue(endpoint);
    }
}

/// A dead letter of the endpoint: the one known before, if it still is one, or any other.
async fn find(
    stores: Stores,
    (app, endpoint, known): (AppKey, EndpointKey, Option<MessageKey>),
) -> Result<Option<MessageKey>, StoreError> {
    if let Some(known) = known
        && stores.dead_letters.dead_letter(known, endpoint).await?.is_some()
    {
        return Ok(Some(known));
    }
    let Some(snapshot) = stores.directory.app_by_key(app).await? else { return Ok(None) };
    let filter = DeadFilter { app: Some(app), endpoint: Some(endpoint), ..DeadFilter::default() };
    let page = PageOf { beyond: None, direction: Direction::Ascending, limit: 1 };
    let found = stores.dead_letters.list(snapshot.app.org, filter, page).await?;
    Ok(found.rows.first().map(|letter| letter.message))
}
