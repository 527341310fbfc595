//! What `Ledger` keeps: every field of an attempt, of a lane, of a suspect.
//!
//! Never: a case about what follows from a result.

use std::time::Duration;

use bytes::Bytes;
use domain::attempt::{Answer, Attempt, Cut, Failure, FailureKind, Outcome};
use domain::delivery::Pending;
use domain::ids::{EndpointKey, MessageKey};
use resilience::{Forced, RetryAfter, Term};

use super::super::world::World;
use super::super::{Case, cases, samples};
use crate::ledger::{Follow, LaneState, Record, Recorded, Suspect};

/// The suite.
pub const CASES: &[Case] = cases![
    every_field_of_an_answer_is_kept,
    every_kind_of_failure_is_kept,
    every_term_is_kept,
    an_attempt_whose_row_keeps_its_place_tells_when_it_is_tried_again,
    the_url_is_the_one_it_was_sent_to,
    hr_05_bodies_are_kept_byte_for_byte,
    attempt_numbers_are_unique,
    a_lane_is_kept_with_the_result_that_changed_it,
    lanes_are_kept_whole,
    the_last_lane_state_counts,
    suspects_are_replaced,
];

/// Records `outcome` for `row`, and returns what is read back.
async fn keep(world: &World, row: Pending, outcome: Outcome) -> (Attempt, Attempt) {
    let mut attempt = samples::attempt(&row, world.now(), outcome);
    attempt.resent = row.sends % 2 == 1;
    let record = world.result(row, Some(attempt.clone()), Follow::Delivered);
    let random = record.random;
    assert_eq!(world.record(record).await, Recorded::Applied);
    let found = world.attempts(row.message).await.pop().unwrap();
    assert_eq!((found.message, found.endpoint), (row.message, row.endpoint));
    assert_eq!((found.id.key(), found.id.random()), (found.key.0, random));
    (attempt, found.attempt)
}

fn answer(status: u16, retry_after: RetryAfter, cut: Option<Cut>, body: Bytes) -> Answer {
    let redirect_origin = (status / 100 == 3).then(|| "https://example.org:8443".to_owned());
    Answer { status, retry_after, body, cut, redirect_origin }
}

async fn every_field_of_an_answer_is_kept(world: World) {
    let app = world.app(1).await;
    let body = || Bytes::from_static(b"short");
    let answers = [
        answer(200, RetryAfter::Absent, None, Bytes::new()),
        answer(301, RetryAfter::Unusable, Some(Cut::Cap), body()),
        answer(429, RetryAfter::Wait(Duration::from_secs(1)), Some(Cut::Deadline), body()),
        answer(503, RetryAfter::Wait(Duration::from_secs(1 << 40)), Some(Cut::Reset), body()),
        answer(999, RetryAfter::Absent, None, body()),
    ];
    for answer in answers {
        let row = world.one(&app).await;
        let (sent, found) = keep(&world, row, Outcome::Answered(answer)).await;
        assert_eq!(found, sent);
    }
}

async fn every_kind_of_failure_is_kept(world: World) {
    let app = world.app(1).await;
    for kind in FailureKind::ALL {
        let row = world.one(&app).await;
        let failure = Failure { kind, text: format!("{} – no\nanswer", kind.name()) };
        let (sent, found) = keep(&world, row, Outcome::Failed(failure)).await;
        assert_eq!(found, sent);
    }
}

async fn every_term_is_kept(world: World) {
    let app = world.app(1).await;
    let due_at = world.now().plus(Duration::from_micros(7));
    for (term, resent) in
        [(Term::Backoff, false), (Term::RetryAfter, true), (Term::AgeLimit, false)]
    {
        let row = world.one(&app).await;
        let attempt = Attempt { resent, ..samples::timed_out(&row, world.now()) };
        let (tried_at, delay) = (due_at, Duration::ZERO);
        let follow = Follow::Retry { due_at, tried_at, budget_used: 1, delay, term };
        world.record(world.result(row, Some(attempt.clone()), follow)).await;
        let found = world.attempts(row.message).await.pop().unwrap();
        assert_eq!((found.next, found.attempt), (Some((due_at, term)), attempt));
    }
}

async fn an_attempt_whose_row_keeps_its_place_tells_when_it_is_tried_again(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    let tried_at = row.due_at.plus(Duration::from_secs(3_600));
    let (budget_used, delay, term) = (1, Duration::from_secs(3_600), Term::Backoff);
    let follow = Follow::Retry { due_at: row.due_at, tried_at, budget_used, delay, term };
    let attempt = samples::timed_out(&row, world.now());
    world.record(world.result(row, Some(attempt), follow)).await;
    let found = world.attempts(row.message).await.pop().unwrap();
    assert_eq!(found.next, Some((tried_at, term)));
    let kept = world.stores.history.deliveries(row.message).await.unwrap();
    assert_eq!(kept[0].due_at, Some(row.due_at));
}

