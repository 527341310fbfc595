//! The post office over the reference model, on a clock that stands still.
//!
//! Never: a mail server; what it would answer is said by each test.

use std::sync::Mutex;

use domain::endpoint::EndpointSpec;
use domain::ids::{EndpointKey, PublicId};
use resilience::ManualClock;
use store::conformance::samples;
use store::directory::{Directory as _, EndpointChange, NewEndpoint};
use store::ledger::Ledger as _;
use store::memory::MemoryStore;
use store::notices::Notices as _;

use super::*;

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
const ORG: PublicId = PublicId::from_bytes([7; 20]);

/// Answers what it was told to, and keeps what it took.
#[derive(Default)]
struct Fake {
    taken: Mutex<Vec<Letter>>,
    /// Answers still to give; `Ok` after them.
    faults: Mutex<Vec<MailFault>>,
    tries: Mutex<u32>,
}

impl Mailer for Fake {
    fn send(&self, letter: Letter) -> Mailing<'_> {
        *self.tries.lock().unwrap() += 1;
        let fault = self.faults.lock().unwrap().pop();
        Box::pin(async move {
            match fault {
                Some(fault) => Err(fault),
                None => {
                    self.taken.lock().unwrap().push(letter);
                    Ok(())
                }
            }
        })
    }

    fn send_alert(&self, letter: AlertLetter) -> Mailing<'_> {
        panic!("no alert is sent here: {letter:?}")
    }
}

struct Desk {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
    endpoint: EndpointKey,
    fake: Arc<Fake>,
    office: PostOffice,
}

impl Desk {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::new(NOW));
        let store = MemoryStore::new(Arc::clone(&clock) as _);
        store.keep_mails(true);
        let app = store.create_app(ORG, samples::app(None), [1; 12]).await.unwrap().key;
        let contact_email = samples::full_endpoint().contact_email;
        let spec = EndpointSpec { contact_email, ..samples::endpoint() };
        let new = NewEndpoint { app, spec, secret: samples::secret(1), random: [2; 12] };
        let endpoint = store.create_endpoint(new).await.unwrap().key;
        let fake = Arc::new(Fake::default());
        let office = PostOffice::new(
            Stores::of(&store),
            Arc::clone(&clock) as _,
            Arc::clone(&fake) as _,
            Counts::new(),
        );
        Self { clock, store, endpoint, fake, office }
    }

    /// It is suspended, or resumed.
    async fn turn(&self, suspended: bool) {
        let lane = if suspended {
            samples::lane(self.endpoint)
        } else {
            samples::bare_lane(self.endpoint)
        };
        self.store.keep_lanes(vec![lane]).await.unwrap();
    }

    fn answer(&self, faults: &[MailFault]) {
        *self.fake.faults.lock().unwrap() = faults.iter().rev().cloned().collect();
    }

    fn taken(&self) -> Vec<(u64, &'static str)> {
        let taken = std::mem::take(&mut *self.fake.taken.lock().unwrap());
        taken.iter().map(|letter| (letter.number, letter.news.name())).collect()
    }

    async fn kept(&self) -> Vec<u64> {
        self.store.mails(0, 99).await.unwrap().iter().map(|mail| mail.place).collect()
    }

    fn tries(&self) -> u32 {
        std::mem::take(&mut *self.fake.tries.lock().unwrap())
    }

    async fn round(&mut self) -> Timestamp {
        self.office.round().await.unwrap()
    }
}

fn later() -> MailFault {
    MailFault::Later("busy".to_owned())
}

fn down() -> MailFault {
    MailFault::Down("gone".to_owned())
}

#[tokio::test]
async fn letters_go_out_in_order_once() {
    let mut desk = Desk::new().await;
    desk.turn(true).await;
    desk.turn(false).await;
    let kept = desk.kept().await;
    assert_eq!(desk.round().await, Timestamp::MAX);
    assert_eq!(desk.taken(), [(kept[0], "endpoint.suspended"), (kept[1], "endpoint.resumed")]);
    assert_eq!(
        (desk.round().await, desk.taken().len(), desk.kept().await.len()),
        (Timestamp::MAX, 0, 0)
    );
}

