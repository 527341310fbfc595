//! What `Alerts` promises.
//!
//! Never: a case about when a rule fires; `domain::alert` decides that.

use std::time::Duration;

use domain::alert::evaluate::{Settlement, Telling};
use domain::alert::incident::{Incident, Phase, Told};
use domain::alert::notice::{Notice, Occasion};
use domain::alert::reading::Failing;
use domain::alert::route::{Channel, Route, Silence};
use domain::alert::rule::{Condition, Rule, Severity};
use domain::dead_letter::DeadReason;
use domain::email::EmailAddress;
use domain::endpoint::Disabled;
use domain::ids::PublicId;
use resilience::Timestamp;

use super::samples::{self, target};
use super::world::World;
use super::{Case, cases};
use crate::alerts::{Configured, Kept};
use crate::directory::EndpointChange;
use crate::inbox::Accepted;
use crate::ledger::LaneState;
use crate::page::{Direction, PageOf};
use crate::stored::alert as stored;

/// The suite.
pub const CASES: &[Case] = cases![
    rules_are_kept_by_name,
    routes_are_kept_with_their_keys,
    silences_go_when_they_are_over,
    a_settlement_is_kept_whole,
    an_incident_is_acknowledged_once_and_stays_so,
    incidents_are_listed_in_order_and_forgotten_in_time,
    a_notification_leaves_with_its_message,
    a_notification_waits_for_fresh_endpoints,
    notifications_survive_a_restart,
    failing_endpoints_are_found_longest_first,
    endpoints_that_get_nothing_do_not_fail,
];

async fn configured(world: &World) -> Configured {
    world.stores.alerts.configured(world.now()).await.unwrap()
}

async fn tellings(world: &World) -> Vec<Kept> {
    world.stores.alerts.tellings(0, 100).await.unwrap()
}

async fn settle(world: &World, settlement: Settlement) {
    world.stores.alerts.settle(settlement, Timestamp::EPOCH).await.unwrap();
}

fn conditions() -> Vec<Condition> {
    let window = Duration::from_secs(300);
    vec![
        Condition::DeadLetters { above: 10, window, reasons: DeadReason::ALL.to_vec() },
        Condition::FailureRatio { above_percent: 5, window, count_min: 100 },
        Condition::EndpointFailing { after: window },
        Condition::OldestDue { above: window },
        Condition::NothingDelivered { window, count_min: 20 },
        Condition::SendingPaused,
    ]
}

fn rule(name: &str) -> Rule {
    Rule::new(name, Condition::SendingPaused, Severity::High)
}

fn incident(key: u64, phase: Phase, world: &World) -> Incident {
    Incident {
        id: PublicId::new(key, [7; 12]),
        rule: "paused".to_owned(),
        severity: Severity::Critical,
        phase,
        since: world.now(),
        fired_at: Some(world.now()),
        clear_since: None,
        resolved_at: (phase == Phase::Resolved).then(|| world.now()),
        acknowledged_at: None,
        flaps: 3,
        told: Told { routes: vec!["ops".to_owned()], at: Some(world.now()), count: 12 },
        title: "Ünder <pause>".to_owned(),
    }
}

fn telling(route: &str, occasion: Occasion) -> Telling {
    let at = Timestamp::from_secs(1_790_000_000);
    let subject = Failing {
        endpoint: PublicId::new(1, [1; 12]),
        endpoint_uid: Some("hook".to_owned()),
        origin: "https://a.example:443".to_owned(),
        app: PublicId::new(2, [2; 12]),
        app_name: "<b>Tenant</b>".to_owned(),
        since: at,
    };
    let notice = Notice {
        occasion,
        incident: PublicId::new(3, [3; 12]),
        rule: "endpoints".to_owned(),
        condition: "endpoint_failing".to_owned(),
        severity: Severity::Medium,
        title: "1 endpoint".to_owned(),
        facts: vec![("value".to_owned(), "1".to_owned())],
        subjects: vec![subject],
        more: 4,
        runbook: Some("https://wiki.example/alerts".to_owned()),
        since: at,
        at,
        dedup_key: "peyk-00-endpoints".to_owned(),
    };
    Telling { route: route.to_owned(), notice }
}

