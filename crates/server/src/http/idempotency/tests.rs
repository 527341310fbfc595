//! Work under a key: once, again, and after a restart.
//!
//! Never: a server.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use domain::ids::AppKey;
use resilience::ManualClock;
use store::memory::MemoryStore;

use super::*;

const KEY: IngestKey = IngestKey { scope: [1; 16], body: [2; 16] };
const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

/// A process, what it stores, and the number of works done.
struct Rig {
    answers: Answers,
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
    turns: Arc<AtomicU32>,
}

impl Rig {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(NOW));
        let store = MemoryStore::new(Arc::<ManualClock>::clone(&clock));
        Self { answers: Answers::default(), clock, store, turns: Arc::default() }
    }

    /// Loses what was in memory.
    fn restarted(self) -> Self {
        let store = self.store.crash_image();
        Self { answers: Answers::default(), store, ..self }
    }

    fn asked(&self, key: IngestKey) -> Asked {
        let recall = Arc::<MemoryStore>::clone(&self.store);
        Asked { key, now: resilience::Clock::now(&*self.clock), recall, read: Box::new(Some) }
    }

    /// Asks under a key; each work has the number of its turn as its answer.
    async fn ask(&self, key: IngestKey, stands: bool) -> Result<String, Problem> {
        let turns = Arc::clone(&self.turns);
        let work = async move |_| {
            let turn = turns.fetch_add(1, Ordering::SeqCst);
            // Lets the others in.
            tokio::task::yield_now().await;
            Ok(Done::json(StatusCode::CREATED, &turn, Made::Application(AppKey(1))))
        };
        let answer = self.answers.once(self.asked(key), async move |_| Ok(stands), work).await?;
        Ok(String::from_utf8_lossy(&answer.body).into_owned())
    }
}

#[tokio::test]
async fn work_is_done_once_for_a_key() {
    let rig = Rig::new();
    let (first, second) = tokio::join!(rig.ask(KEY, true), rig.ask(KEY, true));
    assert_eq!((first.unwrap(), second.unwrap()), ("0".to_owned(), "0".to_owned()));
    let other = IngestKey { body: [3; 16], ..KEY };
    assert_eq!(rig.ask(other, true).await.unwrap_err().status().as_u16(), 422);
    let elsewhere = IngestKey { scope: [3; 16], ..KEY };
    assert_eq!(rig.ask(elsewhere, true).await.unwrap(), "1");
    rig.clock.advance(IDEMPOTENCY_WINDOW);
    assert_eq!(rig.ask(other, true).await.unwrap(), "2");
}

#[tokio::test]
async fn what_is_gone_is_made_anew() {
    let rig = Rig::new();
    assert_eq!(rig.ask(KEY, true).await.unwrap(), "0");
    assert_eq!(rig.ask(KEY, false).await.unwrap(), "1");
    let rig = rig.restarted();
    assert_eq!(rig.ask(KEY, true).await.unwrap(), "1");
    assert_eq!(rig.ask(KEY, false).await.unwrap(), "2");
    assert_eq!(rig.ask(KEY, true).await.unwrap(), "2");
}

#[tokio::test]
async fn what_failed_is_not_remembered() {
    let rig = Rig::new();
    let fails = async |_| Err(Problem::overloaded());
    assert!(rig.answers.once(rig.asked(KEY), async |_| Ok(true), fails).await.is_err());
    assert_eq!(rig.ask(KEY, true).await.unwrap(), "0");
}

#[tokio::test]
async fn an_answer_survives_a_restart_until_its_time_is_over() {
    let rig = Rig::new();
    assert_eq!(rig.ask(KEY, true).await.unwrap(), "0");
    let rig = rig.restarted();
    assert_eq!(rig.ask(KEY, true).await.unwrap(), "0");
    let other = IngestKey { body: [3; 16], ..KEY };
    assert_eq!(rig.ask(other, true).await.unwrap_err().status().as_u16(), 422);
    rig.clock.advance(IDEMPOTENCY_WINDOW - Duration::from_secs(1));
    assert_eq!(rig.ask(KEY, true).await.unwrap(), "0");
}