#[tokio::test]
async fn one_that_is_not_taken_waits_longer_each_time_and_holds_up_no_other() {
    let mut desk = Desk::new().await;
    desk.turn(true).await;
    desk.turn(false).await;
    let [first, second] = desk.kept().await.try_into().unwrap();
    desk.answer(&[later()]);
    let mut due = desk.round().await;
    assert_eq!(desk.taken(), [(second, "endpoint.resumed")]);
    let mut waits = Vec::new();
    for _ in 0..12 {
        waits.push(due.since(desk.clock.now()));
        assert_eq!((desk.round().await, desk.taken().len()), (due, 0), "not before");
        desk.clock.set(due);
        desk.answer(&[later()]);
        due = desk.round().await;
    }
    assert_eq!(waits[..3], [10, 20, 40].map(Duration::from_secs));
    assert_eq!(waits[11], AGAIN_MAX);
    desk.clock.set(due);
    desk.round().await;
    assert_eq!(desk.taken(), [(first, "endpoint.suspended")], "under the number it had");
}

#[tokio::test]
async fn a_server_that_is_down_is_asked_once_for_all_letters() {
    let mut desk = Desk::new().await;
    desk.turn(true).await;
    desk.turn(false).await;
    desk.answer(&[down(), down(), down()]);
    let due = desk.round().await;
    assert_eq!((due.since(NOW), desk.tries()), (AGAIN, 1));
    desk.round().await;
    assert_eq!(desk.tries(), 0, "and not before its time");
    desk.clock.set(due);
    assert_eq!(desk.round().await.since(due), AGAIN * 2);
    desk.answer(&[]);
    desk.clock.advance(AGAIN * 2);
    desk.round().await;
    assert_eq!((desk.taken().len(), desk.kept().await.len()), (2, 0));
}

#[tokio::test]
async fn one_that_is_refused_or_too_old_is_given_up() {
    let mut desk = Desk::new().await;
    desk.turn(true).await;
    desk.answer(&[MailFault::Refused("no such mailbox".to_owned())]);
    desk.round().await;
    assert_eq!((desk.taken().len(), desk.kept().await.len()), (0, 0));
    desk.turn(false).await;
    desk.clock.advance(MAIL_AGE_MAX);
    desk.tries();
    desk.round().await;
    assert_eq!((desk.tries(), desk.kept().await.len()), (0, 0));
}

#[tokio::test]
async fn it_goes_to_whom_the_endpoint_names_when_it_is_sent() {
    let mut desk = Desk::new().await;
    let contact = |contact_email| EndpointChange {
        spec: Some(EndpointSpec { contact_email, ..samples::endpoint() }),
        ..EndpointChange::default()
    };
    let other = EmailAddress::parse("to", "new@example.com").unwrap();
    for (named, count) in [(Some(other.clone()), 1), (None, 0)] {
        desk.turn(true).await;
        desk.store.change_endpoint(desk.endpoint, contact(named)).await.unwrap();
        desk.round().await;
        let taken = std::mem::take(&mut *desk.fake.taken.lock().unwrap());
        assert!(taken.len() == count && taken.iter().all(|letter| letter.to == other));
        assert_eq!(desk.kept().await, [0; 0]);
        desk.turn(false).await;
        desk.round().await;
        desk.taken();
    }
    let back = contact(Some(other));
    desk.store.change_endpoint(desk.endpoint, back).await.unwrap();
    desk.turn(true).await;
    desk.store.delete_endpoint(desk.endpoint).await.unwrap();
    desk.round().await;
    assert_eq!((desk.taken().len(), desk.kept().await.len()), (0, 0), "there is no endpoint");
}

#[tokio::test(start_paused = true)]
async fn it_is_woken_and_goes_on_by_itself() {
    let desk = Desk::new().await;
    let (wake, fake) = (Arc::new(Notify::new()), Arc::clone(&desk.fake));
    desk.answer(&[down()]);
    let running = tokio::spawn(desk.office.run(Arc::clone(&wake)));
    tokio::task::yield_now().await;
    desk.store.keep_lanes(vec![samples::lane(desk.endpoint)]).await.unwrap();
    wake.notify_one();
    for _ in 0..30 {
        desk.clock.advance(Duration::from_secs(1));
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::task::yield_now().await;
    }
    assert_eq!((*fake.tries.lock().unwrap(), fake.taken.lock().unwrap().len()), (2, 1));
    running.abort();
}
