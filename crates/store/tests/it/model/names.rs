//! One of the two that are compared: its world, and names for its keys that are the same on both.
//!
//! Never: let a key or a public id into a text that is compared; both may draw others.

use domain::dead_letter::DeadLetter;
use domain::delivery::Pending;
use domain::endpoint::Endpoint;
use domain::ids::{AppKey, EndpointKey, MessageKey};
use domain::message::Message;
use domain::notice::{MANAGEMENT, Named, News, Notice, teller_of};
use store::conformance::samples;
use store::conformance::world::{ORG, World};
use store::history::AttemptRow;
use store::ledger::Record;

/// One backend, and what was made in it so far.
pub(crate) struct Side {
    pub(crate) world: World,
    pub(crate) apps: Vec<AppKey>,
    pub(crate) endpoints: Vec<EndpointKey>,
    pub(crate) messages: Vec<MessageKey>,
    /// Everything that was recorded, to be recorded again.
    pub(crate) records: Vec<Record>,
}

impl Side {
    pub(crate) const fn new(world: World) -> Self {
        Self {
            world,
            apps: Vec::new(),
            endpoints: Vec::new(),
            messages: Vec::new(),
            records: Vec::new(),
        }
    }

    /// From now on the organisation is told of what happens in it.
    pub(crate) async fn tell(&self) {
        let spec = samples::app(teller_of(ORG).as_deref());
        self.world.stores.directory.create_app(MANAGEMENT, spec, [0xEE; 12]).await.unwrap();
    }

    pub(crate) fn notice(&self, notice: &Notice) -> String {
        let named = |named: &Named| format!("{:?} {:?}", named.0.random(), named.1);
        let (app, endpoint) = (named(&notice.app), named(&notice.endpoint));
        let message = notice.message.as_ref().map(named);
        let attempt = notice.attempt.map(|last| (last.id.random(), last.status, last.at));
        // A key is what each store draws.
        let news = match notice.news {
            News::RefusalsHeld(run) => {
                format!("held {} {:?}", self.endpoint(run.endpoint), run.since)
            }
            News::RefusalsEnded(run) => {
                format!("ended {} {:?}", self.endpoint(run.endpoint), run.since)
            }
            other => format!("{other:?}"),
        };
        format!("{news} {app} {endpoint} {message:?} {attempt:?}")
    }

    pub(crate) fn app(&self, key: AppKey) -> String {
        format!("app {:?}", self.apps.iter().position(|one| *one == key))
    }

    pub(crate) fn endpoint(&self, key: EndpointKey) -> String {
        format!("endpoint {:?}", self.endpoints.iter().position(|one| *one == key))
    }

    pub(crate) fn message(&self, key: MessageKey) -> String {
        format!("message {:?}", self.messages.iter().position(|one| *one == key))
    }

    pub(crate) fn pending(&self, row: &Pending) -> String {
        let (endpoint, message) = (self.endpoint(row.endpoint), self.message(row.message));
        let plain = Pending { endpoint: EndpointKey(0), message: MessageKey(0), ..*row };
        format!("{message} to {endpoint}: {plain:?}")
    }

    pub(crate) fn whole_message(&self, message: &Message) -> String {
        let from = message.edited_from.map(|id| id.random());
        format!(
            "{} of {}: {:?} {:?} {:?} gone {} at {:?}",
            self.message(message.key),
            self.app(message.app),
            message.id.random(),
            from,
            message.spec,
            message.payload_gone,
            message.accepted_at,
        )
    }

    pub(crate) fn whole_endpoint(&self, endpoint: &Endpoint) -> String {
        let secrets: Vec<_> = (endpoint.secrets.iter())
            .map(|live| (live.secret.to_private_text(), live.expires_at))
            .collect();
        format!(
            "{} of {}: {:?} {} {:?} {secrets:?} version {} at {:?} {:?}",
            self.endpoint(endpoint.key),
            self.app(endpoint.app),
            endpoint.id.random(),
            endpoint.spec.target.as_str(),
            endpoint.spec,
            endpoint.version,
            endpoint.created_at,
            endpoint.updated_at,
        )
    }

    pub(crate) fn attempt(&self, row: &AttemptRow) -> String {
        format!(
            "{} to {} at {}: {:?} {:?} {:?}",
            self.message(row.message),
            self.endpoint(row.endpoint),
            row.url,
            row.id.random(),
            row.attempt,
            row.next,
        )
    }

    pub(crate) fn letter(&self, letter: &DeadLetter) -> String {
        format!(
            "{} {:?} to {} {:?}: {:?} {} {} {:?}, {} sends, {} {:?}, {:?} {:?} {:?}",
            self.message(letter.message),
            letter.message_id.random(),
            self.endpoint(letter.endpoint),
            letter.endpoint_id.random(),
            letter.event_id,
            letter.event_type,
            letter.url,
            letter.reason,
            letter.sends,
            letter.last_status,
            letter.last_error,
            letter.first_attempt_at,
            letter.last_attempt_at,
            letter.dead_at,
        )
    }
}
