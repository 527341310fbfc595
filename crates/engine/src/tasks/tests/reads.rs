//! How many rows a task reads for what it puts back.
//!
//! Never: count anything but letters of lists.

use std::sync::atomic::{AtomicUsize, Ordering};

use domain::dead_letter::DeadLetter;
use domain::edit::Edit;
use store::Reply;
use store::dead_letters::{DeadFilter, DeadLetters, Edited, Replayed};
use store::inbox::Accepted;
use store::page::{Looked, PageOf};
use store::recall::Once;

use super::*;

/// The dead letters of a store, and how many of them were listed.
struct Counted {
    inner: Arc<dyn DeadLetters>,
    read: Arc<AtomicUsize>,
}

impl DeadLetters for Counted {
    fn list(
        &self,
        org: PublicId,
        filter: DeadFilter,
        page: PageOf<u64>,
    ) -> Reply<'_, Looked<DeadLetter, u64>> {
        let listed = self.inner.list(org, filter, page);
        Box::pin(async move {
            let found = listed.await?;
            self.read.fetch_add(found.rows.len(), Ordering::SeqCst);
            Ok(found)
        })
    }

    fn count(&self, org: PublicId, filter: DeadFilter) -> Reply<'_, u64> {
        self.inner.count(org, filter)
    }

    fn dead_letter(
        &self,
        message: MessageKey,
        endpoint: EndpointKey,
    ) -> Reply<'_, Option<DeadLetter>> {
        self.inner.dead_letter(message, endpoint)
    }

    fn replay_once(
        &self,
        letter: (MessageKey, EndpointKey),
        once: Once<Replayed>,
    ) -> Reply<'static, Replayed> {
        self.inner.replay_once(letter, once)
    }

    fn replay_edited_once(
        &self,
        letter: (MessageKey, EndpointKey),
        edited: Edited,
        once: Once<Option<Accepted>>,
    ) -> Reply<'static, Option<Accepted>> {
        self.inner.replay_edited_once(letter, edited, once)
    }

    fn edit(&self, message: MessageKey) -> Reply<'_, Option<Edit>> {
        self.inner.edit(message)
    }

    fn delete(&self, message: MessageKey, endpoint: EndpointKey) -> Reply<'static, bool> {
        self.inner.delete(message, endpoint)
    }
}

/// A million letters were read 250 for each few that went, and live traffic waited for that.
#[tokio::test]
async fn letters_are_read_about_as_often_as_they_go_back() {
    let mut world = World::with(1).await;
    world.bury(400, 0).await;
    let read = Arc::new(AtomicUsize::new(0));
    let inner = Arc::clone(&world.worker.stores.dead_letters);
    world.worker.stores.dead_letters = Arc::new(Counted { inner, read: Arc::clone(&read) });
    let id = world.start(None, letters()).await;
    let sent = world.finish(id).await;
    assert_eq!((sent.len(), world.task(id).await.tally.done), (400, 400));
    let read = read.load(Ordering::SeqCst);
    // Ten go back at a time, and sixteen are read for them.
    assert!((400..=16 * 42).contains(&read), "{read}");
}
