//! What `Notices` promises, and which changes leave one.
//!
//! Never: a case about what a notice is called, or who is to be told.

use domain::application::AppSnapshot;
use domain::delivery::Pending;
use domain::endpoint::Disabled;
use domain::ids::{AppKey, PublicId};
use domain::notice::{LastAttempt, MANAGEMENT, News, Notice, teller_of};

use super::world::{ORG, World, all};
use super::{Case, cases, samples};
use crate::StoreError;
use crate::directory::{EndpointChange, NewEndpoint};
use crate::inbox::Accepted;
use crate::ledger::{Follow, LaneState, Record, RecordNews, Recorded};
use crate::notices::Kept;

/// The suite.
pub const CASES: &[Case] = cases![
    nothing_is_noted_where_nobody_is_told,
    what_happens_to_an_endpoint_is_noted,
    a_change_that_fails_is_not_noted,
    a_deleted_application_notes_each_of_its_endpoints,
    a_result_is_noted_with_the_last_send,
    what_dies_with_its_payload_is_noted,
    a_late_or_repeated_result_is_not_noted,
    an_endpoint_is_told_to_be_disabled_once,
    the_tellers_own_endpoints_are_not_noted,
    who_is_told_changes_with_the_tellers,
    a_notice_leaves_with_its_message,
    a_notice_waits_for_fresh_endpoints,
    notices_survive_a_restart,
];

mod mails;

pub use mails::CASES as MAILS;

/// The application that tells `ORG`, with one endpoint.
async fn teller(world: &World) -> AppSnapshot {
    let app = tells(world, ORG).await;
    world.endpoint(app).await;
    let told = world.snapshot(app).await;
    assert_eq!(waiting(world).await, []);
    told
}

async fn tells(world: &World, org: PublicId) -> AppKey {
    let spec = samples::app(teller_of(org).as_deref());
    world.stores.directory.create_app(MANAGEMENT, spec, world.random()).await.unwrap().key
}

async fn waiting(world: &World) -> Vec<Kept> {
    world.stores.notices.waiting(1_000).await.unwrap()
}

/// What waits, and takes it away.
async fn taken(world: &World) -> Vec<Notice> {
    let mut notices = Vec::new();
    for kept in waiting(world).await {
        world.stores.notices.discard(kept.place).await.unwrap();
        notices.push(kept.notice);
    }
    assert_eq!(waiting(world).await, []);
    assert_eq!(world.told.take_noted(), !notices.is_empty());
    notices
}

/// Just the news of what waits.
async fn news(world: &World) -> Vec<News> {
    taken(world).await.into_iter().map(|notice| notice.news).collect()
}

fn failing(world: &World, row: Pending) -> Record {
    let attempt = samples::answered(&row, 503, world.now());
    let news = RecordNews {
        delivery: Some(News::AttemptFailing),
        breaker: Some(News::BreakerOpened { until: world.now() }),
    };
    Record { news, ..world.result(row, Some(attempt), samples::retry(world.now(), 4)) }
}

async fn nothing_is_noted_where_nobody_is_told(world: World) {
    let other = PublicId::from_bytes([2; 20]);
    tells(&world, other).await;
    let app = world.app(1).await;
    let row = world.one(&app).await;
    assert_eq!(world.record(failing(&world, row)).await, Recorded::Applied);
    world.stores.directory.delete_app(app.app.key).await.unwrap();
    assert_eq!(taken(&world).await, []);
}

async fn what_happens_to_an_endpoint_is_noted(world: World) {
    teller(&world).await;
    let spec = samples::app(Some("customer"));
    let app = world.stores.directory.create_app(ORG, spec, world.random()).await.unwrap();
    let mut new = world.to_create(app.key);
    new.spec.uid = Some("hook".to_owned());
    let endpoint = world.stores.directory.create_endpoint(new).await.unwrap();
    let notice = |news| Notice {
        org: ORG,
        news,
        app: (app.id, Some("customer".to_owned())),
        endpoint: (endpoint.id, Some("hook".to_owned())),
        message: None,
        attempt: None,
    };
    assert_eq!(taken(&world).await, [notice(News::EndpointCreated)]);
    let secrets = EndpointChange { secrets: Some(vec![samples::secret(3)]), ..Default::default() };
    let spec = EndpointChange { spec: Some(endpoint.spec.clone()), ..Default::default() };
    for change in [spec, secrets] {
        world.stores.directory.change_endpoint(endpoint.key, change).await.unwrap();
        assert_eq!(taken(&world).await, [notice(News::EndpointUpdated)]);
    }
    world.stores.directory.delete_endpoint(endpoint.key).await.unwrap();
    assert_eq!(taken(&world).await, [notice(News::EndpointDeleted)]);
}

