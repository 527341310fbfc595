//! `peyk dead-letter`: what was given up, and sending it again.
//!
//! Never: a request sent from here.

use clap::{Args, Subcommand};
use resilience::Timestamp;

use crate::body::Body;
use crate::call::{Call, Columns};
use crate::failure::Failure;
use crate::moment::Moment;
use crate::options::{Paging, Yes};
use crate::plan::Plan;

const COLUMNS: Columns = &[
    ("ID", "/id"),
    ("MESSAGE", "/msgId"),
    ("ENDPOINT", "/endpointId"),
    ("EVENT TYPE", "/eventType"),
    ("REASON", "/reason"),
    ("SENDS", "/attempts"),
    ("CODE", "/lastStatusCode"),
    ("DEAD", "/deadAt"),
];

/// Dead letters.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetter {
    /// Lists those of an application, or of all.
    List {
        /// Id or uid of the application; without it of the whole organisation.
        app: Option<String>,
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        paging: Paging,
    },
    /// Shows one with its payload and every attempt.
    Get {
        /// Id or uid of the application.
        app: String,
        /// Its id (`dl_…`).
        letter: String,
    },
    /// Puts one back: due now, its count of sends restarted.
    Replay {
        /// Id or uid of the application.
        app: String,
        /// Its id (`dl_…`).
        letter: String,
        /// Another payload (JSON, `@FILE` or `-`), which makes a new message.
        #[arg(long, value_name = "JSON")]
        payload: Option<String>,
    },
    /// Puts many back, as a background task.
    ReplayMany {
        /// Id or uid of the application.
        app: String,
        #[command(flatten)]
        many: Many,
    },
    /// Deletes one: it is never sent again.
    Delete {
        /// Id or uid of the application.
        app: String,
        /// Its id (`dl_…`).
        letter: String,
        #[command(flatten)]
        yes: Yes,
    },
}

/// What they have in common.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Of this endpoint.
    #[arg(long, value_name = "ENDPOINT")]
    endpoint: Option<String>,
    /// Dead for one of these reasons, with commas between.
    #[arg(long, value_name = "REASON,…", value_delimiter = ',')]
    reason: Vec<String>,
    /// Of this run of refusals, as the breaker of the endpoint shows it.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Of these event types, with commas between.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    event_types: Vec<String>,
}

/// Which are listed.
#[derive(Debug, Args)]
pub(crate) struct Filter {
    #[command(flatten)]
    which: Which,
    /// Dead before this time.
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    before: Option<Moment>,
    /// Dead after this time.
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    after: Option<Moment>,
}

/// Which are put back.
#[derive(Debug, Args)]
pub(crate) struct Many {
    #[command(flatten)]
    which: Which,
    /// Dead since this time.
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    since: Option<Moment>,
    /// Dead until this time.
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    until: Option<Moment>,
    /// Only these (`dl_…`), with commas between.
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    ids: Vec<String>,
    /// Deliveries a second.
    #[arg(long, value_name = "N")]
    rate: Option<u32>,
    /// Only counts them.
    #[arg(long)]
    dry_run: bool,
}

impl DeadLetter {
    /// What it comes down to.
    pub(crate) fn plan(self, now: Timestamp) -> Result<Plan, Failure> {
        Ok(match self {
            Self::List { app, filter, paging } => {
                let text = |moment: Moment| moment.text(now);
                let call = match &app {
                    Some(app) => Call::list(&["app", app, "dead-letter"], COLUMNS),
                    None => Call::list(&["dead-letter"], COLUMNS),
                };
                let call = call
                    .with("endpoint_id", filter.which.endpoint)
                    .with_list("reason", &filter.which.reason)
                    .with_list("event_types", &filter.which.event_types)
                    .with("run_id", filter.which.run)
                    .with("before", filter.before.map(text))
                    .with("after", filter.after.map(text));
                Plan::List(call, paging)
            }
            Self::Get { app, letter } => Call::get(&["app", &app, "dead-letter", &letter]).into(),
            Self::Replay { app, letter, payload } => {
                let mut body = Body::default();
                if let Some(payload) = &payload {
                    body.set_json("payload", "--payload", payload)?;
                }
                Call::post(&["app", &app, "dead-letter", &letter, "replay"], body).into()
            }
            Self::ReplayMany { app, many } => {
                Call::post(&["app", &app, "dead-letter", "replay"], many.body(now)?).into()
            }
            Self::Delete { app, letter, yes } => {
                let path = ["app", &app, "dead-letter", &letter];
                Call::delete(&path, &format!("dead letter {letter}"), yes.yes).into()
            }
        })
    }
}

impl Many {
    fn body(self, now: Timestamp) -> Result<Body, Failure> {
        let text = |moment: Moment| moment.text(now);
        let mut body = Body::default();
        body.set_some("endpointId", self.which.endpoint.as_ref())?;
        body.set_list("reasons", &self.which.reason)?;
        body.set_some("runId", self.which.run.as_ref())?;
        body.set_list("eventTypes", &self.which.event_types)?;
        body.set_some("since", self.since.map(text).as_ref())?;
        body.set_some("until", self.until.map(text).as_ref())?;
        body.set_list("ids", &self.ids)?;
        body.set_some("ratePerS", self.rate.as_ref())?;
        body.set_some("dryRun", self.dry_run.then_some(true).as_ref())?;
        Ok(body)
    }
}
