//! The table of connections: how many there may be, what each is doing, and since when.
//!
//! In: marks that each connection makes of itself. Out: who has to leave: whose head takes too
//! long, who idles too long, and, when there is no room for another, who has idled longest. One
//! sweep a second looks at all of them; a request costs a few stores and no timer.
//! Never: end a request that is in progress.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use resilience::{Clock, Timestamp};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Bytes of the head of a request.
pub(super) const HEAD_BYTES_MAX: usize = 64 << 10;
/// A connection without a request is closed after this.
const IDLE_MAX: Duration = Duration::from_secs(75);
/// The head of a request must be complete so long after its first byte.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// When nobody idles, an incomplete head makes room if its first byte is older than this.
const HEAD_TIME_CROWDED: Duration = Duration::from_secs(1);
/// The table is looked through this often.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// While there is no room, somebody who has become idle since is looked for this often.
const CROWDED_LOOK: Duration = Duration::from_millis(50);

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Nothing: no request, or none yet.
    Idle,
    /// The head of a request has begun to arrive.
    Head,
    /// A request is in progress.
    Busy,
}

/// All connections.
pub(super) struct Table {
    clock: Arc<dyn Clock>,
    room: Arc<Semaphore>,
    /// By number, which grows.
    seats: Mutex<(u64, BTreeMap<u64, Arc<Marks>>)>,
}

/// What one connection says of itself.
pub(super) struct Marks {
    clock: Arc<dyn Clock>,
    /// Microseconds since when, and the phase in the last two bits.
    state: AtomicU64,
    told: AtomicBool,
    leave: Notify,
}

/// A place in the table, given back when dropped.
pub(super) struct Seat {
    table: Arc<Table>,
    number: u64,
    marks: Arc<Marks>,
    _permit: OwnedSemaphorePermit,
}

impl Table {
    /// A table for so many.
    pub(super) fn new(connections_max: usize, clock: Arc<dyn Clock>) -> Arc<Self> {
        let room = Arc::new(Semaphore::new(connections_max.clamp(1, Semaphore::MAX_PERMITS)));
        Arc::new(Self { clock, room, seats: Mutex::default() })
    }

    /// A place for one more; when there is none, whoever has idled longest is told to leave.
    pub(super) async fn seat(self: &Arc<Self>) -> Seat {
        loop {
            if let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() {
                return self.seated(permit);
            }
            self.make_room();
            let freed = Arc::clone(&self.room).acquire_owned();
            if let Ok(Ok(permit)) = tokio::time::timeout(CROWDED_LOOK, freed).await {
                return self.seated(permit);
            }
        }
    }

    /// Looks through the table again and again.
    pub(super) async fn keep_swept(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(SWEEP_EVERY);
        loop {
            ticks.tick().await;
            self.sweep();
        }
    }

    fn seated(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Seat {
        let marks = Arc::new(Marks::new(Arc::clone(&self.clock)));
        let mut seats = self.seats();
        seats.0 += 1;
        let number = seats.0;
        seats.1.insert(number, Arc::clone(&marks));
        drop(seats);
        Seat { table: Arc::clone(self), number, marks, _permit: permit }
    }

    fn seats(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Arc<Marks>>)> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everybody to leave whose time is up.
    fn sweep(&self) {
        let now = self.clock.now();
        for marks in self.seats().1.values() {
            let (phase, since) = marks.seen();
            let most = match phase {
                Phase::Idle => IDLE_MAX,
                Phase::Head => HEAD_TIME_MAX,
                Phase::Busy => continue,
            };
            if now.since(since) >= most {
                marks.tell_to_leave();
            }
        }
    }

    /// Tells one to leave: who has idled longest, else whose head has been arriving longest.
    fn make_room(&self) {
        let now = self.clock.now();
        let seats = self.seats();
        let candidates = seats.1.values().filter_map(|marks| {
            let (phase, since) = marks.seen();
            let may_go = match phase {
                Phase::Idle => true,
                Phase::Head => now.since(since) >= HEAD_TIME_CROWDED,
                Phase::Busy => false,
            };
            (may_go && !marks.told.load(Ordering::Relaxed)).then_some(((phase, since), marks))
        });
        if let Some((_, marks)) = candidates.min_by_key(|(rank, _)| *rank) {
            marks.tell_to_leave();
        }
    }
}

impl Marks {
    fn new(clock: Arc<dyn Clock>) -> Self {
        let (told, leave) = (AtomicBool::new(false), Notify::new());
        let marks = Self { clock, state: AtomicU64::new(0), told, leave };
        marks.set(Phase::Idle);
        marks
    }

    /// Bytes came in.
    pub(super) fn read(&self) {
        if self.seen().0 == Phase::Idle {
            self.set(Phase::Head);
        }
    }

    /// Bytes went out: one whose answer is still being taken does not idle.
    pub(super) fn written(&self) {
        if self.seen().0 == Phase::Idle {
            self.set(Phase::Idle);
        }
    }