async fn the_url_is_the_one_it_was_sent_to(world: World) {
    let app = world.app(1).await;
    let (first, second) = (world.one(&app).await, world.one(&app).await);
    world.tick();
    world.deliver(first).await;
    world.tick();
    let mut spec = samples::endpoint();
    spec.target = samples::target("https://example.net/moved");
    let change = crate::directory::EndpointChange { spec: Some(spec), ..Default::default() };
    world.stores.directory.change_endpoint(first.endpoint, change).await.unwrap();
    world.tick();
    world.deliver(second).await;
    let url = async |row: Pending| world.attempts(row.message).await.pop().unwrap().url;
    assert_eq!(url(first).await, samples::endpoint().target.as_str());
    assert_eq!(url(second).await, "https://example.net/moved");
    world.stores.directory.delete_endpoint(first.endpoint).await.unwrap();
    assert_eq!(url(second).await, "https://example.net/moved");
}

async fn hr_05_bodies_are_kept_byte_for_byte(world: World) {
    let app = world.app(1).await;
    for body in samples::hard_bytes() {
        let row = world.one(&app).await;
        let body = body.slice(..body.len().min(16 << 10));
        let outcome = Outcome::Answered(answer(200, RetryAfter::Absent, None, body));
        let (sent, found) = keep(&world, row, outcome).await;
        assert!(found == sent, "a body of {} bytes", found.status());
        assert_eq!(world.row(row.message, row.endpoint).await, None, "and it is delivered");
    }
}

async fn attempt_numbers_are_unique(world: World) {
    let app = world.app(2).await;
    let message = world.post(world.message(&app)).await;
    for endpoint in &app.endpoints {
        let row = world.row(message, endpoint.key).await.unwrap();
        let attempt = samples::answered(&row, 200, world.now());
        let record = world.result(row, Some(attempt), Follow::Delivered);
        let repeated = vec![record.clone(), record.clone(), record];
        let recorded = world.stores.ledger.record(repeated).await.unwrap();
        assert_eq!(recorded, [Recorded::Applied, Recorded::Late, Recorded::Late]);
    }
    let found = world.attempts(message).await;
    assert_eq!(found.len(), 2, "one of each endpoint, both number 1");
    assert!(found.iter().all(|row| row.attempt.number == 1));
}

async fn a_lane_is_kept_with_the_result_that_changed_it(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    let lane = samples::lane(row.endpoint);
    let attempt = samples::timed_out(&row, world.now());
    let due_at = world.now().plus(Duration::from_secs(1));
    let record = world.result(row, Some(attempt), samples::retry(due_at, 1));
    let record = Record { lane: Some(lane.clone()), ..record };
    assert_eq!(world.record(record.clone()).await, Recorded::Applied);
    assert_eq!(world.stores.queue.lane_states().await.unwrap(), [lane]);
    let newer = samples::bare_lane(row.endpoint);
    world.stores.ledger.keep_lanes(vec![newer.clone()]).await.unwrap();
    assert_eq!(world.record(record).await, Recorded::Late);
    assert_eq!(world.stores.queue.lane_states().await.unwrap(), [newer], "an old result");
}

async fn lanes_are_kept_whole(mut world: World) {
    let app = world.app(3).await;
    let mut closed = samples::lane(app.endpoints[2].key);
    closed.breaker.forced = Some(Forced::Closed);
    closed.breaker.generation = u64::MAX >> 1;
    let lanes =
        vec![samples::lane(app.endpoints[0].key), samples::bare_lane(app.endpoints[1].key), closed];
    world.stores.ledger.keep_lanes(lanes.clone()).await.unwrap();
    world.reopen();
    let mut found = world.stores.queue.lane_states().await.unwrap();
    found.sort_by_key(|lane| lane.endpoint);
    assert_eq!(found, lanes);
}

async fn the_last_lane_state_counts(world: World) {
    let app = world.app(1).await;
    let endpoint = app.endpoints[0].key;
    let states = [samples::lane(endpoint), samples::bare_lane(endpoint), samples::lane(endpoint)];
    for lane in states {
        let again = LaneState { throttled_rounds: 77, ..lane.clone() };
        world.stores.ledger.keep_lanes(vec![again, lane.clone()]).await.unwrap();
        assert_eq!(world.stores.queue.lane_states().await.unwrap(), [lane]);
    }
}

async fn suspects_are_replaced(mut world: World) {
    let suspect = |endpoint, message, crashes| Suspect {
        endpoint: EndpointKey(endpoint),
        message: MessageKey(message),
        crashes,
        sends: crashes + 5,
    };
    assert_eq!(world.stores.ledger.suspects().await.unwrap(), []);
    let first = vec![suspect(1, 7, 0), suspect(1, u64::MAX >> 1, 2), suspect(2, 7, 1)];
    world.stores.ledger.keep_suspects(first.clone()).await.unwrap();
    world.reopen();
    let mut found = world.stores.ledger.suspects().await.unwrap();
    found.sort_by_key(|suspect| (suspect.endpoint, suspect.message));
    assert_eq!(found, first);
    let second = vec![suspect(1, 7, 1)];
    world.stores.ledger.keep_suspects(second.clone()).await.unwrap();
    assert_eq!(world.stores.ledger.suspects().await.unwrap(), second);
    world.stores.ledger.keep_suspects(Vec::new()).await.unwrap();
    assert_eq!(world.stores.ledger.suspects().await.unwrap(), []);
}
