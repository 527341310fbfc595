//! The rules of a book one by one, and all of them against a model of the disk.
//!
//! Never: a store; the disk is a sorted map.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::ids::EndpointKey;
use proptest::prelude::*;

use super::*;

fn at(secs: u64) -> Timestamp {
    Timestamp::from_secs(1_000).plus(Duration::from_secs(secs))
}

fn row(message: u64, due: u64) -> Pending {
    Pending {
        endpoint: EndpointKey(1),
        due_at: at(due),
        message: MessageKey(message),
        age_from: at(due),
        sends: 0,
        budget_used: 0,
        last_delay: Duration::ZERO,
        trigger: Trigger::Scheduled,
    }
}

fn manual(message: u64, due: u64) -> Pending {
    Pending { trigger: Trigger::Manual, ..row(message, due) }
}

fn item(pending: Pending) -> Item {
    Item { pending, envelope: None }
}

fn read(rows: &[Pending], next_due: Option<Timestamp>) -> DueRows {
    DueRows { rows: rows.to_vec(), next_due }
}

fn taken(book: &mut Book) -> Vec<u64> {
    std::iter::from_fn(|| book.take(false)).map(|item| item.pending.message.0).collect()
}

#[test]
fn what_does_not_fit_is_parked_and_so_is_everything_after_it() {
    let mut book = Book::default();
    assert_eq!(book.offer(item(row(1, 1)), 1), Offered::Taken);
    assert_eq!(book.offer(item(row(2, 2)), 1), Offered::Parked);
    book.take(false);
    assert_eq!(book.offer(item(row(3, 3)), 1), Offered::Parked, "2 is not passed over");
    assert!(book.wants_refill(0) && book.is_parked());
    let limit = book.begin_refill(1);
    assert_eq!(limit, 2, "room and owned");
    assert_eq!(book.apply_refill(read(&[row(1, 1), row(2, 2)], None)), 1);
    assert!(book.is_parked(), "the refill was full");
    book.begin_refill(8);
    book.apply_refill(read(&[row(1, 1), row(2, 2), row(3, 3)], Some(at(9))));
    assert!(!book.is_parked());
    assert_eq!((taken(&mut book), book.next_due()), (vec![2, 3], Some(at(9))));
}

#[test]
fn what_is_parked_while_a_refill_runs_is_read_by_the_next() {
    let mut book = Book::default();
    book.park();
    book.begin_refill(8);
    assert_eq!(book.offer(item(row(2, 2)), 8), Offered::Parked);
    book.apply_refill(read(&[row(1, 1)], None));
    assert!(book.is_parked());
    assert!(!book.is_idle());
}

#[test]
fn a_row_released_while_a_refill_runs_stays_owned_until_it_is_applied() {
    let mut book = Book::default();
    book.offer(item(row(1, 1)), 8);
    let out = book.take(false).unwrap();
    book.park();
    book.begin_refill(8);
    book.release(out.id());
    assert!(book.knows(out.id()));
    assert_eq!(
        book.apply_refill(read(&[row(1, 1)], None)),
        0,
        "read before its record was committed"
    );
    assert!(!book.knows(out.id()) && taken(&mut book).is_empty());
}

#[test]
fn a_refill_that_failed_is_made_again() {
    let mut book = Book::default();
    book.offer(item(row(1, 1)), 8);
    let out = book.take(false).unwrap();
    book.park();
    book.begin_refill(8);
    book.release(out.id());
    book.fail_refill();
    assert!(book.wants_refill(8) && !book.knows(out.id()));
}

#[test]
fn du_20_a_replay_announced_before_its_death_was_confirmed_is_not_missed() {
    let mut book = Book::default();
    book.offer(item(row(1, 1)), 8);
    let out = book.take(false).unwrap();
    assert_eq!(book.offer(item(row(1, 1)), 8), Offered::Known);
    book.release(out.id());
    assert!(book.wants_refill(0));
    assert_eq!(book.offer(item(row(2, 2)), 8), Offered::Parked);
}

