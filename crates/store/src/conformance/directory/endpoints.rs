//! What `Directory` promises of endpoints.
//!
//! Never: a case about applications alone.

use std::time::Duration;

use domain::endpoint::{Disabled, Endpoint, EndpointSpec, LiveSecret, Ordering};
use domain::ids::EndpointKey;
use domain::policy::{BreakerOverrides, RetryOn, RetryOverrides, Strategy};
use resilience::RetryAfterMode;

use super::super::world::World;
use super::super::{Case, cases, samples};
use crate::StoreError;
use crate::directory::{EndpointChange, NewEndpoint};

/// The suite.
pub const CASES: &[Case] = cases![
    an_endpoint_is_kept_whole,
    every_override_is_kept,
    every_secret_is_kept,
    an_endpoint_uid_is_unique_in_the_application,
    a_change_leaves_what_it_does_not_name,
    every_change_raises_the_version_and_is_told,
    a_deleted_endpoint_is_gone_and_can_be_named,
    endpoints_come_in_order_of_creation,
    what_is_missing_cannot_be_changed,
];

const GONE: Option<StoreError> = Some(StoreError::Missing("endpoint"));

async fn read(world: &World, key: EndpointKey) -> Endpoint {
    let found = world.stores.directory.endpoint(key).await.unwrap().unwrap();
    Endpoint::clone(&found)
}

fn with_spec(spec: EndpointSpec) -> EndpointChange {
    EndpointChange { spec: Some(spec), ..EndpointChange::default() }
}

fn with_uid(uid: Option<&str>) -> EndpointSpec {
    EndpointSpec { uid: uid.map(str::to_owned), ..samples::endpoint() }
}

async fn an_endpoint_is_kept_whole(mut world: World) {
    let app = world.app(0).await.app;
    let new = NewEndpoint { spec: samples::full_endpoint(), ..world.to_create(app.key) };
    let made = world.stores.directory.create_endpoint(new.clone()).await.unwrap();
    assert_eq!((made.app, made.app_id, made.id.random()), (app.key, app.id, new.random));
    assert_eq!((made.created_at, made.updated_at), (world.now(), world.now()));
    samples::assert_same_spec(&made.spec, &new.spec);
    assert_eq!(made.secrets.len(), 1);
    world.reopen();
    samples::assert_same_endpoint(&read(&world, made.key).await, &made);
    samples::assert_same_endpoint(&world.snapshot(app.key).await.endpoints[0], &made);
}

async fn every_override_is_kept(world: World) {
    let app = world.app(1).await;
    let none = RetryOverrides::default;
    let retry_on = |on| RetryOverrides { retry_on: Some(on), ..none() };
    let retry_after = |mode| RetryOverrides { retry_after: Some(mode), ..none() };
    let mut retries = vec![
        none(),
        retry_on(RetryOn::Transient),
        retry_on(RetryOn::All),
        retry_on(RetryOn::Listed(Vec::new())),
        retry_on(RetryOn::Listed(vec![(300, 300), (400, 599)])),
        retry_after(RetryAfterMode::Exact),
        retry_after(RetryAfterMode::AtLeast),
        retry_after(RetryAfterMode::Ignore),
        RetryOverrides { base: Some(Duration::ZERO), ..none() },
        RetryOverrides { cap: Some(Duration::from_secs(3_600)), ..none() },
        RetryOverrides { schedule: Some(Vec::new()), ..none() },
        RetryOverrides { attempts_max: Some(1), ..none() },
        RetryOverrides { age_max: Some(Duration::from_millis(1)), ..none() },
    ];
    retries.extend(Strategy::ALL.map(|one| RetryOverrides { strategy: Some(one), ..none() }));
    let breakers = [
        BreakerOverrides::default(),
        BreakerOverrides { failures: Some(1), ..Default::default() },
        BreakerOverrides { open_for: Some(Duration::from_secs(1)), ..Default::default() },
        BreakerOverrides { open_for_max: Some(Duration::from_secs(1)), ..Default::default() },
    ];
    let orderings = [Ordering::Unordered, Ordering::Ordered, Ordering::Strict];
    for (at, retry) in retries.into_iter().enumerate() {
        let spec = EndpointSpec {
            retry,
            breaker: breakers[at % breakers.len()].clone(),
            ordering: orderings[at % orderings.len()],
            disabled: [None, Some(Disabled::ByOwner), Some(Disabled::Gone)][at % 3],
            event_types: [None, Some(Vec::new()), Some(vec!["a".to_owned()])][at % 3].clone(),
            ..samples::endpoint()
        };
        let change = with_spec(spec.clone());
        world.stores.directory.change_endpoint(app.endpoints[0].key, change).await.unwrap();
        samples::assert_same_spec(&read(&world, app.endpoints[0].key).await.spec, &spec);
    }
}