    /// A request is in progress.
    pub(super) fn begin(&self) {
        self.set(Phase::Busy);
    }

    /// Its answer is complete.
    pub(super) fn end(&self) {
        self.set(Phase::Idle);
    }

    /// What it is doing, and since when.
    pub(super) fn seen(&self) -> (Phase, Timestamp) {
        let state = self.state.load(Ordering::Relaxed);
        let phase = match state & 3 {
            0 => Phase::Idle,
            1 => Phase::Head,
            _ => Phase::Busy,
        };
        (phase, Timestamp::from_micros((state >> 2).cast_signed()))
    }

    fn set(&self, phase: Phase) {
        let now = self.clock.now().as_micros().max(0).cast_unsigned();
        let phase = match phase {
            Phase::Idle => 0,
            Phase::Head => 1,
            Phase::Busy => 2,
        };
        self.state.store(now << 2 | phase, Ordering::Relaxed);
    }

    fn tell_to_leave(&self) {
        self.told.store(true, Ordering::Relaxed);
        self.leave.notify_one();
    }
}

impl Seat {
    /// What the connection says of itself.
    pub(super) const fn marks(&self) -> &Arc<Marks> {
        &self.marks
    }

    /// Waits until it has to leave; what it was doing then.
    pub(super) async fn told_to_leave(&self) -> Phase {
        self.marks.leave.notified().await;
        let (phase, since) = self.marks.seen();
        // A head that began only after it was told is heard out.
        let is_new = self.table.clock.now().since(since) < HEAD_TIME_CROWDED;
        if phase == Phase::Head && is_new { Phase::Busy } else { phase }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.table.seats().1.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use resilience::ManualClock;

    use super::*;

    fn table(most: usize) -> (Arc<Table>, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(Timestamp::from_secs(1_000)));
        (Table::new(most, Arc::clone(&clock) as _), clock)
    }

    fn has_to_leave(seat: &Seat) -> Option<Phase> {
        seat.told_to_leave().now_or_never()
    }

    #[tokio::test]
    async fn a_head_has_ten_seconds_an_idle_connection_75_and_a_request_no_limit() {
        let (table, clock) = table(3);
        let (idle, head, busy) = (table.seat().await, table.seat().await, table.seat().await);
        head.marks().read();
        busy.marks().read();
        busy.marks().begin();
        for (secs, of_head, of_idle) in
            [(9, None, None), (1, Some(Phase::Head), None), (65, None, Some(Phase::Idle))]
        {
            clock.advance(Duration::from_secs(secs));
            // More of the head makes it no younger.
            head.marks().read();
            table.sweep();
            let left = has_to_leave(&head);
            assert!(left == of_head || secs == 65, "{left:?} after {secs} s");
            assert_eq!(has_to_leave(&idle), of_idle, "after {secs} s");
            assert_eq!(has_to_leave(&busy), None);
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_being_taken_is_not_idleness() {
        let (table, clock) = table(1);
        let seat = table.seat().await;
        seat.marks().begin();
        seat.marks().end();
        for _ in 0..3 {
            clock.advance(Duration::from_secs(60));
            seat.marks().written();
            table.sweep();
            assert_eq!(has_to_leave(&seat), None);
        }
        clock.advance(Duration::from_secs(75));
        table.sweep();
        assert_eq!(has_to_leave(&seat), Some(Phase::Idle));
    }

    #[tokio::test(start_paused = true)]
    async fn when_there_is_no_room_the_longest_idle_leaves_first() {
        let (table, clock) = table(3);
        let first = table.seat().await;
        first.marks().begin();
        clock.advance(Duration::from_millis(1));
        let second = table.seat().await;
        let third = table.seat().await;
        clock.advance(Duration::from_millis(1));
        second.marks().begin();
        second.marks().end();
        let mut waiting = Box::pin(table.seat());
        assert!((&mut waiting).now_or_never().is_none());
        assert_eq!(has_to_leave(&third), Some(Phase::Idle));
        assert_eq!((has_to_leave(&first), has_to_leave(&second)), (None, None));
        // A request that begins just then is heard out.
        third.marks().read();
        third.marks.tell_to_leave();
        assert_eq!(has_to_leave(&third), Some(Phase::Busy));
        drop(third);
        let third = waiting.await;
        assert_eq!(has_to_leave(&second), None, "one is enough");
        // Nobody idles: a head that is late goes, a request never does.
        second.marks().begin();
        third.marks().read();
        clock.advance(Duration::from_secs(1));
        let mut waiting = Box::pin(table.seat());
        assert!((&mut waiting).now_or_never().is_none());
        assert_eq!(has_to_leave(&third), Some(Phase::Head));
        assert_eq!((has_to_leave(&first), has_to_leave(&second)), (None, None));
        // One that becomes idle while somebody waits is found too.
        first.marks().end();
        assert!(tokio::time::timeout(CROWDED_LOOK * 2, waiting).await.is_err());
        assert_eq!(has_to_leave(&first), Some(Phase::Idle));
    }
}