#[test]
fn two_resends_of_one_delivery_are_two_rows() {
    let mut book = Book::default();
    assert_eq!(book.offer(item(manual(1, 1)), 8), Offered::Taken);
    assert_eq!(book.offer(item(manual(1, 2)), 8), Offered::Taken);
    assert!(book.take_manual().is_some() && book.is_out(MessageKey(1)));
    assert!(book.take_manual().is_some());
}

#[test]
fn a_message_delivered_by_hand_is_dropped_where_it_waits_and_from_a_refill_under_way() {
    let mut book = Book::default();
    book.offer(item(row(1, 1)), 8);
    book.offer(item(row(2, 2)), 8);
    assert!(book.settle(MessageKey(1)).is_some());
    assert_eq!(taken(&mut book), [2]);
    book.park();
    book.begin_refill(8);
    assert!(book.settle(MessageKey(3)).is_none());
    assert_eq!(book.apply_refill(read(&[row(2, 2), row(3, 3), row(4, 4)], None)), 1);
    assert_eq!(taken(&mut book), [4]);
}

#[test]
fn a_row_that_is_read_late_goes_where_it_belongs() {
    let mut book = Book::default();
    (2..5).for_each(|n| {
        book.offer(item(row(n, n)), 8);
    });
    book.doubt();
    assert!(book.is_in_doubt() && book.wants_refill(0), "though much waits");
    book.begin_refill(8);
    book.apply_refill(read(&[row(1, 1), row(2, 2), row(3, 3), row(4, 4)], None));
    assert!(!book.is_in_doubt());
    assert_eq!(taken(&mut book), [1, 2, 3, 4]);
}

#[test]
fn a_probe_is_the_row_with_the_fewest_sends_and_the_oldest_of_those() {
    let mut book = Book::default();
    for (message, sends) in [(1, 3), (2, 1), (3, 1), (4, 2)] {
        book.offer(item(Pending { sends, ..row(message, message) }), 8);
    }
    assert_eq!(book.take(true).unwrap().pending.message, MessageKey(2));
    let not_3 = |item: &Item| item.pending.message != MessageKey(3);
    assert_eq!(book.take_if(true, not_3).unwrap().pending.message, MessageKey(4));
    assert_eq!(taken(&mut book), [1, 3]);
}

#[test]
fn a_manual_row_of_an_ordered_lane_has_its_place() {
    let mut book = Book::default();
    book.offer(item(row(1, 1)), 8);
    book.offer(item(manual(9, 2)), 8);
    book.offer(item(row(3, 3)), 8);
    assert!(!book.manual_is_first());
    book.take(false);
    assert!(book.manual_is_first());
    let mut book = Book::default();
    book.offer(item(manual(9, 2)), 8);
    assert!(book.manual_is_first());
    book.park();
    assert!(!book.manual_is_first(), "what is parked may come before it");
}

#[test]
fn numbers_of_sends_follow_manual_ones() {
    let mut book = Book::default();
    book.offer(item(row(1, 1)), 8);
    book.offer(item(manual(1, 2)), 8);
    book.raise_sends(MessageKey(1), Trigger::Manual, 3);
    assert_eq!(book.head().unwrap().pending.sends, 3);
    book.raise_sends(MessageKey(1), Trigger::Scheduled, 5);
    assert_eq!(book.manual_head().unwrap().pending.sends, 5);
}

#[test]
fn what_falls_due_is_parked() {
    let mut book = Book::default();
    book.note_due(at(9));
    book.note_due(at(5));
    book.note_due(at(7));
    book.fall_due(at(4));
    assert!(!book.is_parked() && book.next_due() == Some(at(5)));
    book.fall_due(at(5));
    assert!(book.is_parked() && book.next_due().is_none());
}

/// The disk, the lane, and what is on its way between them.
#[derive(Default)]
struct Model {
    disk: BTreeMap<(Timestamp, MessageKey), Pending>,
    book: Book,
    /// Commits the lane has not been told of: new rows.
    fresh: VecDeque<Pending>,
    out: Vec<Item>,
    /// Committed, but not confirmed: what was sent, and when it is due again.
    unconfirmed: Vec<(Id, Option<Timestamp>)>,
    reading: Option<DueRows>,
    now: u64,
    next: u64,
    started: Vec<MessageKey>,
    in_order: bool,
}