async fn every_secret_is_kept(mut world: World) {
    let app = world.app(1).await;
    let key = app.endpoints[0].key;
    let secrets: Vec<LiveSecret> = (0..11)
        .map(|number| {
            let end = world.now().plus(Duration::from_micros(3_600_000_001 * u64::from(number)));
            LiveSecret { expires_at: (number > 0).then_some(end), ..samples::secret(number) }
        })
        .collect();
    let change = EndpointChange { secrets: Some(secrets.clone()), ..Default::default() };
    let made = world.stores.directory.change_endpoint(key, change).await.unwrap();
    world.reopen();
    let found = read(&world, key).await;
    samples::assert_same_endpoint(&found, &made);
    for (found, secret) in found.secrets.iter().zip(&secrets) {
        assert_eq!(found.secret.to_private_text(), secret.secret.to_private_text());
        assert_eq!(found.expires_at, secret.expires_at);
    }
    assert_eq!(found.secrets.len(), secrets.len(), "newest first");
}

async fn an_endpoint_uid_is_unique_in_the_application(world: World) {
    let (app, other) = (world.app(0).await.app.key, world.app(0).await.app.key);
    let create = async |app, uid| {
        let new = NewEndpoint { spec: with_uid(uid), ..world.to_create(app) };
        world.stores.directory.create_endpoint(new).await
    };
    let directory = &world.stores.directory;
    let taken = Some(StoreError::Conflict("uid"));
    let first = create(app, Some("a")).await.unwrap();
    assert_eq!(create(app, Some("a")).await.err(), taken);
    create(other, Some("a")).await.unwrap();
    let second = create(app, None).await.unwrap();
    create(app, None).await.unwrap();
    let change = with_spec(with_uid(Some("a")));
    let refused = directory.change_endpoint(second.key, change.clone()).await;
    assert_eq!(refused.err(), taken);
    samples::assert_same_endpoint(&read(&world, second.key).await, &second);
    directory.change_endpoint(first.key, change.clone()).await.unwrap();
    directory.change_endpoint(first.key, with_spec(with_uid(Some("b")))).await.unwrap();
    directory.change_endpoint(second.key, change).await.unwrap();
    directory.delete_endpoint(first.key).await.unwrap();
    let again = create(app, Some("b")).await.unwrap();
    assert_ne!((again.key, again.id), (first.key, first.id));
}

async fn a_change_leaves_what_it_does_not_name(world: World) {
    let app = world.app(0).await.app;
    let new = NewEndpoint { spec: samples::full_endpoint(), ..world.to_create(app.key) };
    let before = world.stores.directory.create_endpoint(new).await.unwrap();
    world.tick();
    let change = async |change| {
        world.stores.directory.change_endpoint(before.key, change).await.unwrap();
        read(&world, before.key).await
    };
    let enabled = EndpointSpec { disabled: None, ..before.spec.clone() };
    let found = change(EndpointChange { disabled: Some(None), ..Default::default() }).await;
    samples::assert_same_spec(&found.spec, &enabled);
    assert_eq!((found.created_at, found.updated_at), (before.created_at, world.now()));
    let secrets = vec![samples::secret(8), samples::secret(9)];
    let found = change(EndpointChange { secrets: Some(secrets), ..Default::default() }).await;
    samples::assert_same_spec(&found.spec, &enabled);
    assert_eq!(found.secrets.len(), 2);
    let both = EndpointChange {
        spec: Some(samples::endpoint()),
        secrets: None,
        disabled: Some(Some(Disabled::ByOwner)),
    };
    let found = change(both).await;
    samples::assert_same_spec(&found.spec, &samples::endpoint());
    assert_eq!((found.secrets.len(), found.spec.disabled), (2, None), "ignored beside a spec");
}