async fn rules_are_kept_by_name(mut world: World) {
    let full = Rule {
        severity: Severity::Low,
        enabled: false,
        hold: Duration::from_secs(60),
        clear_after: Duration::from_secs(90),
        clear_percent: 0,
        routes: Some(vec!["ops".to_owned(), "chat".to_owned()]),
        title: Some("{value} Ünits".to_owned()),
        runbook: Some(target("https://wiki.example/a%2Fb")),
        ..rule("z-full")
    };
    let mut all = vec![full];
    for condition in conditions() {
        all.push(Rule { condition: condition.clone(), ..rule(condition.name()) });
    }
    for rule in &all {
        world.stores.alerts.put_rule(rule.clone()).await.unwrap();
    }
    let changed = Rule { enabled: false, ..rule("sending_paused") };
    world.stores.alerts.put_rule(changed.clone()).await.unwrap();
    all.retain(|it| it.name != changed.name);
    all.push(changed);
    all.sort_by(|a, b| a.name.cmp(&b.name));
    world.reopen();
    assert_eq!(configured(&world).await.rules, all);
    assert!(world.stores.alerts.delete_rule("z-full".to_owned()).await.unwrap());
    assert!(!world.stores.alerts.delete_rule("z-full".to_owned()).await.unwrap());
    assert_eq!(configured(&world).await.rules.len(), 6);
}

