//! What becomes of an e-mail: written with the state that made it so, there until it was sent.
//!
//! Never: a case about whom it goes to.

use std::time::Duration;

use domain::application::AppSnapshot;
use domain::delivery::Pending;
use domain::ids::EndpointKey;
use domain::notice::{News, Run};
use resilience::Timestamp;

use super::{taken, teller, waiting};
use crate::conformance::world::World;
use crate::conformance::{Case, cases, samples};
use crate::directory::EndpointChange;
use crate::ledger::{LaneState, Record, Recorded, Suspended};
use crate::notices::Mail;

/// The suite.
pub const CASES: &[Case] = cases![
    a_suspension_is_told_with_the_result_that_made_it_so,
    each_step_is_told_once_on_whatever_way_it_is_written,
    a_late_result_tells_nothing,
    what_no_owner_wants_is_not_kept,
    mails_are_paged_and_leave_one_by_one,
    every_kind_of_mail_survives_a_restart,
    the_organisation_is_told_too,
    the_organisation_is_told_of_runs_of_refusals,
];

/// An application with `count` endpoints that name whom to write to.
async fn app(world: &World, count: usize) -> AppSnapshot {
    world.stores.notices.keep_mails(true);
    let app = world.app(count).await;
    for endpoint in &app.endpoints {
        contact(world, endpoint.key, true).await;
    }
    world.told.take_noted();
    world.snapshot(app.app.key).await
}

async fn contact(world: &World, endpoint: EndpointKey, named: bool) {
    let mut spec = samples::endpoint();
    if named {
        spec.contact_email = samples::full_endpoint().contact_email;
    }
    let change = EndpointChange { spec: Some(spec), ..EndpointChange::default() };
    world.stores.directory.change_endpoint(endpoint, change).await.unwrap();
}

async fn mails(world: &World) -> Vec<Mail> {
    world.stores.notices.mails(0, 1_000).await.unwrap()
}

async fn news(world: &World) -> Vec<News> {
    mails(world).await.into_iter().map(|mail| mail.news).collect()
}

async fn keep(world: &World, lane: LaneState) {
    world.stores.ledger.keep_lanes(vec![lane]).await.unwrap();
}

fn suspended(lane: &LaneState) -> News {
    News::EndpointSuspended { failing_since: lane.breaker.failing_since }
}

/// Fails, and leaves its lane as `lane` says.
fn failing(world: &World, row: Pending, lane: LaneState) -> Record {
    let attempt = Some(samples::answered(&row, 503, world.now()));
    let record = world.result(row, attempt, samples::retry(world.now(), 1));
    Record { lane: Some(lane), ..record }
}

async fn a_suspension_is_told_with_the_result_that_made_it_so(world: World) {
    let app = app(&world, 1).await;
    let row = world.one(&app).await;
    world.tick();
    let lane = samples::lane(row.endpoint);
    assert_eq!(world.record(failing(&world, row, lane.clone())).await, Recorded::Applied);
    assert_eq!(world.stores.queue.lane_states().await.unwrap(), std::slice::from_ref(&lane));
    let found = mails(&world).await;
    let (place, at) = (found[0].place, world.now());
    assert_eq!(found, [Mail { place, endpoint: row.endpoint, news: suspended(&lane), at }]);
    assert!(world.told.take_noted(), "whoever sends it is woken");
}

async fn each_step_is_told_once_on_whatever_way_it_is_written(world: World) {
    let app = app(&world, 1).await;
    let full = samples::lane(app.endpoints[0].key);
    let well = samples::bare_lane(app.endpoints[0].key);
    let warned = LaneState { suspended: None, ..full.clone() };
    let failing_since = full.breaker.failing_since.unwrap();
    let (failing_news, resumed) = (News::EndpointFailing { failing_since }, News::EndpointResumed);
    let mut again = full.clone();
    again.suspended = full.suspended.map(|on| Suspended { since: world.now(), ..on });
    let mut later = full.clone();
    later.suspended = full.suspended.map(|on| Suspended { probe_at: world.now(), ..on });
    let steps = [
        (well.clone(), None),
        (warned.clone(), Some(failing_news)),
        (warned.clone(), None),
        (well.clone(), None),
        (warned, Some(failing_news)),
        (full.clone(), Some(suspended(&full))),
        (full.clone(), None),
        (later, None),
        (well.clone(), Some(resumed)),
        (well.clone(), None),
        (full.clone(), Some(suspended(&full))),
        // What came between was not written.
        (again.clone(), Some(suspended(&again))),
    ];
    let mut expected = Vec::new();
    for by_record in [false, true] {
        for (lane, told) in steps.clone() {
            match by_record {
                false => keep(&world, lane).await,
                true => {
                    let row = world.one(&app).await;
                    world.record(failing(&world, row, lane)).await;
                }
            }
            expected.extend(told);
            assert_eq!(news(&world).await, expected);
        }
        keep(&world, well.clone()).await;
        expected.push(resumed);
    }
}

async fn a_late_result_tells_nothing(world: World) {
    let app = app(&world, 1).await;
    let row = world.one(&app).await;
    let late = failing(&world, row, samples::lane(row.endpoint));
    world.deliver(row).await;
    assert_eq!(world.record(late).await, Recorded::Late);
    assert_eq!(news(&world).await, []);
}

