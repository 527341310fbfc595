//! What `History` promises of lists of attempts.
//!
//! Never: a case about which fields are kept; the ledger's suite has those.

use std::time::Duration;

use domain::application::AppSnapshot;
use domain::ids::{AttemptKey, EndpointKey, MessageKey, PublicId};

use super::super::world::{World, all};
use super::super::{Case, cases, samples};
use crate::history::{AttemptFilter, AttemptRow, MessageFilter};
use crate::ledger::{Follow, Recorded};
use crate::page::{Direction, PageOf};

/// The suite.
pub const CASES: &[Case] = cases![
    an_attempt_is_found_by_its_id,
    an_attempt_names_what_it_belongs_to,
    attempts_of_a_message_and_to_an_endpoint_agree,
    each_attempt_filter_leaves_out_the_others,
    attempts_are_filtered_by_their_message,
    times_of_attempts_are_their_own,
    pg_01_attempts_of_one_moment_are_each_listed_once,
    a_committed_attempt_is_listed_at_once,
];

/// Which list is walked.
#[derive(Clone, Copy)]
enum Of {
    Message(MessageKey),
    Endpoint(EndpointKey),
}

/// One page, by attempt key.
async fn page(
    world: &World,
    of: Of,
    filter: &AttemptFilter,
    page: PageOf<AttemptKey>,
) -> Vec<AttemptRow> {
    let (history, filter) = (&world.stores.history, filter.clone());
    let found = match of {
        Of::Message(message) => history.attempts_of(message, filter, page).await,
        Of::Endpoint(endpoint) => history.attempts_to(endpoint, filter, page).await,
    };
    found.unwrap().rows
}

/// Walks a list page by page in both directions, and answers with its keys, oldest first.
async fn walk(world: &World, of: Of, filter: &AttemptFilter, limit: usize) -> Vec<AttemptKey> {
    let mut ways = Vec::new();
    for direction in [Direction::Descending, Direction::Ascending] {
        let (mut found, mut beyond) = (Vec::new(), None);
        loop {
            let rows = page(world, of, filter, PageOf { beyond, direction, limit }).await;
            assert!(rows.len() <= limit);
            let Some(last) = rows.last() else { break };
            beyond = Some(last.key);
            found.extend(rows.iter().map(|row| row.key));
            assert!(found.len() <= 1_000, "the walk does not advance");
        }
        ways.push(found);
    }
    ways[0].reverse();
    assert_eq!(ways[0], ways[1], "the same in both directions");
    ways.remove(0)
}

/// Sends a message to every endpoint, each of which answers with `status`; 0 for not at all.
async fn send(world: &World, app: &AppSnapshot, status: u16) -> MessageKey {
    let message = world.post(world.message(app)).await;
    let mut records = Vec::new();
    for endpoint in &app.endpoints {
        let row = world.row(message, endpoint.key).await.unwrap();
        let attempt = match status {
            0 => samples::timed_out(&row, world.now()),
            status => samples::answered(&row, status, world.now()),
        };
        let follow = match status {
            200..300 => Follow::Delivered,
            _ => samples::dead(),
        };
        records.push(world.result(row, Some(attempt), follow));
    }
    let recorded = world.stores.ledger.record(records).await.unwrap();
    assert!(recorded.iter().all(|one| *one == Recorded::Applied));
    message
}

async fn an_attempt_is_found_by_its_id(world: World) {
    let app = world.app(2).await;
    let (message, other) = (send(&world, &app, 200).await, send(&world, &app, 500).await);
    let history = &world.stores.history;
    let rows = world.attempts(message).await;
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(history.attempt(message, row.id).await.unwrap(), Some(row.clone()));
        assert_eq!(history.attempt(other, row.id).await.unwrap(), None, "of another message");
        let wrong = PublicId::new(row.id.key(), [0; 12]);
        assert_eq!(history.attempt(message, wrong).await.unwrap(), None);
    }
}

