//! `peyk alert`: incidents, rules, routes and silences of alerts.
//!
//! Never: a request sent from here.

use clap::{Args, Subcommand};

use crate::body::Body;
use crate::call::{Call, Columns};
use crate::failure::Failure;
use crate::options::{Data, Paging, Yes};
use crate::plan::Plan;

const INCIDENTS: Columns = &[
    ("ID", "/id"),
    ("RULE", "/rule"),
    ("SEVERITY", "/severity"),
    ("STATUS", "/status"),
    ("SINCE", "/since"),
    ("ACKNOWLEDGED", "/acknowledgedAt"),
    ("RESOLVED", "/resolvedAt"),
    ("TITLE", "/title"),
];
const RULES: Columns = &[
    ("NAME", "/name"),
    ("CONDITION", "/condition"),
    ("SEVERITY", "/severity"),
    ("ENABLED", "/enabled"),
    ("ABOVE", "/above"),
    ("WINDOW", "/window"),
    ("AFTER", "/after"),
    ("HOLD", "/hold"),
    ("SOURCE", "/source"),
];
const ROUTES: Columns = &[
    ("NAME", "/name"),
    ("CHANNEL", "/channel"),
    ("ORIGIN", "/origin"),
    ("CREDENTIAL", "/credential"),
    ("SOURCE", "/source"),
    ("DISABLED", "/delivery/disabled"),
    ("WAITING", "/delivery/waiting"),
    ("LAST", "/delivery/lastAttempt/statusCode"),
];
const SILENCES: Columns = &[
    ("ID", "/id"),
    ("RULE", "/rule"),
    ("ENDPOINT", "/endpointId"),
    ("UNTIL", "/until"),
    ("COMMENT", "/comment"),
];

/// Alerts.
#[derive(Debug, Subcommand)]
pub(crate) enum Alert {
    /// Lists incidents, newest first.
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// Shows an incident.
    Get {
        /// Its id.
        incident: String,
    },
    /// Says that somebody looks at an incident; its routes are told.
    Acknowledge {
        /// Its id.
        incident: String,
    },
    /// Sends a trial on a route, and says what it was answered.
    Test {
        /// Its name.
        route: String,
    },
    /// Rules: list, get, set, update, delete.
    #[command(subcommand)]
    Rule(Rule),
    /// Routes: list, get, set, update, delete.
    #[command(subcommand)]
    Route(Route),
    /// Silences: list, add, end.
    #[command(subcommand)]
    Silence(Silence),
}

/// Rules of alerts.
#[derive(Debug, Subcommand)]
pub(crate) enum Rule {
    /// Lists them, those of the settings too.
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// Shows one.
    Get {
        /// Its name.
        rule: String,
    },
    /// Sets one, or replaces it; figures that are not named are those of the settings.
    Set {
        /// Its name.
        rule: String,
        #[command(flatten)]
        fields: RuleFields,
    },
    /// Changes one; what is not named stays.
    Update {
        /// Its name.
        rule: String,
        #[command(flatten)]
        fields: RuleFields,
        /// Clears a field, as it is called in JSON.
        #[arg(long, value_name = "FIELD")]
        unset: Vec<String>,
    },
    /// Deletes one that was set; that of the settings is in force again.
    Delete {
        /// Its name.
        rule: String,
        #[command(flatten)]
        yes: Yes,
    },
}

/// What is set of a rule.
#[derive(Debug, Args)]
pub(crate) struct RuleFields {
    /// What is watched, such as `dead_letters`.
    #[arg(long)]
    condition: Option<String>,
    /// It fires above this.
    #[arg(long, value_name = "N")]
    above: Option<u64>,
    /// Counted over so long.
    #[arg(long, value_name = "SPAN")]
    window: Option<String>,
    /// It fires after so long.
    #[arg(long, value_name = "SPAN")]
    after: Option<String>,
    /// With fewer nothing is said.
    #[arg(long, value_name = "N")]
    count_min: Option<u64>,
    /// Reasons of dead letters.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    reasons: Vec<String>,
    /// How bad it is: `low`, `medium`, `high`, `critical`.
    #[arg(long)]
    severity: Option<String>,
    /// Whether it is watched.
    #[arg(long, value_name = "true|false")]
    enabled: Option<bool>,
    /// It fires once it has held so long.
    #[arg(long, value_name = "SPAN")]
    hold: Option<String>,
    /// Names of the routes it is told on.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    routes: Vec<String>,
    /// Its title.
    #[arg(long)]
    title: Option<String>,
    /// What to read about it.
    #[arg(long, value_name = "URL")]
    runbook_url: Option<String>,
    #[command(flatten)]
    data: Data,
}

/// Routes of alerts.
#[derive(Debug, Subcommand)]
pub(crate) enum Route {
    /// Lists them, those of the settings too.
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// Shows one, with what became of the last notification on it.
    Get {
        /// Its name.
        route: String,
    },
    /// Sets one, or replaces it.
    Set {
        /// Its name.
        route: String,
        #[command(flatten)]
        fields: RouteFields,
    },
    /// Changes one; what is not named stays.
    Update {
        /// Its name.
        route: String,
        #[command(flatten)]
        fields: RouteFields,
    },
    /// Deletes one that was set, and what waits for it.
    Delete {
        /// Its name.
        route: String,
        #[command(flatten)]
        yes: Yes,
    },
}

