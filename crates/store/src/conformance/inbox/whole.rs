//! A message is kept as it was posted, whichever of its fields are there.
//!
//! Never: a case of what it makes.

use domain::ids::{PublicId, key_time};
use domain::message::{Message, MessageSpec};

use crate::conformance::samples;
use crate::conformance::world::World;
use crate::inbox::{Accepted, NewMessage};

pub(super) async fn a_message_is_kept_whole(mut world: World) {
    let app = world.app(1).await;
    let edited_from = Some(PublicId::from_bytes([9; 20]));
    let new = NewMessage { spec: samples::full_message(), edited_from, ..world.message(&app) };
    let accepted = world.stores.inbox.accept(new.clone()).await.unwrap();
    let Accepted::New { key, id, accepted_at } = accepted else { panic!("{accepted:?}") };
    assert_eq!(id, PublicId::new(key.0, new.random));
    assert_eq!(accepted_at, world.now());
    assert_eq!(key_time(key.0), world.now(), "the key carries the time");
    let (app, spec) = (app.app.key, new.spec);
    let kept = Message { key, id, app, spec, payload_gone: false, accepted_at, edited_from };
    assert_eq!(world.read(app, key).await, kept);
    world.reopen();
    assert_eq!(world.read(app, key).await, kept);
}

pub(super) async fn each_field_is_kept_without_the_others(world: World) {
    let app = world.app(1).await;
    let (plain, full) = (samples::message(), samples::full_message());
    let specs = [
        MessageSpec { event_id: full.event_id, ..plain.clone() },
        MessageSpec { channels: full.channels, ..plain.clone() },
        MessageSpec { tags: full.tags, ..plain.clone() },
        MessageSpec { content_type: full.content_type, ..plain.clone() },
        MessageSpec { retention_hours: full.retention_hours, ..plain.clone() },
        MessageSpec { deliver_at: full.deliver_at, ..plain.clone() },
        MessageSpec { trace: full.trace, ..plain },
    ];
    for spec in specs {
        let message = world.post(NewMessage { spec: spec.clone(), ..world.message(&app) }).await;
        assert_eq!(world.read(app.app.key, message).await.spec, spec);
        let envelope = world.stores.queue.envelope(message).await.unwrap().unwrap();
        assert_eq!((&envelope.content_type, &envelope.trace), (&spec.content_type, &spec.trace));
    }
}