async fn an_attempt_names_what_it_belongs_to(world: World) {
    let app = world.app(2).await;
    let message = send(&world, &app, 200).await;
    let id = world.read(app.app.key, message).await.id;
    world.stores.directory.delete_endpoint(app.endpoints[1].key).await.unwrap();
    let (history, rows) = (&world.stores.history, world.attempts(message).await);
    assert_eq!(rows.len(), 2, "of a deleted endpoint too");
    for (row, endpoint) in rows.into_iter().zip(&app.endpoints) {
        assert_eq!((row.message_id, row.endpoint_id), (id, endpoint.id));
        let filter = AttemptFilter::default();
        let to_it = page(&world, Of::Endpoint(row.endpoint), &filter, all()).await;
        assert_eq!(to_it, std::slice::from_ref(&row));
        assert_eq!(history.attempt(message, row.id).await.unwrap(), Some(row));
    }
}

async fn attempts_of_a_message_and_to_an_endpoint_agree(world: World) {
    let app = world.app(3).await;
    let messages = [send(&world, &app, 200).await, send(&world, &app, 500).await];
    let mut by_message = Vec::new();
    for message in messages {
        let rows = page(&world, Of::Message(message), &AttemptFilter::default(), all()).await;
        let endpoints: Vec<_> = rows.iter().map(|row| row.endpoint).collect();
        assert_eq!(endpoints, app.endpoints.iter().map(|to| to.key).collect::<Vec<_>>());
        by_message.extend(rows);
    }
    for endpoint in &app.endpoints {
        let of_it = by_message.iter().filter(|row| row.endpoint == endpoint.key).cloned();
        let of_it: Vec<_> = of_it.collect();
        let filter = AttemptFilter::default();
        assert_eq!(page(&world, Of::Endpoint(endpoint.key), &filter, all()).await, of_it);
        let newest = PageOf { beyond: None, direction: Direction::Descending, limit: 1 };
        let found = page(&world, Of::Endpoint(endpoint.key), &filter, newest).await;
        assert_eq!(found, of_it[1..], "newest first");
    }
    let nobody = Of::Endpoint(EndpointKey(1 << 40));
    assert_eq!(page(&world, nobody, &AttemptFilter::default(), all()).await, []);
}

async fn each_attempt_filter_leaves_out_the_others(world: World) {
    let app = world.app(2).await;
    let endpoint = app.endpoints[0].key;
    let mut sent = Vec::new();
    for status in [200, 299, 0, 302, 404, 500, 599, 999] {
        sent.push((status, send(&world, &app, status).await));
    }
    let statuses = async |filter: AttemptFilter| {
        let rows = page(&world, Of::Endpoint(endpoint), &filter, all()).await;
        let walked = walk(&world, Of::Endpoint(endpoint), &filter, 3).await;
        assert_eq!(walked, rows.iter().map(|row| row.key).collect::<Vec<_>>());
        rows.iter().map(|row| row.attempt.status()).collect::<Vec<_>>()
    };
    let none = AttemptFilter::default;
    let status = |status| AttemptFilter { status: Some(status), ..none() };
    assert_eq!(statuses(none()).await.len(), 8);
    assert_eq!(statuses(status(0)).await, [200, 299]);
    assert_eq!(statuses(status(2)).await, [0, 302, 404, 500, 599, 999]);
    assert_eq!(statuses(status(1)).await, [0; 0], "others match nothing");
    assert_eq!(statuses(status(3)).await, [0; 0]);
    let class = |class| AttemptFilter { status_class: Some(class), ..none() };
    for (asked, expected) in [
        (0, vec![0]),
        (100, vec![]),
        (200, vec![200, 299]),
        (300, vec![302]),
        (400, vec![404]),
        (500, vec![500, 599]),
    ] {
        assert_eq!(statuses(class(asked)).await, expected, "class {asked}");
    }
    let both = AttemptFilter { status: Some(2), ..class(200) };
    assert_eq!(statuses(both).await, [0; 0]);
    for (status, message) in sent {
        let to_one = AttemptFilter { endpoint: Some(app.endpoints[1].key), ..none() };
        let rows = page(&world, Of::Message(message), &to_one, all()).await;
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].endpoint, app.endpoints[1].key);
        let failed = AttemptFilter { status: Some(2), ..none() };
        let rows = page(&world, Of::Message(message), &failed, all()).await;
        assert_eq!(rows.len(), if (200..300).contains(&status) { 0 } else { 2 });
    }
}

