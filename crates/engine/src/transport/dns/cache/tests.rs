//! The memory on a clock that stands still, over a source that counts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::time::advance;

use super::*;

/// Answers from a table once it is let go, and counts how often it was asked.
#[derive(Clone, Default)]
struct Counting(Arc<CountingInner>);

#[derive(Default)]
struct CountingInner {
    asked: AtomicUsize,
    let_go: Notify,
    held: bool,
    answers: Mutex<HashMap<String, Result<Found, ResolveError>>>,
}

impl Counting {
    fn held() -> Self {
        Self(Arc::new(CountingInner { held: true, ..CountingInner::default() }))
    }

    fn set(&self, name: &str, ttl_secs: u64) {
        let found = Found { addresses: address().to_vec(), ttl: Duration::from_secs(ttl_secs) };
        self.0.answers.lock().unwrap().insert(name.to_owned(), Ok(found));
    }

    fn fail(&self, name: &str, error: ResolveError) {
        self.0.answers.lock().unwrap().insert(name.to_owned(), Err(error));
    }

    fn asked(&self) -> usize {
        self.0.asked.load(Ordering::SeqCst)
    }
}

impl Source for Counting {
    fn lookup(&self, name: String) -> Lookup {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            inner.asked.fetch_add(1, Ordering::SeqCst);
            if inner.held {
                inner.let_go.notified().await;
            }
            inner.answers.lock().unwrap()[&name].clone()
        })
    }
}

fn address() -> [IpAddr; 1] {
    ["192.0.2.1".parse().unwrap()]
}

fn cached(source: &Counting) -> CachedResolver<Counting> {
    CachedResolver::new(source.clone())
}

async fn ask(resolver: &CachedResolver<Counting>, name: &str) -> Answer {
    resolver.resolve(name.to_owned()).await
}

#[tokio::test(start_paused = true)]
async fn an_answer_holds_for_its_ttl_between_one_second_and_one_minute() {
    for (ttl_secs, holds_secs) in [(0, 1), (1, 1), (30, 30), (60, 60), (86_400, 60)] {
        let source = Counting::default();
        source.set("a", ttl_secs);
        let resolver = cached(&source);
        for _ in 0..3 {
            assert_eq!(ask(&resolver, "a").await, Ok(address().to_vec()));
        }
        advance(Duration::from_millis(holds_secs * 1_000 - 1)).await;
        assert!(ask(&resolver, "a").await.is_ok());
        assert_eq!(source.asked(), 1, "{ttl_secs}");
        advance(Duration::from_millis(1)).await;
        assert!(ask(&resolver, "a").await.is_ok());
        assert_eq!(source.asked(), 2, "{ttl_secs}");
    }
}

#[tokio::test(start_paused = true)]
async fn hc_09_a_missing_name_is_asked_for_again_after_a_second_and_a_fault_of_ours_at_once() {
    let source = Counting::default();
    source.fail("missing", ResolveError::Unresolved("no".to_owned()));
    source.fail("broken", ResolveError::Broken("no".to_owned()));
    let resolver = cached(&source);
    assert!(ask(&resolver, "missing").await.is_err());
    assert!(ask(&resolver, "missing").await.is_err());
    assert_eq!(source.asked(), 1);
    source.set("missing", 60);
    advance(DNS_TTL_MIN).await;
    assert!(ask(&resolver, "missing").await.is_ok());
    assert_eq!(source.asked(), 2);
    assert!(ask(&resolver, "broken").await.is_err());
    source.set("broken", 60);
    assert!(ask(&resolver, "broken").await.is_ok());
    assert_eq!(source.asked(), 4);
}

#[tokio::test(start_paused = true)]
async fn many_who_wait_for_one_name_ask_once() {
    let source = Counting::held();
    source.set("a", 60);
    let resolver = cached(&source);
    let waiting: Vec<_> =
        (0..100).map(|_| tokio::spawn(resolver.resolve("a".to_owned()))).collect();
    while source.asked() == 0 {
        tokio::task::yield_now().await;
    }
    source.0.let_go.notify_one();
    for one in waiting {
        assert_eq!(one.await.unwrap(), Ok(address().to_vec()));
    }
    assert_eq!(source.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_one_who_asked_may_leave_and_if_all_leave_the_next_asks_anew() {
    let source = Counting::held();
    source.set("a", 60);
    let resolver = cached(&source);
    let first = tokio::spawn(resolver.resolve("a".to_owned()));
    let second = tokio::spawn(resolver.resolve("a".to_owned()));
    while source.asked() == 0 {
        tokio::task::yield_now().await;
    }
    first.abort();
    assert!(first.await.is_err());
    source.0.let_go.notify_one();
    assert!(second.await.unwrap().is_ok());
    assert_eq!(source.asked(), 1);

    advance(DNS_TTL_MAX).await;
    let third = tokio::spawn(resolver.resolve("a".to_owned()));
    while source.asked() == 1 {
        tokio::task::yield_now().await;
    }
    third.abort();
    assert!(third.await.is_err());
    let fourth = tokio::spawn(resolver.resolve("a".to_owned()));
    while source.asked() == 2 {
        tokio::task::yield_now().await;
    }
    source.0.let_go.notify_one();
    assert!(fourth.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_memory_is_bounded() {
    let source = Counting::default();
    let resolver = cached(&source);
    for n in 0..NAMES_MAX + 10 {
        let name = format!("host-{n}");
        source.set(&name, 60);
        assert!(ask(&resolver, &name).await.is_ok());
        assert!(resolver.0.lock().len() <= NAMES_MAX);
    }
}
