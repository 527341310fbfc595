//! Routes: where notifications go; and silences: when they do not.
//!
//! Never: show a credential; `Debug` leaves all of them out.

use std::fmt;

use resilience::Timestamp;
use webhook::Secret;

use crate::email::EmailAddress;
use crate::ids::PublicId;
use crate::target::Target;

/// Where events go to PagerDuty unless a route says otherwise.
pub const PAGERDUTY_URL: &str = "https://events.pagerduty.com/v2/enqueue";
/// Where alerts go to Opsgenie unless a route says otherwise.
pub const OPSGENIE_URL: &str = "https://api.opsgenie.com/v2/alerts";

/// A way to people, with what it needs.
#[derive(Clone)]
pub enum Channel {
    /// Events API v2.
    PagerDuty {
        /// Where events go.
        url: Target,
        /// The key of the integration.
        routing_key: String,
    },
    /// The alert API.
    Opsgenie {
        /// Where alerts go; what is done to one goes below it.
        url: Target,
        /// The key of the integration.
        api_key: String,
    },
    /// An incoming webhook.
    Slack {
        /// Its address, which is a credential.
        url: Target,
    },
    /// A workflow that starts with a webhook.
    Teams {
        /// Its address, which is a credential.
        url: Target,
    },
    /// Anybody who verifies Standard Webhooks.
    Webhook {
        /// Where it goes.
        url: Target,
        /// What it is signed with.
        secret: Box<Secret>,
    },
    /// Plain letters.
    Email {
        /// Whom they go to.
        to: Vec<EmailAddress>,
    },
}

impl Channel {
    /// The names of all channels.
    pub const NAMES: [&'static str; 6] =
        ["pagerduty", "opsgenie", "slack", "teams", "webhook", "email"];

    /// Its stable name.
    pub const fn name(&self) -> &'static str {
        Self::NAMES[match self {
            Self::PagerDuty { .. } => 0,
            Self::Opsgenie { .. } => 1,
            Self::Slack { .. } => 2,
            Self::Teams { .. } => 3,
            Self::Webhook { .. } => 4,
            Self::Email { .. } => 5,
        }]
    }

    /// Where it goes over HTTP.
    pub const fn url(&self) -> Option<&Target> {
        match self {
            Self::PagerDuty { url, .. }
            | Self::Opsgenie { url, .. }
            | Self::Slack { url }
            | Self::Teams { url }
            | Self::Webhook { url, .. } => Some(url),
            Self::Email { .. } => None,
        }
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL shows its origin only.
        f.debug_struct("Channel").field("kind", &self.name()).field("url", &self.url()).finish()
    }
}

/// A route.
#[derive(Clone, Debug)]
pub struct Route {
    /// Its name, which rules name it by.
    pub name: String,
    /// The way.
    pub channel: Channel,
}

/// The routes of the settings, each replaced by the stored one of its name; then the other stored
/// ones.
pub fn in_force(settings: &[Route], stored: Vec<Route>) -> Vec<Route> {
    let own = |route: &&Route| stored.iter().all(|it| it.name != route.name);
    let mut all: Vec<_> = settings.iter().filter(own).cloned().collect();
    all.extend(stored);
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// The names of the routes of both.
pub fn names(settings: &[Route], stored: &[Route]) -> Vec<String> {
    let mut names: Vec<_> = settings.iter().chain(stored).map(|it| it.name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A time in which nobody is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Public id, `sil_…`.
    pub id: PublicId,
    /// Of this rule; `None` for all.
    pub rule: Option<String>,
    /// Of this endpoint; `None` for everything.
    pub endpoint: Option<PublicId>,
    /// From when.
    pub from: Timestamp,
    /// Until when.
    pub until: Timestamp,
    /// Why.
    pub comment: String,
}

impl Silence {
    fn holds(&self, rule: &str, now: Timestamp) -> bool {
        self.from <= now && now < self.until && self.rule.as_ref().is_none_or(|of| of == rule)
    }

    /// Whether nothing is told of a rule.
    pub fn covers_rule(&self, rule: &str, now: Timestamp) -> bool {
        self.endpoint.is_none() && self.holds(rule, now)
    }

    /// Whether an endpoint does not count for a rule.
    pub fn covers_endpoint(&self, rule: &str, endpoint: PublicId, now: Timestamp) -> bool {
        self.endpoint == Some(endpoint) && self.holds(rule, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_covers_what_it_names_as_long_as_it_lasts() {
        let (endpoint, other) = (PublicId::new(1, [1; 12]), PublicId::new(2, [2; 12]));
        let at = Timestamp::from_secs;
        let of = |rule: Option<&str>, endpoint| Silence {
            id: PublicId::new(3, [3; 12]),
            rule: rule.map(str::to_owned),
            endpoint,
            from: at(10),
            until: at(20),
            comment: String::new(),
        };
        let all = of(None, None);
        assert!(all.covers_rule("a", at(10)) && all.covers_rule("b", at(19)));
        assert!(!all.covers_rule("a", at(9)) && !all.covers_rule("a", at(20)));
        let one = of(Some("a"), None);
        assert!(one.covers_rule("a", at(10)) && !one.covers_rule("b", at(10)));
        let sick = of(None, Some(endpoint));
        assert!(!sick.covers_rule("a", at(10)));
        assert!(sick.covers_endpoint("a", endpoint, at(10)));
        assert!(!sick.covers_endpoint("a", other, at(10)));
        assert!(!of(Some("b"), Some(endpoint)).covers_endpoint("a", endpoint, at(10)));
    }

    #[test]
    fn no_credential_is_shown() {
        let url = Target::parse("url", "https://hooks.example/T0/secret", false).unwrap();
        let channels = [
            Channel::Slack { url: url.clone() },
            Channel::PagerDuty { url: url.clone(), routing_key: "secret".into() },
            Channel::Opsgenie { url, api_key: "secret".into() },
        ];
        for channel in channels {
            let shown = format!("{:?}", Route { name: "ops".into(), channel });
            assert!(!shown.contains("secret") && shown.contains("hooks.example"), "{shown}");
        }
    }
}
