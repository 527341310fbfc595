//! `peyk attempt`: what was sent and what came back.
//!
//! Never: a request sent from here.

use clap::{Args, Subcommand, ValueEnum};
use resilience::Timestamp;

use crate::body::Body;
use crate::call::{Call, Columns, View};
use crate::moment::Moment;
use crate::options::Paging;
use crate::plan::Plan;

const COLUMNS: Columns = &[
    ("ID", "/id"),
    ("MESSAGE", "/msgId"),
    ("ENDPOINT", "/endpointId"),
    ("NO", "/number"),
    ("STATUS", "/statusText"),
    ("CODE", "/responseStatusCode"),
    ("MS", "/responseDurationMs"),
    ("TIME", "/timestamp"),
    ("ERROR", "/error"),
];

/// Attempts.
#[derive(Debug, Subcommand)]
pub(crate) enum Attempt {
    /// Lists those of a message, or to an endpoint, newest first.
    List {
        /// Id or uid of the application.
        app: String,
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        paging: Paging,
    },
    /// Shows one with the body of the answer.
    Get {
        /// Id or uid of the application.
        app: String,
        /// Id or eventId of the message.
        message: String,
        /// Its id.
        attempt: String,
    },
    /// Sends a message to an endpoint once more, now.
    Resend {
        /// Id or uid of the application.
        app: String,
        /// Id or eventId of the message.
        message: String,
        /// Id or uid of the endpoint.
        endpoint: String,
    },
}

/// Which are listed.
#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// Of this message.
    #[arg(long, value_name = "MESSAGE", required_unless_present = "endpoint")]
    message: Option<String>,
    /// To this endpoint.
    #[arg(long, value_name = "ENDPOINT")]
    endpoint: Option<String>,
    /// That ended like this.
    #[arg(long, value_enum)]
    status: Option<Status>,
    /// With an answer of this class: 0 for none, 100, 200, 300, 400, 500.
    #[arg(long, value_name = "CLASS")]
    code_class: Option<u16>,
    /// Of these event types, with commas between.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    event_types: Vec<String>,
    /// Before this time.
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    before: Option<Moment>,
    /// After this time.
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    after: Option<Moment>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Status {
    /// With a 2xx.
    Success,
    /// Otherwise.
    Fail,
}

impl Attempt {
    /// What it comes down to.
    pub(crate) fn plan(self, now: Timestamp) -> Plan {
        match self {
            Self::List { app, filter, paging } => Plan::List(filter.call(&app, now), paging),
            Self::Get { app, message, attempt } => {
                Call::get(&["app", &app, "msg", &message, "attempt", &attempt]).into()
            }
            Self::Resend { app, message, endpoint } => {
                let path = ["app", &app, "msg", &message, "endpoint", &endpoint, "resend"];
                let said = format!("{message} is sent to {endpoint} once more");
                Call::post(&path, Body::default()).shown(View::Said(said)).into()
            }
        }
    }
}

impl Filter {
    fn call(self, app: &str, now: Timestamp) -> Call {
        let text = |moment: Moment| moment.text(now);
        let (call, endpoint) = match (&self.message, self.endpoint) {
            (Some(message), endpoint) => {
                (Call::list(&["app", app, "attempt", "msg", message], COLUMNS), endpoint)
            }
            (None, endpoint) => {
                let endpoint = endpoint.unwrap_or_default();
                (Call::list(&["app", app, "attempt", "endpoint", &endpoint], COLUMNS), None)
            }
        };
        let status = self.status.map(|status| match status {
            Status::Success => 0,
            Status::Fail => 2,
        });
        call.with("endpoint_id", endpoint)
            .with("status", status)
            .with("status_code_class", self.code_class)
            .with_list("event_types", &self.event_types)
            .with("before", self.before.map(text))
            .with("after", self.after.map(text))
    }
}
