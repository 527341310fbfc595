//! What `Directory` promises of applications and event types; endpoints stand in
//! `directory/endpoints.rs`.
//!
//! Never: a case that another trait's suite has.

mod endpoints;

use std::sync::Arc;

use domain::application::{Application, ApplicationSpec};
use domain::event_type::EventType;
use domain::ids::{AppKey, PublicId};

use super::world::{ORG, World, all};
use super::{Case, cases, samples};
use crate::StoreError;
use crate::directory::IdOrUid;
use crate::page::{Direction, PageOf};

/// The suite, without the cases of `ENDPOINTS`.
pub const CASES: &[Case] = cases![
    an_application_is_kept_whole,
    an_application_is_found_by_id_uid_and_key,
    an_application_belongs_to_its_organisation,
    an_application_uid_is_unique_in_the_organisation,
    an_updated_application_is_replaced,
    a_deleted_application_is_gone_with_its_endpoints,
    applications_are_listed_by_id_in_both_directions,
    event_types_are_kept_whole,
    an_archived_event_type_comes_back,
    an_event_type_is_replaced_and_removed,
    event_types_are_listed_by_name,
    the_installation_has_one_name,
];

pub use endpoints::CASES as ENDPOINTS;

const OTHER_ORG: PublicId = PublicId::from_bytes([2; 20]);

async fn create(world: &World, spec: ApplicationSpec) -> Result<Arc<Application>, StoreError> {
    world.stores.directory.create_app(ORG, spec, world.random()).await
}

async fn an_application_is_kept_whole(mut world: World) {
    let spec = ApplicationSpec {
        name: "Zoë & sons".to_owned(),
        uid: Some("customer-1".to_owned()),
        throttle_rate: Some(u16::MAX),
        metadata: r#"{"a":"b"}"#.to_owned(),
    };
    let random = world.random();
    let made = world.stores.directory.create_app(ORG, spec.clone(), random).await.unwrap();
    let Application { key, id, version, .. } = *made;
    assert_eq!(id.random(), random);
    let (created_at, updated_at, org) = (world.now(), world.now(), ORG);
    let app = Application { key, id, org, spec, version, created_at, updated_at };
    assert_eq!(*made, app);
    world.reopen();
    assert_eq!(*world.snapshot(key).await.app, app);
    assert!(world.snapshot(key).await.endpoints.is_empty());
}

async fn an_application_is_found_by_id_uid_and_key(world: World) {
    let app = create(&world, samples::app(Some("a"))).await.unwrap();
    let other = create(&world, samples::app(Some("b"))).await.unwrap();
    let endpoint = world.endpoint(app.key).await;
    world.endpoint(other.key).await;
    let by_id = world.stores.directory.app(ORG, IdOrUid::Id(app.id)).await.unwrap().unwrap();
    for found in [by_id, world.by_uid("a").await.unwrap(), world.snapshot(app.key).await] {
        assert_eq!((found.app.key, &found.app.spec), (app.key, &app.spec));
        assert_eq!(found.endpoints.len(), 1);
        samples::assert_same_endpoint(&found.endpoints[0], &endpoint);
        assert_eq!(found.app.version, endpoint.version);
    }
    let unknown = IdOrUid::Id(PublicId::new(app.id.key(), [0; 12]));
    assert!(world.stores.directory.app(ORG, unknown).await.unwrap().is_none());
    assert!(world.by_uid("c").await.is_none());
    assert!(world.by_uid("").await.is_none());
    let beyond = AppKey(other.key.0 + 1_000);
    assert!(world.stores.directory.app_by_key(beyond).await.unwrap().is_none());
}

async fn an_application_belongs_to_its_organisation(world: World) {
    let app = create(&world, samples::app(Some("a"))).await.unwrap();
    let directory = &world.stores.directory;
    let other = directory.create_app(OTHER_ORG, samples::app(Some("a")), world.random()).await;
    let other = other.unwrap();
    let by_id = directory.app(OTHER_ORG, IdOrUid::Id(app.id)).await.unwrap();
    assert!(by_id.is_none());
    let by_uid = directory.app(OTHER_ORG, IdOrUid::Uid("a".to_owned())).await.unwrap();
    assert_eq!(by_uid.unwrap().app.key, other.key);
    let listed = directory.apps(OTHER_ORG, all()).await.unwrap();
    assert_eq!(listed, [other]);
}