/// What is set of a route. A key is better given by `--data @FILE`: other users of the machine see
/// options.
#[derive(Debug, Args)]
pub(crate) struct RouteFields {
    /// `pagerduty`, `opsgenie`, `slack`, `teams`, `webhook` or `email`.
    #[arg(long)]
    channel: Option<String>,
    /// Where it goes over HTTP.
    #[arg(long)]
    url: Option<String>,
    /// Addresses of `email`.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    to: Vec<String>,
    #[command(flatten)]
    data: Data,
}

/// Silences.
#[derive(Debug, Subcommand)]
pub(crate) enum Silence {
    /// Lists those that are not over.
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// Tells nobody of a rule, an endpoint or anything, for a while.
    Add {
        /// For so long, such as `2h`.
        duration: String,
        /// Of this rule.
        #[arg(long)]
        rule: Option<String>,
        /// Of the endpoint with this id.
        #[arg(long, value_name = "ID")]
        endpoint: Option<String>,
        /// Why.
        #[arg(long)]
        comment: Option<String>,
    },
    /// Ends one.
    End {
        /// Its id.
        silence: String,
        #[command(flatten)]
        yes: Yes,
    },
}

/// What a command comes down to, or the route of a trial.
pub(crate) enum Does {
    Plan(Plan),
    Test(String),
}

impl Alert {
    /// What it comes down to.
    pub(crate) fn plan(self) -> Result<Does, Failure> {
        let plan = match self {
            Self::Test { route } => return Ok(Does::Test(route)),
            Self::List { paging } => {
                Plan::List(Call::list(&["alert", "incident"], INCIDENTS), paging)
            }
            Self::Get { incident } => Call::get(&["alert", "incident", &incident]).into(),
            Self::Acknowledge { incident } => {
                let path = ["alert", "incident", &incident, "acknowledge"];
                Call::post(&path, Body::default()).into()
            }
            Self::Rule(rule) => rule.plan()?,
            Self::Route(route) => route.plan()?,
            Self::Silence(silence) => silence.plan()?,
        };
        Ok(Does::Plan(plan))
    }
}

impl Rule {
    fn plan(self) -> Result<Plan, Failure> {
        let path = ["alert", "rule"];
        Ok(match self {
            Self::List { paging } => Plan::List(Call::list(&path, RULES), paging),
            Self::Get { rule } => Call::get(&["alert", "rule", &rule]).into(),
            Self::Set { rule, fields } => {
                Call::put(&["alert", "rule", &rule], fields.body()?).into()
            }
            Self::Update { rule, fields, unset } => {
                let mut body = fields.body()?;
                body.unset(&unset)?;
                Call::patch(&["alert", "rule", &rule], body).into()
            }
            Self::Delete { rule, yes } => {
                let what = format!("rule {rule}");
                Call::delete(&["alert", "rule", &rule], &what, yes.yes).into()
            }
        })
    }
}

impl RuleFields {
    fn body(&self) -> Result<Body, Failure> {
        let mut body = Body::from_data(self.data.data.as_deref())?;
        body.set_some("condition", self.condition.as_ref())?;
        body.set_some("above", self.above.as_ref())?;
        body.set_some("window", self.window.as_ref())?;
        body.set_some("after", self.after.as_ref())?;
        body.set_some("countMin", self.count_min.as_ref())?;
        body.set_list("reasons", &self.reasons)?;
        body.set_some("severity", self.severity.as_ref())?;
        body.set_some("enabled", self.enabled.as_ref())?;
        body.set_some("hold", self.hold.as_ref())?;
        body.set_list("routes", &self.routes)?;
        body.set_some("title", self.title.as_ref())?;
        body.set_some("runbookUrl", self.runbook_url.as_ref())?;
        Ok(body)
    }
}

impl Route {
    fn plan(self) -> Result<Plan, Failure> {
        let path = ["alert", "route"];
        Ok(match self {
            Self::List { paging } => Plan::List(Call::list(&path, ROUTES), paging),
            Self::Get { route } => Call::get(&["alert", "route", &route]).into(),
            Self::Set { route, fields } => {
                Call::put(&["alert", "route", &route], fields.body()?).into()
            }
            Self::Update { route, fields } => {
                Call::patch(&["alert", "route", &route], fields.body()?).into()
            }
            Self::Delete { route, yes } => {
                let what = format!("route {route}");
                Call::delete(&["alert", "route", &route], &what, yes.yes).into()
            }
        })
    }
}

impl RouteFields {
    fn body(&self) -> Result<Body, Failure> {
        let mut body = Body::from_data(self.data.data.as_deref())?;
        body.set_some("channel", self.channel.as_ref())?;
        body.set_some("url", self.url.as_ref())?;
        body.set_list("to", &self.to)?;
        Ok(body)
    }
}

impl Silence {
    fn plan(self) -> Result<Plan, Failure> {
        let path = ["alert", "silence"];
        Ok(match self {
            Self::List { paging } => Plan::List(Call::list(&path, SILENCES), paging),
            Self::Add { duration, rule, endpoint, comment } => {
                let mut body = Body::default();
                body.set("duration", &duration)?;
                body.set_some("rule", rule.as_ref())?;
                body.set_some("endpointId", endpoint.as_ref())?;
                body.set_some("comment", comment.as_ref())?;
                Call::post(&path, body).into()
            }
            Self::End { silence, yes } => {
                let what = format!("silence {silence}");
                let ends = Call::delete(&["alert", "silence", &silence], &what, yes.yes);
                ends.asking(format!("end {what}"), format!("{what} is over")).into()
            }
        })
    }
}