async fn attempts_are_filtered_by_their_message(world: World) {
    let app = world.app(1).await;
    let row = async |event_type: &str, channel: &str| {
        let mut new = world.message(&app);
        new.spec.event_type = event_type.to_owned();
        new.spec.channels = vec![channel.to_owned()];
        let key = world.post(new).await;
        let row = world.row(key, app.endpoints[0].key).await.unwrap();
        world.deliver(row).await;
        world.tick();
        key
    };
    let begun = world.now();
    let (a, b, c) = (row("a", "eu").await, row("b", "eu").await, row("a", "us").await);
    let found = async |message: MessageFilter| {
        let filter = AttemptFilter { message, ..AttemptFilter::default() };
        let rows = page(&world, Of::Endpoint(app.endpoints[0].key), &filter, all()).await;
        rows.iter().map(|row| row.message).collect::<Vec<_>>()
    };
    let none = MessageFilter::default;
    let of_type = MessageFilter { event_types: vec!["a".to_owned()], ..none() };
    assert_eq!(found(of_type).await, [a, c]);
    let on = MessageFilter { channel: Some("eu".to_owned()), ..none() };
    assert_eq!(found(on).await, [a, b]);
    let at = Some(begun.plus(Duration::from_secs(1)));
    assert_eq!(found(MessageFilter { after: at, ..none() }).await, [b, c]);
    assert_eq!(found(MessageFilter { before: at, ..none() }).await, [a]);
}

async fn times_of_attempts_are_their_own(world: World) {
    let app = world.app(1).await;
    let (first, second) = (world.one(&app).await, world.one(&app).await);
    world.tick();
    world.deliver(second).await;
    world.tick();
    let at = Some(world.now());
    world.deliver(first).await;
    let found = async |of, before, after| {
        let message = MessageFilter { before, after, ..MessageFilter::default() };
        let filter = AttemptFilter { message, ..AttemptFilter::default() };
        let rows = page(&world, of, &filter, all()).await;
        rows.iter().map(|row| row.message).collect::<Vec<_>>()
    };
    let to = Of::Endpoint(first.endpoint);
    assert_eq!(found(to, at, None).await, [second.message], "whatever its message's time");
    assert_eq!(found(to, None, at).await, [first.message]);
    assert_eq!(found(Of::Message(first.message), None, at).await, [first.message]);
    assert_eq!(found(Of::Message(first.message), at, None).await, []);
}

async fn pg_01_attempts_of_one_moment_are_each_listed_once(world: World) {
    let app = world.app(1).await;
    let endpoint = app.endpoints[0].key;
    for _ in 0..25 {
        world.one(&app).await;
    }
    let rows = world.rows(endpoint).await;
    let records = rows.iter().map(|row| {
        let attempt = samples::answered(row, 200, world.now());
        world.result(*row, Some(attempt), Follow::Delivered)
    });
    world.stores.ledger.record(records.collect()).await.unwrap();
    let found = page(&world, Of::Endpoint(endpoint), &AttemptFilter::default(), all()).await;
    let messages: Vec<_> = found.iter().map(|row| row.message).collect();
    assert_eq!(messages, rows.iter().map(|row| row.message).collect::<Vec<_>>());
    let keys: Vec<_> = found.iter().map(|row| row.key).collect();
    for limit in [1, 10, 25, 250] {
        let walked = walk(&world, Of::Endpoint(endpoint), &AttemptFilter::default(), limit).await;
        assert_eq!(walked, keys, "{limit} a page");
    }
}

async fn a_committed_attempt_is_listed_at_once(mut world: World) {
    let app = world.app(1).await;
    let endpoint = app.endpoints[0].key;
    let mut sent = Vec::new();
    for round in 0..3 {
        for at in 0..30 {
            sent.push(send(&world, &app, if at % 4 == 0 { 500 } else { 200 }).await);
        }
        for wait in [0, 1_200] {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            let filter = AttemptFilter::default();
            let found = page(&world, Of::Endpoint(endpoint), &filter, all()).await;
            let found: Vec<_> = found.iter().map(|row| row.message).collect();
            assert_eq!(found, sent, "round {round}, whether indexed yet or not");
            let filter = AttemptFilter { status: Some(2), ..filter };
            let failed = walk(&world, Of::Endpoint(endpoint), &filter, 7).await;
            assert_eq!(failed.len(), 8 * (round + 1), "round {round}");
        }
        if round == 1 {
            world.reopen();
        }
    }
}
