//! `peyk task`: background tasks.
//!
//! Never: a request sent from here.

use clap::{Subcommand, ValueEnum};

use crate::body::Body;
use crate::call::{Call, Columns};
use crate::options::Paging;
use crate::plan::Plan;

const COLUMNS: Columns = &[
    ("ID", "/id"),
    ("TASK", "/task"),
    ("BY ITSELF", "/data/automatic"),
    ("STATUS", "/status"),
    ("DONE", "/data/done"),
    ("OF", "/data/total"),
    ("FAILED", "/data/failed"),
    ("UPDATED", "/updatedAt"),
];

/// Background tasks.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Lists them, newest first.
    List {
        #[command(flatten)]
        paging: Paging,
        /// Those that stand like this.
        #[arg(long, value_enum)]
        status: Option<Status>,
        /// Of this kind, such as `endpoint.recover`.
        #[arg(long, value_name = "KIND")]
        kind: Option<String>,
    },
    /// Shows one.
    Get {
        /// Its id.
        task: String,
    },
    /// Ends one; what it put out already is still sent.
    Cancel {
        /// Its id.
        task: String,
    },
}

/// How a task stands.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Status {
    /// It goes on.
    Running,
    /// All is done.
    Finished,
    /// It could not go on, or was cancelled.
    Failed,
}

impl Task {
    /// What it comes down to.
    pub(crate) fn plan(self) -> Plan {
        match self {
            Self::List { paging, status, kind } => {
                let status = status.map(|status| match status {
                    Status::Running => "running",
                    Status::Finished => "finished",
                    Status::Failed => "failed",
                });
                let call = Call::list(&["background-task"], COLUMNS);
                Plan::List(call.with("status", status).with("task", kind), paging)
            }
            Self::Get { task } => Call::get(&["background-task", &task]).into(),
            Self::Cancel { task } => {
                Call::post(&["background-task", &task, "cancel"], Body::default()).into()
            }
        }
    }
}
