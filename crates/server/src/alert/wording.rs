//! Which format a notification is written in, and where it goes.
//!
//! Never: know a format; each has a file of its own.

use std::sync::Arc;

use domain::alert::notice::{Notice, Occasion};
use domain::alert::route::{Channel, Route};
use domain::ids::Kind;
use domain::target::Target;
use engine::alert::{Request, Worded, Wording};
use serde_json::Value;
use store::StoreError;
use webhook::Secret;

use super::request::plain;
use super::{letter, opsgenie, pagerduty, slack, teams, webhook as signed};
use crate::state::random;

/// Words notifications, with a link to the incident where others know how to reach this server.
pub(crate) fn wording(public_url: Option<String>) -> Wording {
    Arc::new(move |route, notice| match &public_url {
        None => worded(route, notice),
        Some(public_url) => worded(route, &linked(notice, public_url)),
    })
}

/// The same with one fact more.
fn linked(notice: &Notice, public_url: &str) -> Notice {
    let mut notice = notice.clone();
    if !matches!(notice.occasion, Occasion::Test | Occasion::TestOver) {
        let incident = notice.incident.text(Kind::Incident);
        let link = format!("{public_url}/api/v1/alert/incident/{incident}");
        notice.facts.push(("link".to_owned(), link));
    }
    notice
}

/// A notification in the format of the channel of its route.
fn worded(route: &Route, notice: &Notice) -> Option<Worded> {
    let keeps_open = matches!(route.channel, Channel::PagerDuty { .. } | Channel::Opsgenie { .. });
    if notice.occasion == Occasion::TestOver && !keeps_open {
        return None;
    }
    Some(match &route.channel {
        Channel::PagerDuty { url, routing_key } => {
            request(url, &pagerduty::event(notice, routing_key))
        }
        Channel::Opsgenie { url, api_key } => opsgenie::request(notice, url, api_key)?,
        Channel::Slack { url } => request(url, &slack::message(notice)),
        Channel::Teams { url } => request(url, &teams::message(notice)),
        Channel::Webhook { url, secret } => {
            let made = plain(url, &signed::payload(notice));
            Worded::Request(Box::new(Request { secret: Some((**secret).clone()), ..made }))
        }
        Channel::Email { .. } => {
            Worded::Letter { subject: letter::subject(notice), text: letter::text(notice) }
        }
    })
}

/// A secret for those who do not verify.
pub(crate) fn secret() -> Result<Secret, StoreError> {
    Ok(Secret::from_random_hmac(random()?))
}

fn request(url: &Target, body: &Value) -> Worded {
    Worded::Request(Box::new(plain(url, body)))
}

#[cfg(test)]
mod tests;
