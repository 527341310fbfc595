//! Posts go to the node that serves most of their endpoints, and that one commits them.
//!
//! A node that commits what another one serves has to tell it in the database, and the other one
//! reads everything back. So a post is forwarded over a connection between the two, and answered
//! when it is committed there. The database stays the truth, and nobody depends on the connection:
//! what is not answered in time, or otherwise than "committed", is committed here. It carries a key
//! that only one of both commits is taken under, so whatever became of it there, it is one message.
//! Never: forward what was forwarded, keep a post from being committed here, or decide what becomes
//! of a post that is not new.

mod answering;
mod identity;
mod link;
mod links;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use domain::idempotency::IngestKey;
use domain::ids::{MessageKey, PublicId};
use domain::nodes::NodeId;
use metrics::{Counter, counter};
use resilience::Timestamp;
use store::Reply;
use store::inbox::{Accepted, Inbox, NewMessage};
use store::nodes::Among;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::roster::Roster;
use answering::Answering;
pub use identity::{Identity, NoIdentity};
use link::Asked;
use links::Links;

/// A post that is not answered by then is committed here. Longer than a transaction stays open at
/// the database whose node stands still, so that this one need not wait for it.
const ANSWER_MAX: Duration = Duration::from_millis(3_500);
/// Larger payloads are committed where they came in: they would keep others waiting.
const PAYLOAD_MAX: usize = 256 * 1_024;
/// Stands in keys that posts without a key of their own are given.
const KEY_MARK: [u8; 4] = *b"peer";

/// What a node needs to forward posts, and to take them.
pub struct Forwarding {
    /// Where other nodes reach this one.
    pub listener: TcpListener,
    /// What they know it by.
    pub identity: Identity,
}

/// Both, before they start.
pub(crate) struct Prepared {
    forwarding: Forwarding,
    answering: Arc<Answering>,
    links: Arc<Links>,
}

/// The tasks of both.
pub(crate) struct Running([JoinHandle<()>; 2]);

impl Forwarding {
    /// Prepares both. What comes out takes posts in place of `inbox`.
    pub(crate) fn prepare(
        self,
        among: Among,
        roster: Arc<Roster>,
        (inbox, counts): (&Arc<dyn Inbox>, Arc<Counts>),
    ) -> (Arc<dyn Inbox>, Prepared) {
        let answering = Answering::new(among.clone(), roster, Arc::clone(inbox));
        let links = Arc::new(Links::new(among));
        let here = Arc::clone(inbox);
        let near = Near { links: Arc::clone(&links), here, counts };
        (Arc::new(near), Prepared { forwarding: self, answering, links })
    }
}

impl Prepared {
    /// Starts both, once what is committed here reaches the lanes.
    pub(crate) fn start(self) -> Running {
        let Self { forwarding: Forwarding { listener, identity }, answering, links } = self;
        let identity = Arc::new(identity);
        let answers = tokio::spawn(answering.run(listener, Arc::clone(&identity)));
        Running([answers, tokio::spawn(links.keep(identity))])
    }
}

impl Running {
    /// Forwards and takes nothing more. Who waits for an answer commits for himself.
    pub(crate) fn end(&self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// An inbox that has posts committed where they are served.
struct Near {
    links: Arc<Links>,
    here: Arc<dyn Inbox>,
    counts: Arc<Counts>,
}

/// What became of posts that another node should commit.
pub(crate) struct Counts {
    committed: Counter,
    kept: Counter,
    returned: Counter,
    unanswered: Counter,
}

impl Counts {
    /// All at zero, whether anything is forwarded or not.
    pub(crate) fn new() -> Arc<Self> {
        let count = |outcome| counter!("peyk_posts_forwarded_total", "outcome" => outcome);
        let (committed, kept) = (count("committed"), count("kept"));
        let (returned, unanswered) = (count("returned"), count("unanswered"));
        Arc::new(Self { committed, kept, returned, unanswered })
    }
}

impl Near {
    /// Forwards a post, if that is possible at once.
    fn ask(&self, node: NodeId, message: &NewMessage) -> Option<Asked> {
        let is_small = message.spec.payload.len() <= PAYLOAD_MAX;
        is_small.then(|| self.links.to(node))??.ask(message)
    }
}

impl Inbox for Near {
    fn accept(&self, message: NewMessage) -> Reply<'static, Accepted> {
        let Some(node) = self.links.nearest(&message.targets) else {
            return self.here.accept(message);
        };
        let keyed = Keyed::of(message);
        let Some(asked) = self.ask(node, &keyed.message) else {
            self.counts.kept.increment(1);
            return self.here.accept(keyed.unasked());
        };
        let (here, counts) = (Arc::clone(&self.here), Arc::clone(&self.counts));
        Box::pin(async move {
            match answer(asked).await {
                Some(wire::Answer { new: Some(new), .. }) => {
                    counts.committed.increment(1);
                    return Ok(new.accepted(keyed.message.random));
                }
                // Another one than a new message, or none: this node finds out which.
                Some(wire::Answer { new: None, .. }) => counts.returned.increment(1),
                None => counts.unanswered.increment(1),
            }
            let is_lent = keyed.is_lent;
            let made = here.accept(keyed.message).await;
            if is_lent { made.map(first_time) } else { made }
        })
    }

    fn used(&self, key: IngestKey) -> Reply<'static, Option<Accepted>> {
        self.here.used(key)
    }

    fn probe(&self) -> Reply<'static, ()> {
        self.here.probe()
    }
}

/// What the other node says, if it does in time.
async fn answer(asked: Asked) -> Option<wire::Answer> {
    if let Ok(answer) = timeout(ANSWER_MAX, asked.answer).await {
        return answer.ok();
    }
    asked.conn.leave();
    None
}

/// A message with a key: whoever commits it second finds that it was.
struct Keyed {
    message: NewMessage,
    /// The key was not its caller's.
    is_lent: bool,
}

impl Keyed {
    fn of(mut message: NewMessage) -> Self {
        let is_lent = message.key.is_none();
        if is_lent {
            let mut scope = [0; 16];
            scope[..12].copy_from_slice(&message.random);
            scope[12..].copy_from_slice(&KEY_MARK);
            message.key = Some(IngestKey { scope, body: scope });
        }
        Self { message, is_lent }
    }

    /// As it was.
    fn unasked(mut self) -> NewMessage {
        if self.is_lent {
            self.message.key = None;
        }
        self.message
    }
}

/// What was committed by the other node after all is new to its caller.
fn first_time(accepted: Accepted) -> Accepted {
    match accepted {
        Accepted::Repeated(message) => {
            Accepted::New { key: message.key, id: message.id, accepted_at: message.accepted_at }
        }
        other => other,
    }
}

impl wire::New {
    fn of(accepted: &Accepted) -> Option<Self> {
        let Accepted::New { key, accepted_at, .. } = accepted else { return None };
        Some(Self { key: key.0, accepted_at_us: accepted_at.as_micros() })
    }

    fn accepted(self, random: [u8; 12]) -> Accepted {
        let id = PublicId::new(self.key, random);
        let accepted_at = Timestamp::from_micros(self.accepted_at_us);
        Accepted::New { key: MessageKey(self.key), id, accepted_at }
    }
}

#[cfg(test)]
mod tests;