async fn a_change_that_fails_is_not_noted(world: World) {
    teller(&world).await;
    let app = world.app(0).await.app.key;
    let named = || {
        let mut new = world.to_create(app);
        new.spec.uid = Some("hook".to_owned());
        new
    };
    let first = world.stores.directory.create_endpoint(named()).await.unwrap();
    let second = world.endpoint(app).await;
    assert_eq!(taken(&world).await.len(), 2);
    let taken_uid = world.stores.directory.create_endpoint(named()).await;
    assert_eq!(taken_uid.unwrap_err(), StoreError::Conflict("uid"));
    let change = EndpointChange { spec: Some(first.spec.clone()), ..Default::default() };
    let refused = world.stores.directory.change_endpoint(second.key, change).await;
    assert_eq!(refused.unwrap_err(), StoreError::Conflict("uid"));
    let gone = NewEndpoint { app: AppKey(99), ..named() };
    assert!(world.stores.directory.create_endpoint(gone).await.is_err());
    assert_eq!(taken(&world).await, []);
}

async fn a_deleted_application_notes_each_of_its_endpoints(world: World) {
    teller(&world).await;
    let app = world.app(3).await;
    let gone = app.endpoints[1].key;
    world.stores.directory.delete_endpoint(gone).await.unwrap();
    taken(&world).await;
    world.stores.directory.delete_app(app.app.key).await.unwrap();
    let found = taken(&world).await;
    assert!(found.iter().all(|notice| notice.news == News::EndpointDeleted));
    let ids: Vec<_> = found.iter().map(|notice| notice.endpoint.0).collect();
    assert_eq!(ids, [app.endpoints[0].id, app.endpoints[2].id]);
}

async fn a_result_is_noted_with_the_last_send(world: World) {
    teller(&world).await;
    let app = world.app(1).await;
    taken(&world).await;
    let mut new = world.message(&app);
    new.spec.event_id = Some("event-7".to_owned());
    let key = world.post(new).await;
    let row = world.row(key, app.endpoints[0].key).await.unwrap();
    world.tick();
    assert_eq!(world.record(failing(&world, row)).await, Recorded::Applied);
    let message = world.read(app.app.key, key).await;
    let sent = world.attempts(key).await.remove(0);
    let about = Notice {
        org: ORG,
        news: News::AttemptFailing,
        app: (app.app.id, None),
        endpoint: (app.endpoints[0].id, None),
        message: Some((message.id, Some("event-7".to_owned()))),
        attempt: Some(LastAttempt { id: sent.id, status: 503, at: world.now() }),
    };
    let until = world.now();
    let opened = Notice {
        news: News::BreakerOpened { until },
        message: None,
        attempt: None,
        ..about.clone()
    };
    assert_eq!(taken(&world).await, [about.clone(), opened]);

    // Given up without a send: the last one is the one before.
    let row = world.row(key, app.endpoints[0].key).await.unwrap();
    let news = RecordNews { delivery: Some(News::AttemptExhausted), breaker: None };
    let record = Record { news, ..world.result(row, None, samples::dead()) };
    assert_eq!(world.record(record).await, Recorded::Applied);
    let exhausted = Notice { news: News::AttemptExhausted, ..about };
    assert_eq!(taken(&world).await, [exhausted]);

    // Never sent at all.
    let row = world.one(&app).await;
    let record = Record { news, ..world.result(row, None, samples::dead()) };
    world.record(record).await;
    let found = taken(&world).await;
    assert_eq!((found.len(), found[0].attempt), (1, None));
}

async fn what_dies_with_its_payload_is_noted(world: World) {
    teller(&world).await;
    let app = world.app(2).await;
    taken(&world).await;
    let key = world.post(world.message(&app)).await;
    let [first, second] = [0, 1].map(|at: usize| app.endpoints[at].key);
    world.deliver(world.row(key, first).await.unwrap()).await;
    // An extra send of what was delivered is no delivery of its own.
    world.stores.history.resend(key, first).await.unwrap();
    world.stores.history.expunge(key).await.unwrap();
    assert_eq!(world.rows(first).await.len() + world.rows(second).await.len(), 0);
    let found = taken(&world).await;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].news, found[0].attempt), (News::AttemptExhausted, None));
    assert_eq!(found[0].endpoint.0, app.endpoints[1].id);
}

async fn a_late_or_repeated_result_is_not_noted(world: World) {
    teller(&world).await;
    let app = world.app(1).await;
    let row = world.one(&app).await;
    let record = failing(&world, row);
    assert_eq!(world.record(record.clone()).await, Recorded::Applied);
    assert_eq!(taken(&world).await.len(), 3, "the endpoint's, and two of the result");
    assert_eq!(world.record(record.clone()).await, Recorded::Late);
    let random = world.random();
    assert_eq!(world.record(Record { random, ..record }).await, Recorded::Late);
    assert_eq!(taken(&world).await, []);
}

