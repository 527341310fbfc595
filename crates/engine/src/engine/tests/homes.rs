//! Endpoints that come to a node and go from it, and a lease that is not renewed.
//!
//! Never: real time; both clocks and the one of the lease move when a test says so.

use std::sync::Mutex;

use domain::nodes::{Partition, Partitions};
use store::ledger::LaneState;
use store::nodes::{Edit, Nodes, Order, Share};

use super::rig::Rig;
use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Other nodes, as far as this one sees of them.
struct Others {
    share: Arc<Share>,
    released: Mutex<Partitions>,
    orders: Mutex<Vec<Order>>,
}

impl Nodes for Others {
    fn share(&self) -> Arc<Share> {
        Arc::clone(&self.share)
    }

    fn lane_states_of(&self, _: Vec<EndpointKey>) -> Reply<'_, Vec<LaneState>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn release(&self, partitions: Partitions) -> Reply<'static, ()> {
        let mut released = self.released.lock().unwrap();
        *released = released.and(partitions);
        Box::pin(async { Ok(()) })
    }

    fn order(&self, _: EndpointKey, order: Order) -> Reply<'static, ()> {
        self.orders.lock().unwrap().push(order);
        Box::pin(async { Ok(()) })
    }

    fn edit(&self) -> Reply<'_, Edit> {
        Box::pin(async { Ok(Box::new(()) as Edit) })
    }
}

/// A node whose lease was renewed now, with nothing of its own.
async fn node(
    script: impl Fn(&crate::transport::Outbound) -> Script + Send + Sync + 'static,
) -> (Rig, Arc<Others>) {
    let mut rig = Rig::new(samples::endpoint(), script).await;
    let share = Share::leased(Arc::clone(&rig.clock) as _);
    share.renewed(NOW);
    let (released, orders) = (Mutex::default(), Mutex::default());
    let others = Arc::new(Others { share, released, orders });
    rig.nodes = Some(Arc::clone(&others) as _);
    (rig, others)
}

impl Rig {
    fn acquire(&self, others: &Others) {
        let home = self.home();
        self.commits.lock().unwrap().as_ref().unwrap().acquired(home);
        others.share.add(home);
    }

    fn shed(&self, others: &Others) {
        others.share.take_out(self.home());
        self.commits.lock().unwrap().as_ref().unwrap().shed(self.home());
    }

    fn home(&self) -> Partitions {
        Partitions::from_iter([Partition::of(self.endpoint)])
    }

    /// Lets time pass while the lease is renewed.
    async fn live(&self, others: &Others, span: Duration) {
        for _ in 0..span.as_millis() / 100 {
            others.share.renewed(others.share.renewal());
            self.pass(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_node_serves_is_not_sent_until_it_comes() {
    let (rig, others) = node(|_| Script::status(200)).await;
    let life = rig.start().await;
    rig.live(&others, SECOND).await;
    rig.posts(&life, 3).await;
    rig.live(&others, SECOND * 3).await;
    assert_eq!(rig.sent(), [0; 0]);
    rig.acquire(&others);
    rig.live(&others, SECOND / 2).await;
    let mut sent = rig.sent();
    sent.sort_unstable();
    assert_eq!((sent, rig.waiting().await), (vec![0, 1, 2], 0));
    rig.post(&life).await;
    rig.live(&others, SECOND / 2).await;
    assert_eq!((rig.sent(), life.engine.lane_repairs()), (vec![3], 0));
}

#[tokio::test(start_paused = true)]
async fn what_came_while_a_process_stood_still_was_not_missed() {
    let rig = Rig::new(samples::endpoint(), |_| Script::status(200)).await;
    let life = rig.start().await;
    rig.pass(SECOND / 2).await;
    // Another node's commit, of which this one is not told before it goes on.
    rig.is_deaf.store(true, Ordering::SeqCst);
    rig.post(&life).await;
    rig.clock.advance(SECOND * 5);
    rig.pass(SECOND * 2).await;
    assert_eq!((rig.sent(), life.engine.lane_repairs()), (vec![0], 0));
}

#[tokio::test(start_paused = true)]
async fn what_goes_is_released_once_its_results_are_recorded() {
    let (rig, others) = node(|_| Script::status(200).after(SECOND)).await;
    let life = rig.start().await;
    rig.acquire(&others);
    rig.live(&others, SECOND / 2).await;
    rig.posts(&life, 6).await;
    rig.live(&others, SECOND / 2).await;
    let begun = rig.sent().len();
    assert_eq!(begun, 4, "the window");
    rig.shed(&others);
    rig.live(&others, SECOND / 5).await;
    assert!(others.released.lock().unwrap().is_empty(), "it is in flight");
    rig.live(&others, SECOND).await;
    assert_eq!(*others.released.lock().unwrap(), rig.home());
    assert_eq!((rig.sent(), rig.waiting().await), (Vec::new(), 2), "nothing more was begun");
    rig.acquire(&others);
    rig.live(&others, SECOND * 2).await;
    assert_eq!((rig.sent().len(), rig.waiting().await), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_send_that_takes_too_long_is_broken_off_and_made_by_the_next_owner() {
    let (rig, others) = node(|_| Script::hang()).await;
    let life = rig.start().await;
    rig.acquire(&others);
    rig.live(&others, SECOND / 2).await;
    let message = rig.post(&life).await;
    rig.live(&others, SECOND / 2).await;
    assert_eq!(rig.sent(), [0]);
    rig.shed(&others);
    rig.live(&others, SECOND * 19 / 10).await;
    assert!(others.released.lock().unwrap().is_empty());
    rig.live(&others, SECOND * 3 / 10).await;
    assert_eq!(*others.released.lock().unwrap(), rig.home());
    let attempts = rig.store.attempts_of(
        message,
        AttemptFilter::default(),
        PageOf { beyond: None, direction: Direction::Ascending, limit: PAGE_ROWS_MAX },
    );
    assert!(attempts.await.unwrap().rows.is_empty(), "nobody is blamed");
    assert_eq!(rig.waiting().await, 1);
    // Orders for what has gone are passed on.
    let forced = life.engine.force(rig.endpoint, Some(Forced::Open));
    let _late = tokio::time::timeout(SECOND * 2, forced).await;
    assert_eq!(*others.orders.lock().unwrap(), [Order::Forced(Some(Forced::Open))]);
}

#[tokio::test(start_paused = true)]
async fn du_05_a_node_that_is_not_heard_begins_nothing_and_breaks_off_what_is_out() {
    let hangs = Arc::new(AtomicBool::new(true));
    let answers = Arc::clone(&hangs);
    let (rig, others) = node(move |_| match answers.load(Ordering::SeqCst) {
        true => Script::hang(),
        false => Script::status(200),
    })
    .await;
    let life = rig.start().await;
    rig.acquire(&others);
    rig.live(&others, SECOND / 2).await;
    rig.post(&life).await;
    rig.pass(SECOND).await;
    assert_eq!(rig.sent(), [0]);
    rig.pass(SECOND * 3).await;
    rig.post(&life).await;
    rig.pass(SECOND).await;
    assert_eq!(rig.sent(), [0; 0], "nothing is begun after 4 s");
    hangs.store(false, Ordering::SeqCst);
    rig.pass(SECOND * 3).await;
    assert_eq!(rig.sent(), [0; 0]);
    // The database hears it again, and nobody had taken over.
    rig.live(&others, SECOND).await;
    let mut sent = rig.sent();
    sent.sort_unstable();
    assert_eq!((sent, rig.waiting().await), (vec![0, 1], 0));
}
