//! What `History` promises of a look: when it ends, and where the next one goes on.
//!
//! Never: a case about which rows a filter wants.

use domain::limits::PAGE_PAYLOAD_BYTES_MAX;

use super::super::world::World;
use crate::history::MessageFilter;
use crate::page::{Direction, LOOK_ROWS_MAX, PageOf};

pub(super) async fn payloads_fill_a_page(world: World) {
    let app = world.app(0).await;
    for _ in 0..5 {
        let mut new = world.message(&app);
        new.spec.payload = vec![b'x'; PAGE_PAYLOAD_BYTES_MAX / 3].into();
        world.post(new).await;
    }
    let list = async |beyond, payloads| {
        let page = PageOf { beyond, direction: Direction::Descending, limit: 10 };
        let filter = MessageFilter::default();
        world.stores.history.messages(app.app.key, filter, page, payloads).await.unwrap()
    };
    let first = list(None, true).await;
    assert_eq!(
        (first.rows.len(), first.reached),
        (4, Some(first.rows[3].key)),
        "the fourth fills it"
    );
    let rest = list(first.reached, true).await;
    assert_eq!((rest.rows.len(), rest.reached), (1, None));
    assert_eq!(list(None, false).await.rows.len(), 5, "nothing is as light");
}

pub(super) async fn a_look_that_finds_nothing_ends_and_says_where(world: World) {
    let app = world.app(0).await;
    let rare = async || {
        let mut new = world.message(&app);
        new.spec.event_type = "rare".to_owned();
        world.post(new).await
    };
    let oldest = rare().await;
    world.post_many(&app, LOOK_ROWS_MAX).await;
    let newest = rare().await;
    let filter = MessageFilter { event_types: vec!["rare".to_owned()], ..MessageFilter::default() };
    for (direction, expected) in
        [(Direction::Descending, [newest, oldest]), (Direction::Ascending, [oldest, newest])]
    {
        let (mut found, mut beyond, mut looks) = (Vec::new(), None, 0);
        loop {
            let page = PageOf { beyond, direction, limit: 10 };
            let look = world.stores.history.messages(app.app.key, filter.clone(), page, false);
            let look = look.await.unwrap();
            found.extend(look.rows.iter().map(|message| message.key));
            looks += 1;
            let Some(reached) = look.reached else { break };
            let goes_on = beyond.is_none_or(|before| match direction {
                Direction::Descending => reached < before,
                Direction::Ascending => reached > before,
            });
            assert!(goes_on, "each look begins where the last one ended");
            beyond = Some(reached);
        }
        assert_eq!(found, expected, "each once, {direction:?}");
        assert!(looks > 1, "5,002 rows are more than one look");
    }
}
