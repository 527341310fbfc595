//! How background tasks and revocations are found.
//!
//! Never: what a task does; the conformance suite says that.

use super::super::recoveries::READY;
use super::super::revocations::{COVERED, COVERING, ENDED, OVER};
use super::super::tasks::{FORGET, OF_APP, OF_ORG, ONE, RUNNING, WAITS};
use super::world::World;

#[tokio::test]
async fn tasks_and_revocations_are_found_by_an_index() {
    let world = World::open().await;
    let [up, down] = OF_ORG;
    let revocations = [ENDED, COVERED, COVERING, OVER];
    for sql in [ONE, OF_APP, FORGET, WAITS, READY, up, down].into_iter().chain(revocations) {
        let plan = world.plan(sql).await;
        assert!(plan.iter().any(|step| step.starts_with("SEARCH")), "{sql}: {plan:?}");
        let slow = |step: &&String| step.starts_with("SCAN") || step.contains("TEMP B-TREE");
        assert_eq!(plan.iter().find(slow), None, "{sql}: {plan:?}");
    }
    // All of an index that holds nothing but what is asked for.
    let running = world.plan(RUNNING).await;
    assert_eq!(running, ["SCAN task USING INDEX task_running"]);
}
