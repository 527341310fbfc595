//! Random steps, and what each answers.
//!
//! A step names things by their number, so that it means the same on both sides.
//! Never: chance while a step is applied.

mod directory;
mod results;

use std::time::Duration;

use domain::idempotency::IngestKey;
use resilience::{Chance as _, Seeded};
use store::conformance::samples;
use store::inbox::{Accepted, NewMessage};

use crate::model::names::Side;

/// Something to do.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    CreateApp {
        uid: Option<u8>,
    },
    UpdateApp {
        app: usize,
        uid: Option<u8>,
    },
    DeleteApp {
        app: usize,
    },
    CreateEndpoint {
        app: usize,
        uid: Option<u8>,
        full: bool,
    },
    ChangeEndpoint {
        endpoint: usize,
        uid: Option<u8>,
        what: u8,
    },
    DeleteEndpoint {
        endpoint: usize,
    },
    EventType {
        name: u8,
        what: u8,
    },
    /// All are asked for before the first is waited for.
    Accept {
        posts: Vec<Post>,
    },
    /// All in one call.
    Record {
        picks: Vec<Pick>,
    },
    /// What was recorded before, once more.
    Repeat {
        record: usize,
    },
    Replay {
        message: usize,
        endpoint: usize,
    },
    ReplayEdited {
        message: usize,
        endpoint: usize,
    },
    Discard {
        message: usize,
        endpoint: usize,
    },
    Resend {
        message: usize,
        endpoint: usize,
    },
    Expunge {
        message: usize,
    },
    /// To the end, some days ahead: what is kept how many seconds longer than those days.
    Prune {
        payload: u8,
        dead_letters: u8,
        messages: u8,
    },
    KeepLane {
        endpoint: usize,
        full: bool,
    },
    KeepSuspects {
        count: usize,
    },
    /// One piece.
    RollUp,
    Reopen,
}

/// A message to post.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    app: usize,
    /// A bit for each endpoint of the application.
    targets: u8,
    event_id: Option<u8>,
    key: Option<(u8, u8)>,
    stale: bool,
    kind: u8,
    named: bool,
}

/// A pending row, and what came of sending it.
#[derive(Clone, Debug)]
pub(crate) struct Pick {
    endpoint: usize,
    row: usize,
    result: u8,
    wait_secs: u8,
}

/// A small number.
fn draw(chance: &mut Seeded, bound: u8) -> u8 {
    u8::try_from(chance.below(u64::from(bound))).unwrap()
}

fn index(chance: &mut Seeded) -> usize {
    usize::from(draw(chance, 240))
}

/// A number every other time.
fn maybe(chance: &mut Seeded, bound: u8) -> Option<u8> {
    (draw(chance, 2) == 0).then(|| draw(chance, bound))
}

impl Step {
    /// The next step; the first ones make something to work with.
    pub(crate) fn draw(chance: &mut Seeded, number: u64) -> Self {
        let (a, b) = (index(chance), index(chance));
        match (number, draw(chance, 100)) {
            (0, _) | (_, 0..3) => Self::CreateApp { uid: maybe(chance, 3) },
            (1..4, _) | (_, 3..7) => {
                Self::CreateEndpoint { app: a, uid: maybe(chance, 4), full: draw(chance, 4) == 0 }
            }
            (_, 7..8) => Self::DeleteApp { app: a },
            (_, 8..10) => Self::UpdateApp { app: a, uid: maybe(chance, 3) },
            (_, 10..14) => {
                let (uid, what) = (maybe(chance, 4), draw(chance, 5));
                Self::ChangeEndpoint { endpoint: a, uid, what }
            }
            (_, 14..16) => Self::DeleteEndpoint { endpoint: a },
            (_, 16..19) => Self::EventType { name: draw(chance, 3), what: draw(chance, 4) },
            (4..8, _) | (_, 19..42) => Self::Accept { posts: posts(chance) },
            (_, 42..69) => Self::Record { picks: picks(chance) },
            (_, 69..72) => Self::Prune {
                payload: draw(chance, 12),
                dead_letters: draw(chance, 12),
                messages: draw(chance, 20),
            },
            (_, 72..76) => Self::Repeat { record: a },
            (_, 76..83) => Self::Replay { message: a, endpoint: b },
            (_, 83..85) => Self::ReplayEdited { message: a, endpoint: b },
            (_, 85..87) => Self::Discard { message: a, endpoint: b },
            (_, 87..93) => Self::Resend { message: a, endpoint: b },
            (_, 93..94) => Self::Expunge { message: a },
            (_, 94..96) => Self::KeepLane { endpoint: a, full: draw(chance, 2) == 0 },
            (_, 96..98) => Self::KeepSuspects { count: usize::from(draw(chance, 3)) },
            (_, 98..99) => Self::RollUp,
            _ => Self::Reopen,
        }
    }
}

