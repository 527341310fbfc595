//! What every chore does when there is nothing to do for it here.
//!
//! Never: do a chore.

use std::time::Duration;

use store::nodes::Share;
use tokio::sync::Notify;
use tokio::time::sleep;

/// Where another node may have done the chore until now, it is looked so often.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Waits for work: until somebody tells of it, or where nodes share a store for a second.
pub(crate) async fn idle(share: &Share, wake: &Notify) {
    if !share.is_shared() {
        return wake.notified().await;
    }
    tokio::select! {
        () = wake.notified() => {}
        () = sleep(LOOK_EVERY) => {}
    }
}