async fn what_no_owner_wants_is_not_kept(mut world: World) {
    let app = app(&world, 2).await;
    let [silent, gone] = [0, 1].map(|at: usize| app.endpoints[at].key);
    contact(&world, silent, false).await;
    world.stores.directory.delete_endpoint(gone).await.unwrap();
    for endpoint in [silent, gone] {
        keep(&world, samples::lane(endpoint)).await;
    }
    assert_eq!(news(&world).await, [], "it names nobody, or is deleted");
    contact(&world, silent, true).await;
    world.stores.notices.keep_mails(false);
    keep(&world, samples::bare_lane(silent)).await;
    assert_eq!(news(&world).await, [], "nobody sends them");
    world.stores.notices.keep_mails(true);
    world.reopen();
    keep(&world, samples::lane(silent)).await;
    assert_eq!(news(&world).await, [], "nor after a start, until somebody says so");
}

async fn mails_are_paged_and_leave_one_by_one(world: World) {
    let app = app(&world, 3).await;
    for endpoint in &app.endpoints {
        keep(&world, samples::lane(endpoint.key)).await;
    }
    let all = mails(&world).await;
    let keys: Vec<_> = app.endpoints.iter().map(|endpoint| endpoint.key).collect();
    assert_eq!(all.iter().map(|mail| mail.endpoint).collect::<Vec<_>>(), keys);
    let notices = &world.stores.notices;
    assert_eq!(notices.mails(0, 2).await.unwrap(), all[..2]);
    assert_eq!(notices.mails(all[1].place, 2).await.unwrap(), all[2..]);
    notices.mailed(all[1].place).await.unwrap();
    notices.mailed(all[1].place).await.unwrap();
    assert_eq!(mails(&world).await, [all[0], all[2]]);
}

async fn every_kind_of_mail_survives_a_restart(mut world: World) {
    let endpoint = app(&world, 1).await.endpoints[0].key;
    let full = samples::lane(endpoint);
    let warned = LaneState { suspended: None, ..full.clone() };
    let by_hand =
        LaneState { suspended: full.suspended, warned: false, ..samples::bare_lane(endpoint) };
    let well = samples::bare_lane(endpoint);
    for lane in [warned, full.clone(), well.clone(), by_hand, well] {
        world.tick();
        keep(&world, lane).await;
    }
    let failing_since = full.breaker.failing_since.unwrap();
    let by_hand = News::EndpointSuspended { failing_since: None };
    let kinds = [
        News::EndpointFailing { failing_since },
        suspended(&full),
        News::EndpointResumed,
        by_hand,
        News::EndpointResumed,
    ];
    assert_eq!(news(&world).await, kinds);
    let before = mails(&world).await;
    world.reopen();
    assert_eq!(mails(&world).await, before);
    let after = world.app(1).await.app.id.key();
    assert!(after > before[4].place, "no place is given twice");
}

async fn the_organisation_is_told_too(world: World) {
    teller(&world).await;
    let app = app(&world, 1).await;
    for kept in waiting(&world).await {
        world.stores.notices.discard(kept.place).await.unwrap();
    }
    let lane = LaneState { rejected_since: None, ..samples::lane(app.endpoints[0].key) };
    keep(&world, lane.clone()).await;
    keep(&world, samples::bare_lane(app.endpoints[0].key)).await;
    let told = taken(&world).await;
    let named: Vec<_> = told.iter().map(|notice| (notice.news, notice.endpoint.0)).collect();
    let id = app.endpoints[0].id;
    assert_eq!(named, [(suspended(&lane), id), (News::EndpointResumed, id)]);
    assert!(told.iter().all(|notice| (&notice.message, &notice.attempt) == (&None, &None)));
}

async fn the_organisation_is_told_of_runs_of_refusals(world: World) {
    let app = app(&world, 1).await;
    teller(&world).await;
    let row = world.one(&app).await;
    let endpoint = row.endpoint;
    let (first, second) = (world.now(), world.now().plus(Duration::from_micros(1)));
    let run = |since| Run { endpoint, since };
    let lane = |since: Option<Timestamp>| LaneState {
        rejected_until: since,
        rejected_since: since,
        ..samples::bare_lane(endpoint)
    };
    // With the result that led to it, and by itself.
    let record = world.result(
        row,
        Some(samples::answered(&row, 400, world.now())),
        samples::retry(world.now(), 1),
    );
    assert_eq!(
        world.record(Record { lane: Some(lane(Some(first))), ..record }).await,
        Recorded::Applied
    );
    let mut told = vec![News::RefusalsHeld(run(first))];
    for (since, more) in [
        (Some(first), vec![]),
        (Some(second), vec![News::RefusalsEnded(run(first)), News::RefusalsHeld(run(second))]),
        (None, vec![News::RefusalsEnded(run(second))]),
        (None, vec![]),
    ] {
        keep(&world, lane(since)).await;
        told.extend(more);
        let found: Vec<_> = waiting(&world).await.iter().map(|kept| kept.notice.news).collect();
        assert_eq!(found, told);
    }
    assert_eq!(mails(&world).await, [], "no letter is written of it");
}