#[tokio::test]
async fn what_is_stored_may_be_less_than_the_answer() {
    let rig = Rig::new();
    let turns = Arc::new(AtomicU32::new(0));
    let ask = async |read: Read| {
        let turns = Arc::clone(&turns);
        let work = async move |_| {
            let turn = turns.fetch_add(1, Ordering::SeqCst);
            let said = format!("secret {turn}");
            Ok(Done::json(StatusCode::OK, &said, Made::Nothing).kept_as(&turn))
        };
        let asked = Asked { read, ..rig.asked(KEY) };
        let answer = rig.answers.once(asked, async |_| Ok(true), work).await.unwrap();
        String::from_utf8_lossy(&answer.body).into_owned()
    };
    let read = || -> Read {
        Box::new(|kept| Some(format!("\"secret {}\"", String::from_utf8_lossy(&kept)).into()))
    };
    assert_eq!(ask(read()).await, "\"secret 0\"");
    assert_eq!(rig.store.recall(KEY.scope).await.unwrap().unwrap().told.body, "0");
    assert_eq!(ask(read()).await, "\"secret 0\"", "made again of what is stored");
    assert_eq!(ask(Box::new(|_| None)).await, "\"secret 1\"", "what it told of is gone");
}

#[tokio::test]
async fn a_key_in_use_is_never_let_go_and_too_many_are_refused() {
    let rig = Rig::new();
    let scope = |at: usize| {
        let mut scope = [0; 16];
        scope[..8].copy_from_slice(&at.to_le_bytes());
        scope
    };
    let mut turns: Vec<_> = (0..KEYS_AT_WORK_MAX)
        .map(|at| rig.answers.turn(scope(at)).unwrap_or_else(|_| panic!("room for {at}")))
        .collect();
    assert_eq!(rig.ask(KEY, true).await.unwrap_err().status().as_u16(), 503);
    let equal = rig.answers.turn(scope(0)).unwrap_or_else(|_| panic!("it waits"));
    assert!(Arc::ptr_eq(&equal.slot, &turns[0].slot));
    turns.swap_remove(0);
    assert_eq!(rig.ask(KEY, true).await.unwrap_err().status().as_u16(), 503, "one waits yet");
    drop(equal);
    assert_eq!(rig.ask(KEY, true).await.unwrap(), "0");
}

#[tokio::test]
async fn an_answer_that_went_with_its_effect_is_not_stored_again() {
    let rig = Rig::new();
    let store = Arc::clone(&rig.store);
    let work = async move |ticket: Ticket| {
        let done = || Done::empty(StatusCode::NO_CONTENT);
        let once = ticket.tells(move |(): &()| Some(done()));
        store::revocations::Revocations::expire_once(&*store, Vec::new(), once).await?;
        // Were it stored again, it would be refused.
        store.fail_next(1);
        Ok(done())
    };
    let answer = rig.answers.once(rig.asked(KEY), async |_| Ok(true), work).await.unwrap();
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    let spent = rig.store.keep(KEY, Done::empty(StatusCode::OK).told()).await;
    assert!(spent.is_err(), "nothing was written in between");
    let kept = rig.store.recall(KEY.scope).await.unwrap().unwrap();
    assert_eq!((kept.told.status, kept.at), (204, NOW));
}

#[tokio::test]
async fn work_that_was_done_is_told_though_its_answer_cannot_be_stored() {
    let rig = Rig::new();
    rig.store.fail_next(1);
    let (first, equal) = tokio::join!(rig.ask(KEY, true), rig.ask(KEY, true));
    assert_eq!((first.unwrap(), equal.unwrap()), ("0".to_owned(), "0".to_owned()));
    assert_eq!(rig.ask(KEY, true).await.unwrap(), "1", "and not remembered");
}
