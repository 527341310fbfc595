//! Steps that change the directory.
//!
//! Never: a step that changes a delivery.

use domain::endpoint::{Disabled, EndpointSpec};
use domain::event_type::EventType;
use store::conformance::samples;
use store::conformance::world::ORG;
use store::directory::{EndpointChange, NewEndpoint};

use super::{Step, pick, random};
use crate::model::names::Side;

fn uid(number: Option<u8>) -> Option<String> {
    number.map(|number| format!("uid-{number}"))
}

fn change(what: u8, number: Option<u8>) -> EndpointChange {
    let mut change = EndpointChange::default();
    match what {
        0 => change.disabled = Some(Some(Disabled::ByOwner)),
        1 => change.disabled = Some(None),
        2 => change.secrets = Some(vec![samples::secret(4), samples::secret(5)]),
        3 => change.spec = Some(EndpointSpec { uid: uid(number), ..samples::full_endpoint() }),
        _ => {
            let target = samples::target(&format!("https://example.org/{number:?}"));
            change.spec = Some(EndpointSpec { uid: uid(number), target, ..samples::endpoint() });
        }
    }
    change
}

impl Side {
    pub(super) async fn change_directory(&mut self, step: &Step, number: u64) -> String {
        let directory = std::sync::Arc::clone(&self.world.stores.directory);
        match *step {
            Step::CreateApp { uid: name } => {
                let spec = samples::app(uid(name).as_deref());
                let made = directory.create_app(ORG, spec, random(number, 0)).await;
                made.map_or_else(
                    |refusal| format!("{refusal:?}"),
                    |made| {
                        self.apps.push(made.key);
                        format!("{} {:?} {}", self.app(made.key), made.spec, made.version)
                    },
                )
            }
            Step::UpdateApp { app, uid: name } => {
                let Some(app) = pick(&self.apps, app) else { return String::new() };
                let spec = samples::app(uid(name).as_deref());
                let made = directory.update_app(app, spec).await;
                format!("{:?}", made.map(|made| (made.spec.clone(), made.version, made.updated_at)))
            }
            Step::DeleteApp { app } => {
                let Some(app) = pick(&self.apps, app) else { return String::new() };
                format!("{:?}", directory.delete_app(app).await)
            }
            Step::CreateEndpoint { app, uid: name, full } => {
                let Some(app) = pick(&self.apps, app) else { return String::new() };
                let spec = if full { samples::full_endpoint() } else { samples::endpoint() };
                let spec = EndpointSpec { uid: uid(name), ..spec };
                let secret = samples::secret(name.unwrap_or(0));
                let new = NewEndpoint { app, spec, secret, random: random(number, 0) };
                let made = directory.create_endpoint(new).await;
                made.map_or_else(
                    |refusal| format!("{refusal:?}"),
                    |made| {
                        self.endpoints.push(made.key);
                        self.whole_endpoint(&made)
                    },
                )
            }
            Step::ChangeEndpoint { endpoint, uid, what } => {
                let Some(key) = pick(&self.endpoints, endpoint) else { return String::new() };
                let made = directory.change_endpoint(key, change(what, uid)).await;
                format!("{:?}", made.map(|made| self.whole_endpoint(&made)))
            }
            Step::DeleteEndpoint { endpoint } => {
                let Some(key) = pick(&self.endpoints, endpoint) else { return String::new() };
                format!("{:?}", directory.delete_endpoint(key).await)
            }
            Step::EventType { name, what } => self.change_event_type(name, what).await,
            _ => String::new(),
        }
    }

    async fn change_event_type(&self, name: u8, what: u8) -> String {
        let directory = &self.world.stores.directory;
        let name = format!("type-{name}");
        let created_at = self.world.now();
        let row = EventType { created_at, ..samples::event_type(&name) };
        match what {
            0 | 1 => format!("{:?}", directory.create_event_type(ORG, row).await),
            2 => {
                let row = EventType { archived: true, ..row };
                format!("{:?}", directory.update_event_type(ORG, row).await)
            }
            _ => format!("{:?}", directory.delete_event_type(ORG, name).await),
        }
    }
}
