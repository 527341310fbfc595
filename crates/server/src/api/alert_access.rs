//! Who may reach alerts, and what is in force of them.
//!
//! Alerts are about the whole installation: they name endpoints of every organisation. So they are
//! for tokens of one organisation, the operator's, which the settings name.
//! Never: lead an application's token, or another organisation's, to any of it.

use std::collections::BTreeSet;

use domain::alert::evaluate::Standing;
use domain::alert::route::{self, Route, Silence};
use domain::alert::rule::{self, Rule};
use domain::error::Invalid;
use domain::limits::ALERT_HOLD_DOWN;

use crate::http::problem::Problem;
use crate::http::tokens::Caller;
use crate::state::Shared;

/// Refuses whoever is no operator.
pub(super) fn operator(shared: &Shared, caller: &Caller) -> Result<(), Problem> {
    caller.org_only()?;
    if caller.org == shared.settings.alerts.operator { Ok(()) } else { Err(Problem::forbidden()) }
}

/// Everything that was set, by the settings or over the API.
pub(super) struct InForce {
    /// Rules, by name.
    pub(super) rules: Vec<Rule>,
    /// Routes, by name.
    pub(super) routes: Vec<Route>,
    /// Silences that are not over.
    pub(super) silences: Vec<Silence>,
    /// Names of rules that were set over the API.
    pub(super) own_rules: BTreeSet<String>,
    /// Names of routes that were set over the API.
    pub(super) own_routes: BTreeSet<String>,
    standing: Standing,
}

impl InForce {
    /// As it is now.
    pub(super) async fn read(shared: &Shared) -> Result<Self, Problem> {
        let (now, stores) = (shared.now(), shared.engine.stores());
        let stored = stores.alerts.configured(now.minus(ALERT_HOLD_DOWN)).await?;
        let settings = &shared.settings.alerts;
        let standing = Standing {
            routes: route::names(&settings.routes, &stored.routes),
            installation: stores.directory.installation(),
            ..Standing::default()
        };
        Ok(Self {
            own_rules: stored.rules.iter().map(|rule| rule.name.clone()).collect(),
            own_routes: stored.routes.iter().map(|route| route.name.clone()).collect(),
            rules: rule::in_force(&settings.rules, stored.rules),
            routes: route::in_force(&settings.routes, stored.routes),
            silences: stored.silences.into_iter().filter(|it| it.until > now).collect(),
            standing,
        })
    }

    /// The names of all routes.
    pub(super) fn route_names(&self) -> &[String] {
        &self.standing.routes
    }

    /// For what is told by hand.
    pub(super) const fn standing(&self) -> &Standing {
        &self.standing
    }
}

/// Refuses one more of what there are enough of.
pub(super) fn limit(count: usize, most: usize, what: &str) -> Result<(), Problem> {
    if count < most {
        return Ok(());
    }
    Err(Problem::bad_request("limit_reached", format!("There are at most {most} {what}")))
}

/// Refuses a name in a path that nothing can have.
pub(super) fn named(part: &str, name: &str) -> Result<(), Problem> {
    rule::name(part, name)
        .map_err(|fault: Invalid| Problem::field(&["path", part], fault.rule, fault.kind))
}