fn posts(chance: &mut Seeded) -> Vec<Post> {
    let post = |chance: &mut Seeded| Post {
        app: index(chance),
        targets: draw(chance, 255),
        event_id: maybe(chance, 20),
        key: maybe(chance, 6).map(|scope| (scope, draw(chance, 2))),
        stale: draw(chance, 12) == 0,
        kind: draw(chance, 4),
        named: draw(chance, 4) == 0,
    };
    (0..=draw(chance, 4)).map(|_| post(chance)).collect()
}

fn picks(chance: &mut Seeded) -> Vec<Pick> {
    let pick = |chance: &mut Seeded| Pick {
        endpoint: index(chance),
        row: index(chance),
        result: draw(chance, 9),
        wait_secs: draw(chance, 3),
    };
    (0..=draw(chance, 5)).map(|_| pick(chance)).collect()
}

/// 12 bytes for the `at`th thing made in a step.
fn random(number: u64, at: usize) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..].copy_from_slice(&u32::try_from(at).unwrap().to_be_bytes());
    bytes
}

/// The thing of that number, if there is any.
fn pick<T: Copy>(all: &[T], at: usize) -> Option<T> {
    all.get(at.checked_rem(all.len())?).copied()
}

impl Side {
    /// Does a step, and tells what was answered.
    pub(crate) async fn apply(&mut self, step: &Step, number: u64) -> String {
        match step {
            Step::CreateApp { .. }
            | Step::UpdateApp { .. }
            | Step::DeleteApp { .. }
            | Step::CreateEndpoint { .. }
            | Step::ChangeEndpoint { .. }
            | Step::DeleteEndpoint { .. }
            | Step::EventType { .. } => self.change_directory(step, number).await,
            Step::Accept { posts } => self.accept(posts, number).await,
            Step::Reopen => {
                self.world.reopen();
                String::new()
            }
            Step::RollUp => {
                self.world.stores.counts.roll_up().await.unwrap();
                String::new()
            }
            _ => self.move_on(step, number).await,
        }
    }

    async fn accept(&mut self, posts: &[Post], number: u64) -> String {
        let mut answers = Vec::new();
        for (at, post) in posts.iter().enumerate() {
            let Some(new) = self.new_message(post, random(number, at)).await else { continue };
            answers.push(self.world.stores.inbox.accept(new));
        }
        let mut told = Vec::new();
        for answer in answers {
            let answer = answer.await.unwrap();
            told.push(self.accepted(answer));
        }
        told.join("; ")
    }

    /// What is posted; `None` when there is no application to post it to.
    async fn new_message(&self, post: &Post, random: [u8; 12]) -> Option<NewMessage> {
        let app = pick(&self.apps, post.app)?;
        let snapshot = self.world.stores.directory.app_by_key(app).await.unwrap();
        let (version, endpoints) =
            snapshot.map_or((0, Vec::new()), |found| (found.app.version, found.endpoints));
        let mut spec = samples::message();
        spec.event_type = format!("type-{}", post.kind % 2);
        spec.channels = (post.kind < 2).then(|| "one".to_owned()).into_iter().collect();
        spec.retention_hours = post.named.then_some(5 * 24);
        spec.tags = (post.kind % 2 == 1).then(|| "blue".to_owned()).into_iter().collect();
        let later = Some(self.world.now().plus(Duration::from_secs(60)));
        spec.deliver_at = later.filter(|_| post.kind == 3);
        spec.event_id = post.event_id.map(|id| format!("event-{id}"));
        let hit = |at: usize| post.targets >> (at % 8) & 1 == 1;
        let targets = endpoints.into_iter().enumerate().filter(|(at, _)| hit(*at));
        Some(NewMessage {
            app,
            app_version: version - i64::from(post.stale),
            spec,
            random,
            targets: targets.map(|(_, endpoint)| endpoint).collect(),
            key: post.key.map(|(scope, body)| IngestKey { scope: [scope; 16], body: [body; 16] }),
            edited_from: None,
        })
    }

    /// Notes a new message, and tells what became of it.
    fn accepted(&mut self, accepted: Accepted) -> String {
        match accepted {
            Accepted::New { key, id, accepted_at } => {
                self.messages.push(key);
                format!("new {} {:?} {accepted_at:?}", self.message(key), id.random())
            }
            Accepted::Repeated(message) => format!("repeated {}", self.whole_message(&message)),
            other => format!("{other:?}"),
        }
    }
}