async fn an_application_uid_is_unique_in_the_organisation(world: World) {
    let taken = Some(StoreError::Conflict("uid"));
    let app = create(&world, samples::app(Some("a"))).await.unwrap();
    assert_eq!(create(&world, samples::app(Some("a"))).await.err(), taken);
    let other = create(&world, samples::app(None)).await.unwrap();
    create(&world, samples::app(None)).await.unwrap();
    let directory = &world.stores.directory;
    let refused = directory.update_app(other.key, samples::app(Some("a"))).await;
    assert_eq!(refused.err(), taken);
    assert_eq!(world.snapshot(other.key).await.app.spec, other.spec);
    directory.update_app(app.key, samples::app(Some("a"))).await.unwrap();
    directory.update_app(app.key, samples::app(Some("b"))).await.unwrap();
    assert!(world.by_uid("a").await.is_none());
    directory.update_app(other.key, samples::app(Some("a"))).await.unwrap();
    directory.delete_app(app.key).await.unwrap();
    let again = create(&world, samples::app(Some("b"))).await.unwrap();
    assert_ne!((again.key, again.id), (app.key, app.id));
}

async fn an_updated_application_is_replaced(world: World) {
    let app = create(&world, samples::app(Some("a"))).await.unwrap();
    world.tick();
    world.told.take_changed();
    let spec = ApplicationSpec { name: "New".to_owned(), ..samples::app(None) };
    let made = world.stores.directory.update_app(app.key, spec.clone()).await.unwrap();
    assert_eq!(world.told.take_changed(), [(app.key, None)], "told before the answer");
    let version = made.version;
    assert!(version > app.version, "raised");
    let expected = Application { spec, version, updated_at: world.now(), ..(*app).clone() };
    assert_eq!(*made, expected);
    assert_eq!(*world.snapshot(app.key).await.app, expected);
    let missing = world.stores.directory.update_app(AppKey(1 << 40), samples::app(None)).await;
    assert_eq!(missing.err(), Some(StoreError::Missing("application")));
}

async fn a_deleted_application_is_gone_with_its_endpoints(mut world: World) {
    let app = world.app(2).await;
    let row = world.one(&app).await;
    world.told.take_changed();
    world.stores.directory.delete_app(app.app.key).await.unwrap();
    assert!(world.told.take_changed().contains(&(app.app.key, None)));
    world.reopen();
    let directory = &world.stores.directory;
    assert!(directory.app_by_key(app.app.key).await.unwrap().is_none());
    assert!(directory.app(ORG, IdOrUid::Id(app.app.id)).await.unwrap().is_none());
    assert_eq!(directory.apps(ORG, all()).await.unwrap(), []);
    for endpoint in &app.endpoints {
        assert!(directory.endpoint(endpoint.key).await.unwrap().is_none());
    }
    assert_eq!(world.rows(row.endpoint).await, [row], "cancelled when it is next read");
    let missing = Some(StoreError::Missing("application"));
    assert_eq!(directory.delete_app(app.app.key).await.err(), missing);
    assert_eq!(directory.create_endpoint(world.to_create(app.app.key)).await.err(), missing);
}

async fn applications_are_listed_by_id_in_both_directions(world: World) {
    let mut ids = Vec::new();
    for _ in 0..23 {
        ids.push(create(&world, samples::app(None)).await.unwrap().id);
    }
    ids.sort();
    for direction in [Direction::Ascending, Direction::Descending] {
        let (mut found, mut beyond) = (Vec::new(), None);
        loop {
            let page = PageOf { beyond, direction, limit: 10 };
            let page = world.stores.directory.apps(ORG, page).await.unwrap();
            let Some(last) = page.last() else { break };
            beyond = Some(last.id);
            found.extend(page.iter().map(|app| app.id));
            assert!(found.len() <= 1_000, "the walk does not advance");
        }
        if direction == Direction::Descending {
            found.reverse();
        }
        assert_eq!(found, ids, "{direction:?}");
    }
}