async fn an_endpoint_is_told_to_be_disabled_once(world: World) {
    teller(&world).await;
    let app = world.app(1).await;
    let rows = [world.one(&app).await, world.one(&app).await];
    taken(&world).await;
    let gone = |row: Pending, lane| {
        let attempt = samples::answered(&row, 410, world.now());
        let disable = Some(Disabled::Gone);
        Record { lane, disable, ..world.result(row, Some(attempt), samples::dead()) }
    };
    let lane = samples::lane(rows[0].endpoint);
    // News of a suspension or of refusals would come beside.
    let lane = LaneState { warned: false, suspended: None, rejected_since: None, ..lane };
    let failing_since = lane.breaker.failing_since.unwrap();
    let records = vec![gone(rows[0], Some(lane)), gone(rows[1], None)];
    world.stores.ledger.record(records).await.unwrap();
    let found = taken(&world).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].news, News::EndpointDisabled { failing_since });
    assert_eq!(found[0].attempt.map(|last| last.status), Some(410));

    let back = EndpointChange { disabled: Some(None), ..Default::default() };
    world.stores.directory.change_endpoint(rows[0].endpoint, back).await.unwrap();
    assert_eq!(news(&world).await, [News::EndpointUpdated]);
    let app = world.snapshot(app.app.key).await;
    let row = world.one(&app).await;
    world.tick();
    assert_eq!(world.record(gone(row, None)).await, Recorded::Applied);
    let failing_since = world.now();
    assert_eq!(news(&world).await, [News::EndpointDisabled { failing_since }]);
}

async fn the_tellers_own_endpoints_are_not_noted(world: World) {
    let told = teller(&world).await;
    let itself = samples::app(Some("org_00000000000SvixManagement00"));
    let itself = world.stores.directory.create_app(MANAGEMENT, itself, world.random()).await;
    world.endpoint(itself.unwrap().key).await;
    let row = world.one(&told).await;
    assert_eq!(world.record(failing(&world, row)).await, Recorded::Applied);
    world.stores.directory.delete_endpoint(told.endpoints[0].key).await.unwrap();
    assert_eq!(taken(&world).await, []);
}

async fn who_is_told_changes_with_the_tellers(world: World) {
    let app = world.app(0).await.app.key;
    world.endpoint(app).await;
    assert_eq!(news(&world).await, []);
    let teller = tells(&world, ORG).await;
    world.endpoint(app).await;
    assert_eq!(news(&world).await, [News::EndpointCreated]);
    let other = samples::app(Some("renamed"));
    world.stores.directory.update_app(teller, other).await.unwrap();
    world.endpoint(app).await;
    assert_eq!(news(&world).await, []);
    let again = samples::app(teller_of(ORG).as_deref());
    world.stores.directory.update_app(teller, again).await.unwrap();
    world.endpoint(app).await;
    assert_eq!(news(&world).await, [News::EndpointCreated]);
    world.stores.directory.delete_app(teller).await.unwrap();
    world.endpoint(app).await;
    assert_eq!(news(&world).await, []);
}

async fn a_notice_leaves_with_its_message(world: World) {
    let told = teller(&world).await;
    world.app(2).await;
    let [first, second] = waiting(&world).await.try_into().unwrap();
    assert!(first.place < second.place);
    assert_eq!(world.stores.notices.waiting(1).await.unwrap(), std::slice::from_ref(&first));
    world.told.take_fresh();
    let posts = [0, 1].map(|_| world.stores.notices.post(first.place, world.message(&told)));
    let [once, again] = posts;
    let once = once.await.unwrap();
    let Some(Accepted::New { key, .. }) = once else { panic!("{once:?}") };
    assert_eq!(again.await.unwrap(), None, "told once, however often it is asked");
    assert_eq!(waiting(&world).await, [second]);
    let fresh: Vec<_> = world.told.take_fresh().iter().map(|it| it.pending.message).collect();
    assert_eq!(fresh, [key]);
    let history = &world.stores.history;
    let found =
        history.messages(told.app.key, Default::default(), all(), false).await.unwrap().rows;
    assert_eq!(found.iter().map(|message| message.key).collect::<Vec<_>>(), [key]);
}

async fn a_notice_waits_for_fresh_endpoints(world: World) {
    let told = teller(&world).await;
    world.app(1).await;
    let kept = waiting(&world).await.remove(0);
    world.endpoint(told.app.key).await;
    let post = |app: &AppSnapshot| world.stores.notices.post(kept.place, world.message(app));
    assert_eq!(post(&told).await.unwrap(), Some(Accepted::Stale));
    assert_eq!(waiting(&world).await, std::slice::from_ref(&kept));
    let fresh = world.snapshot(told.app.key).await;
    world.stores.directory.delete_app(told.app.key).await.unwrap();
    assert_eq!(post(&fresh).await.unwrap(), Some(Accepted::NoApplication));
    assert_eq!(waiting(&world).await, [kept]);
}

async fn notices_survive_a_restart(mut world: World) {
    teller(&world).await;
    let app = world.app(1).await;
    let row = world.one(&app).await;
    let lane = Some(samples::bare_lane(row.endpoint));
    let record = Record {
        lane,
        disable: Some(Disabled::Gone),
        run: None,
        follow: Follow::Delivered,
        news: RecordNews {
            delivery: Some(News::AttemptRecovered),
            breaker: Some(News::BreakerClosed),
        },
        ..failing(&world, row)
    };
    assert_eq!(world.record(record).await, Recorded::Applied);
    let before = waiting(&world).await;
    assert_eq!(before.len(), 4);
    world.reopen();
    assert_eq!(waiting(&world).await, before);
    world.endpoint(app.app.key).await;
    let after = waiting(&world).await;
    assert_eq!((&after[..4], after.len()), (&before[..], 5));
}
