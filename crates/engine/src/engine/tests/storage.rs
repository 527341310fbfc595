//! What cannot be recorded is not sent: at the start, and after results that were not stored.
//!
//! Never: a store that fails for ever; each test lets it go on.

use super::rig::Rig;
use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_at_the_start_while_nothing_can_be_stored() {
    let sends = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&sends);
    let script = move |_: &_| match answers.load(Ordering::SeqCst) {
        true => Script::status(200),
        false => Script::hang(),
    };
    let mut rig = Rig::new(samples::endpoint(), script).await;
    let life = rig.start().await;
    rig.posts(&life, 5).await;
    rig.kill(life);
    // As after an orderly end: nobody is suspected.
    std::fs::write(rig.inflight_file(), []).unwrap();
    rig.sent();
    sends.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        rig.store.fail_next(u32::MAX);
        let life = rig.start().await;
        rig.pass(SECOND * 10).await;
        assert_eq!(rig.sent(), [0; 0], "nobody could write down that it was sent");
        rig.kill(life);
    }
    rig.store.fail_next(u32::MAX);
    let _life = rig.start().await;
    rig.pass(SECOND * 3).await;
    rig.store.fail_next(0);
    rig.pass(SECOND * 3).await;
    let mut sent = rig.sent();
    sent.sort_unstable();
    assert_eq!((sent, rig.waiting().await), (vec![0, 1, 2, 3, 4], 0), "it goes on by itself");
}

#[tokio::test(start_paused = true)]
async fn nothing_more_is_sent_once_results_cannot_be_stored() {
    let rig = Rig::new(samples::endpoint(), |_| Script::status(200).after(SECOND)).await;
    let life = rig.start().await;
    rig.posts(&life, 30).await;
    rig.pass(SECOND / 2).await;
    let begun = rig.transport.count();
    rig.store.fail_next(u32::MAX);
    rig.pass(SECOND * 60).await;
    let sent = rig.transport.count();
    // Those that began in the moment in which the first results came in.
    let window = 2 * begun;
    assert!((begun..=begun + window).contains(&sent), "{sent} after {begun}");
    rig.store.fail_next(0);
    rig.pass(SECOND * 60).await;
    assert_eq!((rig.transport.count(), rig.waiting().await), (30, 0), "each was sent once");
}

#[tokio::test(start_paused = true)]
async fn suspects_are_remembered_until_they_can_be_stored() {
    let mut rig = Rig::new(samples::endpoint(), |_| Script::hang()).await;
    let life = rig.start().await;
    let message = rig.post(&life).await;
    rig.pass(SECOND).await;
    rig.kill(life);
    rig.sent();
    for _ in 0..2 {
        // It starts, and is read from; nothing is sent, and an orderly end forgets nobody.
        rig.store.fail_next(u32::MAX);
        let life = rig.start().await;
        rig.pass(SECOND * 3).await;
        assert_eq!(rig.sent(), [0; 0]);
        assert_eq!(life.engine.in_flight(rig.endpoint, message).await, Ok(false));
        life.end().await;
        rig.store = rig.store.crash_image();
    }
    let _life = rig.start().await;
    rig.pass(SECOND).await;
    let suspect = Suspect { endpoint: rig.endpoint, message, crashes: 0, sends: 1 };
    assert_eq!(rig.store.suspects().await.unwrap(), [suspect]);
    assert_eq!(rig.transport.count(), 1);
}