async fn event_types_are_kept_whole(mut world: World) {
    let full = EventType {
        description: "Zoë\nwas here".to_owned(),
        deprecated: true,
        schemas: Some(r#"{"1": {"a": 1.0}}"#.to_owned()),
        feature_flag: Some("beta".to_owned()),
        ..samples::event_type("user.created")
    };
    let directory = Arc::clone(&world.stores.directory);
    assert_eq!(directory.create_event_type(ORG, full.clone()).await.unwrap(), full);
    let again = directory.create_event_type(ORG, samples::event_type("user.created")).await;
    assert_eq!(again.err(), Some(StoreError::Conflict("event type")));
    let bare = samples::event_type("user.created");
    directory.create_event_type(OTHER_ORG, bare.clone()).await.unwrap();
    drop(directory);
    world.reopen();
    let read = async |org| {
        world.stores.directory.event_type(org, "user.created".to_owned()).await.unwrap()
    };
    assert_eq!((read(ORG).await, read(OTHER_ORG).await), (Some(full), Some(bare)));
}

async fn an_archived_event_type_comes_back(world: World) {
    let directory = &world.stores.directory;
    let archived = EventType { archived: true, ..samples::event_type("a") };
    directory.create_event_type(ORG, samples::event_type("a")).await.unwrap();
    directory.update_event_type(ORG, archived.clone()).await.unwrap();
    let read = directory.event_type(ORG, "a".to_owned()).await.unwrap();
    assert_eq!(read.map(|found| found.archived), Some(true), "archived or not");
    let back = EventType { description: "back".to_owned(), ..samples::event_type("a") };
    let made = directory.create_event_type(ORG, back).await.unwrap();
    assert_eq!((made.archived, made.description.as_str()), (false, "back"));
    assert_eq!(directory.event_type(ORG, "a".to_owned()).await.unwrap(), Some(made));
}

async fn an_event_type_is_replaced_and_removed(world: World) {
    let directory = &world.stores.directory;
    let missing = Some(StoreError::Missing("event type"));
    let unknown = directory.update_event_type(ORG, samples::event_type("a")).await;
    assert_eq!(unknown.err(), missing);
    directory.create_event_type(ORG, samples::event_type("a")).await.unwrap();
    let replaced = EventType { description: "new".to_owned(), ..samples::event_type("a") };
    let made = directory.update_event_type(ORG, replaced).await.unwrap();
    assert_eq!(made.description, "new");
    assert_eq!(directory.event_type(ORG, "a".to_owned()).await.unwrap(), Some(made));
    directory.delete_event_type(ORG, "a".to_owned()).await.unwrap();
    assert_eq!(directory.event_type(ORG, "a".to_owned()).await.unwrap(), None);
    assert_eq!(directory.delete_event_type(ORG, "a".to_owned()).await.err(), missing);
}

async fn event_types_are_listed_by_name(world: World) {
    let directory = &world.stores.directory;
    for name in ["c", "a", "B", "d", "e"] {
        directory.create_event_type(ORG, samples::event_type(name)).await.unwrap();
    }
    directory.create_event_type(OTHER_ORG, samples::event_type("b")).await.unwrap();
    let archived = EventType { archived: true, ..samples::event_type("c") };
    directory.update_event_type(ORG, archived).await.unwrap();
    let names = async |archived_too, beyond: Option<&str>, limit| -> Vec<String> {
        let beyond = beyond.map(str::to_owned);
        let page = PageOf { beyond, direction: Direction::Ascending, limit };
        let found = directory.event_types(ORG, archived_too, page).await.unwrap();
        found.into_iter().map(|found| found.name).collect()
    };
    assert_eq!(names(false, None, 10).await, ["B", "a", "d", "e"]);
    assert_eq!(names(true, None, 10).await, ["B", "a", "c", "d", "e"]);
    assert_eq!(names(true, Some("a"), 2).await, ["c", "d"]);
    assert_eq!(names(false, Some("a"), 1).await, ["d"]);
    assert_eq!(names(false, Some("e"), 1).await, [""; 0]);
}

async fn the_installation_has_one_name(mut world: World) {
    let name = world.stores.directory.installation();
    assert_ne!(name, [0; 16]);
    world.reopen();
    assert_eq!(world.stores.directory.installation(), name);
}