async fn routes_are_kept_with_their_keys(mut world: World) {
    let url = || target("https://hooks.example/T0/B0?x=1");
    let email = |text: &str| EmailAddress::parse("to", text).unwrap();
    let channels = [
        Channel::PagerDuty { url: url(), routing_key: "k".repeat(32) },
        Channel::Opsgenie { url: url(), api_key: "key".to_owned() },
        Channel::Slack { url: url() },
        Channel::Teams { url: url() },
        Channel::Webhook { url: url(), secret: Box::new(samples::secret(1).secret) },
        Channel::Email { to: vec![email("a@example.com"), email("b@example.com")] },
    ];
    let mut all: Vec<_> = channels
        .into_iter()
        .map(|channel| Route { name: channel.name().to_owned(), channel })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    for route in &all {
        world.stores.alerts.put_route(route.clone()).await.unwrap();
    }
    world.reopen();
    // What is packed holds every field, and no two routes are packed alike.
    let packed = |routes: &[Route]| {
        let one = |it: &Route| (it.name.clone(), stored::route(it, None).unwrap());
        routes.iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(packed(&configured(&world).await.routes), packed(&all));
    let moved = Route {
        name: "slack".to_owned(),
        channel: Channel::Slack { url: target("http://a.example/") },
    };
    world.stores.alerts.put_route(moved.clone()).await.unwrap();
    let found = configured(&world).await.routes;
    let found: Vec<_> = found.into_iter().filter(|it| it.name == "slack").collect();
    assert_eq!(packed(&found), packed(&[moved]));
    assert!(world.stores.alerts.delete_route("slack".to_owned()).await.unwrap());
    assert!(!world.stores.alerts.delete_route("slack".to_owned()).await.unwrap());
}

async fn silences_go_when_they_are_over(mut world: World) {
    let silence = |key, minutes: u64| Silence {
        id: PublicId::new(key, [4; 12]),
        rule: (key == 1).then(|| "paused".to_owned()),
        endpoint: (key == 2).then(|| PublicId::new(9, [9; 12])),
        from: world.now(),
        until: world.now().plus(Duration::from_secs(60 * minutes)),
        comment: "während der Wartung".to_owned(),
    };
    let (short, long, other) = (silence(1, 1), silence(2, 60), silence(3, 60));
    for it in [&short, &long] {
        world.stores.alerts.put_silence(it.clone()).await.unwrap();
    }
    world.reopen();
    assert_eq!(configured(&world).await.silences, [short, long.clone()]);
    world.clock.advance(Duration::from_secs(60));
    world.stores.alerts.put_silence(other.clone()).await.unwrap();
    assert_eq!(configured(&world).await.silences, [long.clone(), other.clone()]);
    assert!(world.stores.alerts.delete_silence(long.id).await.unwrap());
    assert!(!world.stores.alerts.delete_silence(long.id).await.unwrap());
    assert_eq!(configured(&world).await.silences, [other]);
}

async fn a_settlement_is_kept_whole(mut world: World) {
    let (pending, firing) =
        (incident(1, Phase::Pending, &world), incident(2, Phase::Firing, &world));
    let told = [telling("ops", Occasion::Firing), telling("chat", Occasion::Test)];
    world.told.take_noted();
    settle(
        &world,
        Settlement {
            stand: vec![pending.clone(), firing.clone()],
            gone: Vec::new(),
            tellings: told.to_vec(),
        },
    )
    .await;
    assert!(world.told.take_noted(), "whoever sends them hears of it");
    world.reopen();
    assert_eq!(configured(&world).await.recent, [firing.clone(), pending.clone()]);
    let kept = tellings(&world).await;
    assert!(kept[0].place < kept[1].place);
    let kept: Vec<_> = kept.into_iter().map(|it| it.telling).collect();
    assert_eq!(kept, told);

    let mut resolved = firing;
    resolved.resolve(world.now());
    settle(
        &world,
        Settlement { stand: vec![resolved.clone()], gone: vec![pending.id], tellings: Vec::new() },
    )
    .await;
    assert!(!world.told.take_noted());
    assert_eq!(configured(&world).await.recent, [resolved]);
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(configured(&world).await.recent, [], "it was resolved before");
}

async fn an_incident_is_acknowledged_once_and_stays_so(world: World) {
    let (pending, firing) =
        (incident(1, Phase::Pending, &world), incident(2, Phase::Firing, &world));
    let stand = vec![pending.clone(), firing.clone()];
    settle(&world, Settlement { stand, ..Settlement::default() }).await;
    let acknowledge = |id| {
        let told = vec![telling("ops", Occasion::Acknowledged)];
        world.stores.alerts.acknowledge(id, world.now(), told)
    };
    assert!(!acknowledge(pending.id).await.unwrap());
    assert!(!acknowledge(PublicId::new(9, [9; 12])).await.unwrap());
    assert!(acknowledge(firing.id).await.unwrap());
    assert!(!acknowledge(firing.id).await.unwrap());
    assert_eq!(tellings(&world).await.len(), 1);
    // An evaluation that began before knows nothing of it.
    settle(&world, Settlement { stand: vec![firing.clone()], ..Settlement::default() }).await;
    let found = world.stores.alerts.incident(firing.id).await.unwrap().unwrap();
    assert_eq!(found.acknowledged_at, Some(world.now()));
}

async fn incidents_are_listed_in_order_and_forgotten_in_time(world: World) {
    let stand = (1..=5).map(|key| incident(key, Phase::Resolved, &world)).collect();
    settle(&world, Settlement { stand, ..Settlement::default() }).await;
    let list = async |beyond: Option<u64>, direction, limit| {
        let beyond = beyond.map(|key| PublicId::new(key, [7; 12]));
        let page = PageOf { beyond, direction, limit };
        let found = world.stores.alerts.incidents(page).await.unwrap();
        found.iter().map(|it| it.id.key()).collect::<Vec<_>>()
    };
    assert_eq!(list(None, Direction::Ascending, 3).await, [1, 2, 3]);
    assert_eq!(list(Some(3), Direction::Ascending, 3).await, [4, 5]);
    assert_eq!(list(None, Direction::Descending, 2).await, [5, 4]);
    assert_eq!(list(Some(4), Direction::Descending, 9).await, [3, 2, 1]);
    world.clock.advance(Duration::from_secs(1));
    let stand = vec![incident(6, Phase::Firing, &world), incident(7, Phase::Resolved, &world)];
    let settlement = Settlement { stand, ..Settlement::default() };
    world.stores.alerts.settle(settlement, world.now()).await.unwrap();
    assert_eq!(list(None, Direction::Ascending, 9).await, [6, 7]);
    assert_eq!(world.stores.alerts.incident(PublicId::new(1, [7; 12])).await.unwrap(), None);
}

async fn a_notification_leaves_with_its_message(world: World) {
    let app = world.app(2).await;
    let tell = vec![telling("ops", Occasion::Firing), telling("ops", Occasion::Resolved)];
    settle(&world, Settlement { tellings: tell, ..Settlement::default() }).await;
    let [first, second] = tellings(&world).await.try_into().unwrap();
    world.told.take_fresh();
    let message = || {
        let mut new = world.message(&app);
        new.targets.truncate(1);
        new
    };
    let posts = [0, 1].map(|_| world.stores.alerts.post_telling(first.place, message()));
    let [once, again] = posts;
    let once = once.await.unwrap();
    let Some(Accepted::New { key, .. }) = once else { panic!("{once:?}") };
    assert_eq!(again.await.unwrap(), None, "told once, however often it is asked");
    assert_eq!(tellings(&world).await, std::slice::from_ref(&second));
    let fresh: Vec<_> = world.told.take_fresh().iter().map(|it| it.pending).collect();
    assert_eq!(
        fresh.iter().map(|it| (it.message, it.endpoint)).collect::<Vec<_>>(),
        [(key, app.endpoints[0].key)]
    );
    world.stores.alerts.discard_telling(second.place).await.unwrap();
    assert_eq!(tellings(&world).await, []);
}

async fn a_notification_waits_for_fresh_endpoints(world: World) {
    let app = world.app(1).await;
    let tell = vec![telling("ops", Occasion::Firing)];
    settle(&world, Settlement { tellings: tell, ..Settlement::default() }).await;
    let kept = tellings(&world).await;
    world.endpoint(app.app.key).await;
    let stale = world.stores.alerts.post_telling(kept[0].place, world.message(&app));
    assert_eq!(stale.await.unwrap(), Some(Accepted::Stale));
    let fresh = world.snapshot(app.app.key).await;
    world.stores.directory.delete_app(app.app.key).await.unwrap();
    let gone = world.stores.alerts.post_telling(kept[0].place, world.message(&fresh));
    assert_eq!(gone.await.unwrap(), Some(Accepted::NoApplication));
    assert_eq!(tellings(&world).await, kept);
}

async fn notifications_survive_a_restart(mut world: World) {
    let tell = |count| vec![telling("ops", Occasion::Firing); count];
    settle(&world, Settlement { tellings: tell(3), ..Settlement::default() }).await;
    let before = tellings(&world).await;
    world.reopen();
    assert_eq!(tellings(&world).await, before);
    settle(&world, Settlement { tellings: tell(1), ..Settlement::default() }).await;
    let after = tellings(&world).await;
    assert!(after[3].place > before[2].place, "no place is given twice");
    let beyond = world.stores.alerts.tellings(after[1].place, 1).await.unwrap();
    assert_eq!(beyond, after[2..3]);
}

async fn failing_endpoints_are_found_longest_first(world: World) {
    let app = world.app(4).await;
    let ours = world.app(1).await;
    let since = |minutes: u64| world.now().minus(Duration::from_secs(60 * minutes));
    let keys: Vec<_> = app.endpoints.iter().map(|it| it.key).collect();
    let lane = |endpoint, failing_since| {
        let mut lane = LaneState { suspended: None, ..samples::lane(endpoint) };
        lane.breaker.failing_since = failing_since;
        lane
    };
    let lanes = vec![
        lane(keys[0], Some(since(10))),
        lane(keys[1], Some(since(30))),
        lane(keys[2], None),
        lane(keys[3], Some(since(20))),
        lane(ours.endpoints[0].key, Some(since(40))),
    ];
    world.stores.ledger.keep_lanes(lanes).await.unwrap();
    let found = async |minutes, but_of, limit| {
        let found = world.stores.alerts.failing(since(minutes), but_of, limit).await.unwrap();
        found.into_iter().map(|it| (it.endpoint, it.since)).collect::<Vec<_>>()
    };
    let is = |at: usize, minutes| (app.endpoints[at].id, since(minutes));
    let ours = (Some(ours.app.key), ours.endpoints[0].id);
    assert_eq!(found(15, ours.0, 9).await, [is(1, 30), is(3, 20)]);
    assert_eq!(found(10, ours.0, 2).await, [is(1, 30), is(3, 20)]);
    assert_eq!(found(30, None, 9).await, [(ours.1, since(40)), is(1, 30)]);
    let one = world.stores.alerts.failing(since(30), ours.0, 1).await.unwrap().remove(0);
    assert_eq!((one.origin.as_str(), one.app), ("https://example.com:443", app.app.id));
    assert_eq!(one.app_name, app.app.spec.name);
}

async fn endpoints_that_get_nothing_do_not_fail(world: World) {
    let app = world.app(3).await;
    for endpoint in &app.endpoints {
        let mut lane = LaneState { suspended: None, ..samples::lane(endpoint.key) };
        lane.breaker.failing_since = Some(world.now());
        world.stores.ledger.keep_lanes(vec![lane]).await.unwrap();
    }
    let directory = &world.stores.directory;
    directory.delete_endpoint(app.endpoints[0].key).await.unwrap();
    let off =
        EndpointChange { disabled: Some(Some(Disabled::ByOwner)), ..EndpointChange::default() };
    directory.change_endpoint(app.endpoints[1].key, off).await.unwrap();
    let found = world.stores.alerts.failing(world.now(), None, 9).await.unwrap();
    assert_eq!(found.iter().map(|it| it.endpoint).collect::<Vec<_>>(), [app.endpoints[2].id]);
}
