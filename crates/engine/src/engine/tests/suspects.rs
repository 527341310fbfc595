//! Deliveries that end the process: when they are convicted, what is counted, and who goes first.
//!
//! Never: a process that really dies; its tasks are dropped and its file is left.

use domain::dead_letter::{DeadLetter, DeadReason};
use store::dead_letters::DeadLetters as _;

use super::rig::Rig;
use super::*;

async fn dead(rig: &Rig, message: MessageKey) -> Option<DeadLetter> {
    rig.store.dead_letter(message, rig.endpoint).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_ends_the_process_late_is_convicted_while_it_is_alone() {
    for after in [0, 3] {
        let mut rig = Rig::new(samples::endpoint(), |_| Script::hang()).await;
        let mut life = rig.start().await;
        let poison = rig.post(&life).await;
        // One that is not suspected, and three alone.
        for crash in 1..=4 {
            rig.pass(Duration::from_secs(after) + Duration::from_millis(200)).await;
            assert_eq!(rig.transport.count(), crash, "it is sent once in each life");
            assert_eq!(dead(&rig, poison).await, None);
            rig.kill(life);
            life = rig.start().await;
        }
        rig.pass(Duration::from_secs(10)).await;
        let letter = dead(&rig, poison).await.expect("given up");
        assert_eq!((letter.reason, letter.sends), (DeadReason::Poisonous, 4), "{after} s");
        assert_eq!(rig.transport.count(), 4, "and not sent again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspect_is_alone_no_more_once_others_are_sent() {
    let mut rig = Rig::new(samples::endpoint(), |_| Script::hang()).await;
    let mut life = rig.start().await;
    let slow = rig.post(&life).await;
    for _ in 0..8 {
        rig.pass(Duration::from_secs(2)).await;
        // Another one that is not done either when the process ends.
        let other = rig.post(&life).await;
        rig.pass(Duration::from_millis(200)).await;
        rig.kill(life);
        rig.store.expunge(other).await.unwrap();
        life = rig.start().await;
    }
    rig.pass(Duration::from_secs(5)).await;
    assert_eq!(dead(&rig, slow).await, None);
}

#[tokio::test(start_paused = true)]
async fn the_least_blamed_suspect_goes_first() {
    let well = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&well);
    let script = move |_: &_| match answers.load(Ordering::SeqCst) {
        true => Script::status(200),
        false => Script::hang(),
    };
    let mut rig = Rig::new(samples::endpoint(), script).await;
    let life = rig.start().await;
    let posted = rig.posts(&life, 3).await;
    rig.pass(Duration::from_secs(1)).await;
    rig.kill(life);
    let endpoint = rig.endpoint;
    let blame = |message, crashes| Suspect { endpoint, message, crashes, sends: crashes + 1 };
    let blames = vec![blame(posted[0], 2), blame(posted[1], 1)];
    rig.store.keep_suspects(blames).await.unwrap();
    rig.sent();
    well.store(true, Ordering::SeqCst);
    let _life = rig.start().await;
    rig.pass(Duration::from_secs(10)).await;
    assert_eq!((rig.sent(), rig.waiting().await), (vec![2, 1, 0], 0));
}