const ROOM: usize = 3;

impl Model {
    fn accept(&mut self) {
        self.next += 1;
        let row = row(self.next, self.now);
        self.disk.insert((row.due_at, row.message), row);
        self.fresh.push_back(row);
    }

    fn tell(&mut self) {
        if let Some(row) = self.fresh.pop_front() {
            self.book.fall_due(at(self.now));
            self.book.offer(item(row), ROOM);
        }
    }

    fn take(&mut self) -> Result<(), TestCaseError> {
        self.book.fall_due(at(self.now));
        let Some(item) = self.book.take(false) else { return Ok(()) };
        let stored = self.disk.get(&(item.pending.due_at, item.pending.message));
        prop_assert!(stored.is_some(), "sent what is not pending: {:?}", item.pending);
        let twice = self.out.iter().any(|out| out.pending.message == item.pending.message);
        prop_assert!(!twice, "owned twice");
        if self.in_order {
            let passed = self.started.iter().any(|started| *started > item.pending.message);
            prop_assert!(!passed, "{:?} was passed over", item.pending.message);
        }
        self.started.push(item.pending.message);
        self.out.push(item);
        Ok(())
    }

    fn commit(&mut self, which: usize, retry: Option<u64>) {
        if self.out.is_empty() {
            return;
        }
        let Item { pending, .. } = self.out.swap_remove(which % self.out.len());
        self.disk.remove(&(pending.due_at, pending.message));
        let again = retry.filter(|_| !self.in_order && pending.sends < 3).map(|secs| {
            let due_at = at(self.now + secs + 1);
            self.disk.insert(
                (due_at, pending.message),
                Pending { due_at, sends: pending.sends + 1, ..pending },
            );
            due_at
        });
        self.unconfirmed.push((id_of(&pending), again));
    }

    fn confirm(&mut self, which: usize) {
        if self.unconfirmed.is_empty() {
            return;
        }
        let (id, again) = self.unconfirmed.swap_remove(which % self.unconfirmed.len());
        // A row is announced before any later commit, and so before its record is confirmed.
        while self.fresh.iter().any(|row| row.message == id.0) {
            self.tell();
        }
        self.book.release(id);
        if let Some(due) = again {
            self.book.note_due(due);
        }
    }

    fn ask(&mut self, low: usize) {
        self.book.fall_due(at(self.now));
        if self.book.wants_refill(low) {
            let limit = self.book.begin_refill(ROOM);
            let rows = self.disk.values().filter(|row| row.due_at <= at(self.now)).take(limit);
            let rows: Vec<Pending> = rows.copied().collect();
            let next_due = self.disk.values().nth(rows.len()).map(|row| row.due_at);
            self.reading = Some(DueRows { rows, next_due });
        }
    }

    fn answer(&mut self, fails: bool) {
        match self.reading.take() {
            Some(_) if fails => self.book.fail_refill(),
            Some(rows) => drop(self.book.apply_refill(rows)),
            None => {}
        }
    }

    fn step(&mut self, step: u8, which: usize) -> Result<(), TestCaseError> {
        match step {
            0 | 1 => self.accept(),
            2 | 3 => self.tell(),
            4 | 5 => self.take()?,
            6 => self.commit(which, None),
            7 => self.commit(which, Some(which as u64)),
            8 => self.confirm(which),
            9 => self.ask(which % (ROOM + 1)),
            10 => self.answer(which.is_multiple_of(4)),
            _ => self.now += 1,
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..2_000 {
            self.now += 1;
            self.tell();
            self.ask(0);
            self.answer(false);
            self.take()?;
            self.commit(0, None);
            self.confirm(0);
        }
        prop_assert!(self.disk.is_empty(), "lost: {:?}", self.disk);
        prop_assert!(self.book.is_idle(), "{:?}", self.book);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(400)
    })]

    #[test]
    fn no_row_is_lost_owned_twice_or_passed_over(
        steps in prop::collection::vec((0_u8..12, 0_usize..16), 0..200),
        in_order in any::<bool>(),
    ) {
        let mut model = Model { in_order, ..Model::default() };
        for (step, which) in steps {
            model.step(step, which)?;
        }
        model.settle()?;
    }
}
