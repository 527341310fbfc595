//! What people do meanwhile: switch endpoints off, replay, resend, force breakers; and what befalls
//! the store.
//!
//! Never: more than one thing at a time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::delivery::DeliveryState;
use domain::endpoint::Disabled;
use domain::ids::{EndpointKey, MessageKey};
use engine::{ByHand, Engine};
use resilience::{Chance, Forced, Seeded};
use store::dead_letters::DeadLetters;
use store::directory::{Directory, EndpointChange};
use store::history::History;
use store::memory::MemoryStore;
use tokio::time::sleep;

use super::faults::{Lag, SimClock};
use super::oracle::{Known, Oracle};
use super::plan::{one_of, seconds};
use super::receivers::Receivers;

/// What somebody at a desk can reach.
pub struct Desk {
    pub engine: Engine,
    pub store: Arc<MemoryStore>,
    pub oracle: Arc<Mutex<Oracle>>,
    pub receivers: Arc<Receivers>,
    pub lag: Arc<Lag>,
    pub clock: Arc<SimClock>,
    pub steps: bool,
}

/// Does `count` things within `busy`, then leaves everything as it should be.
pub async fn work(desk: Desk, mut chance: Seeded, count: u64, busy: Duration) {
    for _ in 0..count {
        sleep(chance.between(Duration::ZERO, busy / 8)).await;
        let what = chance.below(14);
        desk.oracle.lock().unwrap().note(("does", what));
        match what {
            0 => desk.store.commit_delay(Duration::from_millis(chance.below(300))),
            1 => desk.store.fail_next(u32::try_from(1 + chance.below(6)).unwrap()),
            2 => desk.lag.set(chance.below(300), 0),
            3 => desk.lag.set(chance.below(300), 2 + chance.below(8)),
            4 | 5 => desk.switch_off(&mut chance).await,
            6 if chance.below(3) == 0 => desk.delete(&mut chance).await,
            7 | 8 => desk.force(&mut chance).await,
            9 => desk.replay(&mut chance).await,
            10 => desk.resend(&mut chance).await,
            13 => desk.expunge(&mut chance).await,
            11 if desk.steps => {
                let span = seconds(&mut chance, 2_000);
                desk.clock.step(span, chance.below(2) == 0);
            }
            12 => {
                let now = desk.oracle.lock().unwrap().elapsed();
                *desk.receivers.internal.lock().unwrap() =
                    Some((now, now + seconds(&mut chance, 15)));
            }
            _ => {}
        }
    }
    desk.store.commit_delay(Duration::ZERO);
    desk.lag.set(0, 0);
}

impl Desk {
    fn any(&self, chance: &mut Seeded) -> EndpointKey {
        let keys: Vec<EndpointKey> = self.oracle.lock().unwrap().known.keys().copied().collect();
        one_of(chance, &keys)
    }

    fn known(&self, endpoint: EndpointKey, change: impl FnOnce(&mut Known)) {
        change(self.oracle.lock().unwrap().known.get_mut(&endpoint).expect("known"));
    }

    async fn switch_off(&self, chance: &mut Seeded) {
        let endpoint = self.any(chance);
        self.known(endpoint, |known| known.disturbed = true);
        let set =
            |disabled| EndpointChange { disabled: Some(disabled), ..EndpointChange::default() };
        let off = self.store.change_endpoint(endpoint, set(Some(Disabled::ByOwner))).await;
        if off.is_err() {
            return;
        }
        self.engine.settled().await;
        // A send that was begun before may still be reading its payload.
        sleep(Duration::from_millis(400)).await;
        self.known(endpoint, |known| known.shut = true);
        if chance.below(4) == 0 {
            return;
        }
        sleep(seconds(chance, 20)).await;
        self.known(endpoint, |known| known.shut = false);
        for _ in 0..20 {
            match self.store.change_endpoint(endpoint, set(None)).await {
                Ok(_) | Err(store::StoreError::Missing(_)) => return,
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    }

    async fn delete(&self, chance: &mut Seeded) {
        let endpoint = self.any(chance);
        self.known(endpoint, |known| known.deleted = true);
        if self.store.delete_endpoint(endpoint).await.is_ok() {
            self.engine.settled().await;
            sleep(Duration::from_millis(400)).await;
            self.known(endpoint, |known| known.shut = true);
        }
    }

    async fn force(&self, chance: &mut Seeded) {
        let endpoint = self.any(chance);
        self.known(endpoint, |known| (known.by_hand, known.forced_open) = (true, false));
        let forced = one_of(chance, &[Some(Forced::Open), Some(Forced::Closed), None]);
        let suspends = chance.below(4) == 0;
        let order = if suspends { ByHand::Suspended } else { ByHand::Forced(forced) };
        let forced = forced.filter(|_| !suspends);
        if self.engine.order(endpoint, order).await.is_err() {
            return;
        }
        sleep(Duration::from_millis(400)).await;
        self.known(endpoint, |known| {
            known.by_hand = forced == Some(Forced::Closed);
            known.forced_open = forced == Some(Forced::Open);
            known.hold_until = known.hold_until.filter(|_| forced != Some(Forced::Closed));
        });
        if chance.below(4) > 0 {
            sleep(seconds(chance, 20)).await;
            self.known(endpoint, |known| (known.by_hand, known.forced_open) = (true, false));
            let freed = self.engine.force(endpoint, None).await.is_ok();
            self.known(endpoint, |known| known.by_hand = !freed);
        }
    }

    fn dead_or_all(&self, dead: bool) -> Vec<(MessageKey, EndpointKey)> {
        let all = self.store.all_deliveries().into_iter();
        all.filter(|(_, row)| !dead || matches!(row.state, DeliveryState::Dead(_)))
            .map(|(message, row)| (message, row.endpoint))
            .collect()
    }

    async fn replay(&self, chance: &mut Seeded) {
        for _ in 0..1 + chance.below(4) {
            let dead = self.dead_or_all(true);
            if dead.is_empty() {
                return;
            }
            let (message, endpoint) = one_of(chance, &dead);
            let _answer = self.store.replay(message, endpoint).await;
        }
    }

    async fn resend(&self, chance: &mut Seeded) {
        for _ in 0..1 + chance.below(4) {
            let all = self.dead_or_all(false);
            if all.is_empty() {
                return;
            }
            let (message, endpoint) = one_of(chance, &all);
            if self.engine.in_flight(endpoint, message).await != Ok(false) {
                continue;
            }
            *self.oracle.lock().unwrap().excused.entry((message, endpoint)).or_default() += 1;
            let _answer = self.store.resend(message, endpoint).await;
        }
    }

    async fn expunge(&self, chance: &mut Seeded) {
        for _ in 0..1 + chance.below(4) {
            let all = self.store.all_messages();
            let all: Vec<MessageKey> = all.iter().map(|message| message.key).collect();
            if all.is_empty() {
                return;
            }
            let message = one_of(chance, &all);
            let before = self.oracle.lock().unwrap().expunged.insert(message, None);
            let done = self.store.expunge(message).await.is_ok();
            let mut oracle = self.oracle.lock().unwrap();
            match (done, before) {
                (true, _) => {
                    let at = oracle.elapsed();
                    oracle.expunged.insert(message, Some(at));
                }
                (false, Some(before)) => drop(oracle.expunged.insert(message, before)),
                (false, None) => drop(oracle.expunged.remove(&message)),
            }
        }
    }
}
