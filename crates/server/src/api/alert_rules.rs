//! Rules of alerts: list, read, replace, patch, delete.
//!
//! A rule of the settings is there without being set; one that is set under its name replaces it,
//! until it is deleted.
//! Never: take a rule that cannot work.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use domain::alert::rule::Rule;
use domain::limits::ALERT_RULES_MAX;
use http::StatusCode;
use store::page::Direction;

use super::alert_access::{InForce, limit, named, operator};
use super::alert_spec::{Usual, rule_of};
use super::inputs::alert::AlertRuleIn;
use super::inputs::query::Page;
use super::operation::{Operation, Token};
use super::own;
use super::shapes::Patch;
use super::views::alert::AlertRuleOut;
use crate::http::auth::Auth;
use crate::http::extract::{Place, Received};
use crate::http::fields::Fields;
use crate::http::idempotency::Answer;
use crate::http::paging::{ListOut, Paging};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::state::Shared;

type Answered = Result<Response, Problem>;

pub(super) const LIST: Operation =
    Operation::new("v1.alert.rule.list", "Lists the rules of alerts, those of the settings too.")
        .token(Token::Org)
        .query::<Page>()
        .gives::<ListOut<AlertRuleOut>>(200);

/// `GET /alert/rule`
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    query: Query,
) -> Answered {
    operator(&shared, &caller)?;
    let all = InForce::read(&shared).await?;
    let seal = shared.iterators.of("rules", caller.org, &[]);
    let paging = Paging::fixed(&query, Direction::Ascending, seal)?;
    let is_row = async |name: String| Ok(all.rules.iter().any(|rule| rule.name == name));
    let page = paging.page(|name| Some(name.to_owned()), is_row).await?;
    let rows = Paging::cut(&page, all.rules.clone(), |rule| rule.name.clone());
    let list = paging.frame(rows, |rule| rule.name.clone());
    let list = list.map(|rule| shown(&rule, &all));
    Ok(Answer::json(StatusCode::OK, &list).into_response())
}

pub(super) const READ: Operation = Operation::new("v1.alert.rule.get", "Shows a rule of alerts.")
    .token(Token::Org)
    .gives::<AlertRuleOut>(200);

/// `GET /alert/rule/{rule}`
pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(name): Place<String>,
) -> Answered {
    operator(&shared, &caller)?;
    let all = InForce::read(&shared).await?;
    let rule = find(&all, &name)?;
    Ok(Answer::json(StatusCode::OK, &shown(rule, &all)).into_response())
}

pub(super) const PUT: Operation =
    Operation::new("v1.alert.rule.update", "Sets a rule of alerts, or replaces it.")
        .token(Token::Org)
        .takes::<AlertRuleIn>()
        .gives::<AlertRuleOut>(200)
        .gives::<AlertRuleOut>(201)
        .or("limit_reached");

/// `PUT /alert/rule/{rule}`
pub(super) async fn put(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(name): Place<String>,
    received: Received,
) -> Answered {
    operator(&shared, &caller)?;
    named("rule", &name)?;
    let _edit = shared.edits.lock().await;
    let all = InForce::read(&shared).await?;
    let usual = Usual { rules: &shared.settings.alerts.rules, routes: all.route_names() };
    let rule = rule_of(Fields::parse(&received.body)?, &name, None, &usual)?;
    if !all.own_rules.contains(&name) {
        limit(all.own_rules.len(), ALERT_RULES_MAX, "rules")?;
    }
    let status = if find(&all, &name).is_ok() { StatusCode::OK } else { StatusCode::CREATED };
    kept(&shared, rule, status).await
}

pub(super) const PATCH: Operation =
    Operation::new("v1.alert.rule.patch", "Changes what is named of a rule of alerts.")
        .token(Token::Org)
        .takes::<Patch<AlertRuleIn>>()
        .gives::<AlertRuleOut>(200)
        .or("limit_reached");

/// `PATCH /alert/rule/{rule}`
pub(super) async fn patch(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(name): Place<String>,
    received: Received,
) -> Answered {
    operator(&shared, &caller)?;
    let _edit = shared.edits.lock().await;
    let all = InForce::read(&shared).await?;
    let old = find(&all, &name)?;
    let usual = Usual { rules: &shared.settings.alerts.rules, routes: all.route_names() };
    let rule = rule_of(Fields::parse(&received.body)?, &name, Some(old), &usual)?;
    if !all.own_rules.contains(&name) {
        limit(all.own_rules.len(), ALERT_RULES_MAX, "rules")?;
    }
    kept(&shared, rule, StatusCode::OK).await
}

pub(super) const DELETE: Operation = Operation::new(
    "v1.alert.rule.delete",
    "Deletes a rule of alerts that was set; one of the settings is in force again.",
)
.token(Token::Org)
.ends(204);

/// `DELETE /alert/rule/{rule}`
pub(super) async fn delete(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(name): Place<String>,
) -> Answered {
    operator(&shared, &caller)?;
    if !shared.engine.stores().alerts.delete_rule(name).await? {
        return Err(own::missing());
    }
    shared.engine.alerts_changed();
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn kept(shared: &Shared, rule: Rule, status: StatusCode) -> Answered {
    shared.engine.stores().alerts.put_rule(rule.clone()).await?;
    shared.engine.alerts_changed();
    Ok(Answer::json(status, &AlertRuleOut::new(&rule, true)).into_response())
}

fn find<'a>(all: &'a InForce, name: &str) -> Result<&'a Rule, Problem> {
    all.rules.iter().find(|rule| rule.name == name).ok_or_else(own::missing)
}

fn shown(rule: &Rule, all: &InForce) -> AlertRuleOut {
    AlertRuleOut::new(rule, all.own_rules.contains(&rule.name))
}
