//! The engine's door to lanes that another node serves: what is stored of them, and what their
//! owner is told.
//!
//! Never: answer for a lane of another node from memory.

use std::sync::Arc;
use std::time::Duration;

use domain::ids::EndpointKey;
use resilience::Clock;
use store::ledger::LaneState;
use store::nodes::{Order, Share};
use store::{StoreError, Stores};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use crate::parts::ByHand;
use crate::run::Command;
use crate::tasks::HasRoom;

/// Whoever gives an order to another node's lane sees it in force, if that node answers by then.
const IN_FORCE_MAX: Duration = Duration::from_secs(1);
/// Between two looks whether it is.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What has been due for less is on its way, in a lane of another node.
const ON_ITS_WAY: Duration = Duration::from_secs(1);

/// Reads what is stored of lanes that other nodes serve, for the dispatcher to show.
pub(crate) async fn learn(
    stores: &Stores,
    share: &Share,
    endpoints: &[EndpointKey],
) -> Option<Command> {
    let foreign: Vec<EndpointKey> =
        endpoints.iter().filter(|endpoint| !share.owns(**endpoint)).copied().collect();
    if foreign.is_empty() {
        return None;
    }
    match stores.nodes.lane_states_of(foreign.clone()).await {
        Ok(states) => Some(Command::Learned(foreign, states)),
        Err(error) => {
            tracing::warn!(%error, "lanes of other nodes not read");
            None
        }
    }
}

/// Tells the owner of a lane; answers once that is durable, and in force if the owner answers.
pub(crate) async fn order(
    stores: &Stores,
    endpoint: EndpointKey,
    order: ByHand,
) -> Result<(), StoreError> {
    stores.nodes.order(endpoint, order.into()).await?;
    let seen = async {
        loop {
            let states = stores.nodes.lane_states_of(vec![endpoint]).await;
            if states.is_ok_and(|states| is_in_force(states.first(), order)) {
                return;
            }
            sleep(LOOK_EVERY).await;
        }
    };
    let _late = tokio::time::timeout(IN_FORCE_MAX, seen).await;
    Ok(())
}

/// Whether a stored state shows what was ordered.
fn is_in_force(state: Option<&LaneState>, order: ByHand) -> bool {
    let forced = state.and_then(|state| state.breaker.forced);
    let suspended = state.is_some_and(|state| state.suspended.is_some());
    match order {
        ByHand::Forced(None) => forced.is_none() && !suspended,
        ByHand::Forced(wanted) => forced == wanted,
        ByHand::Suspended => suspended,
    }
}

/// What another node's order is to the dispatcher; nobody waits for its answer.
pub(crate) fn command(endpoint: EndpointKey, order: Order) -> Command {
    let by_hand = match order {
        Order::LetOne(message) => return Command::LetOne(endpoint, message),
        Order::Forced(forced) => ByHand::Forced(forced),
        Order::Suspended => ByHand::Suspended,
    };
    let (reply, _nobody) = oneshot::channel();
    Command::Order(endpoint, by_hand, reply)
}

/// Asks the dispatcher whether a lane has room, or for a lane of another node the store; there is
/// none once the dispatcher has ended.
pub(crate) fn has_room(
    commands: mpsc::UnboundedSender<Command>,
    stores: Stores,
    clock: Arc<dyn Clock>,
) -> HasRoom {
    let share = stores.nodes.share();
    Box::new(move |endpoint| {
        if share.owns(endpoint) {
            let (reply, wait) = oneshot::channel();
            let _gone = commands.send(Command::HasRoom(endpoint, reply));
            return Box::pin(async move { wait.await.unwrap_or(false) });
        }
        let (queue, late) = (Arc::clone(&stores.queue), clock.now().minus(ON_ITS_WAY));
        Box::pin(async move {
            let waits = queue.due(endpoint, late.into(), 1).await;
            waits.is_ok_and(|waits| waits.rows.is_empty())
        })
    })
}