async fn every_change_raises_the_version_and_is_told(world: World) {
    let app = world.app(1).await.app.key;
    let mut version = world.snapshot(app).await.app.version;
    world.told.take_changed();
    let mut raised = async |key: EndpointKey, written: Option<i64>| {
        assert_eq!(world.told.take_changed(), [(app, Some(key))], "told before the answer");
        let now = world.snapshot(app).await.app.version;
        assert!(now > version);
        version = now;
        assert_eq!(written.unwrap_or(now), now, "the row says at which version it was written");
    };
    let directory = &world.stores.directory;
    let made = world.endpoint(app).await;
    raised(made.key, Some(made.version)).await;
    let changes = [
        with_spec(samples::full_endpoint()),
        EndpointChange { disabled: Some(None), ..Default::default() },
        EndpointChange { secrets: Some(vec![samples::secret(3)]), ..Default::default() },
    ];
    for change in changes {
        let made = directory.change_endpoint(made.key, change).await.unwrap();
        raised(made.key, Some(made.version)).await;
    }
    directory.delete_endpoint(made.key).await.unwrap();
    raised(made.key, None).await;
}

async fn a_deleted_endpoint_is_gone_and_can_be_named(mut world: World) {
    let app = world.app(2).await;
    let row = world.one(&app).await;
    let sent = world.one(&app).await;
    world.deliver(sent).await;
    let gone = &app.endpoints[0];
    world.stores.directory.delete_endpoint(gone.key).await.unwrap();
    world.reopen();
    let directory = &world.stores.directory;
    assert!(directory.endpoint(gone.key).await.unwrap().is_none());
    assert_eq!(world.attempts(sent.message).await[0].endpoint_id, gone.id, "history names it");
    let left = world.snapshot(app.app.key).await.endpoints;
    assert_eq!((left.len(), left[0].key), (1, app.endpoints[1].key));
    let asked = vec![gone.key, EndpointKey(1 << 40), app.endpoints[1].key];
    let past = directory.past_endpoints(asked).await.unwrap();
    assert_eq!(past.iter().map(|to| to.id).collect::<Vec<_>>(), [gone.id, app.endpoints[1].id]);
    samples::assert_same_spec(&past[0].spec, &gone.spec);
    assert_eq!(world.rows(row.endpoint).await, [row], "cancelled when it is next read");
}

async fn endpoints_come_in_order_of_creation(world: World) {
    let app = world.app(5).await.app.key;
    let first = world.snapshot(app).await.endpoints[0].key;
    world
        .stores
        .directory
        .change_endpoint(first, with_spec(samples::full_endpoint()))
        .await
        .unwrap();
    let last = world.endpoint(app).await.key;
    let keys: Vec<_> = world.snapshot(app).await.endpoints.iter().map(|one| one.key).collect();
    assert_eq!((keys.first(), keys.last(), keys.len()), (Some(&first), Some(&last), 6));
    assert!(keys.is_sorted());
}

async fn what_is_missing_cannot_be_changed(world: World) {
    let app = world.app(1).await;
    let directory = &world.stores.directory;
    let key = app.endpoints[0].key;
    directory.delete_endpoint(key).await.unwrap();
    let version = world.snapshot(app.app.key).await.app.version;
    world.told.take_changed();
    for key in [key, EndpointKey(1 << 40)] {
        let change = with_spec(samples::endpoint());
        assert_eq!(directory.change_endpoint(key, change).await.err(), GONE);
        assert_eq!(directory.delete_endpoint(key).await.err(), GONE);
    }
    assert_eq!(world.snapshot(app.app.key).await.app.version, version);
    assert_eq!(world.told.take_changed(), []);
}
