//! `peyk app`: applications, each of them a customer of yours.
//!
//! Never: a request sent from here.

use clap::{Args, Subcommand, ValueEnum};

use crate::body::{Body, pair};
use crate::call::{Call, Columns};
use crate::failure::Failure;
use crate::options::{Data, Paging, Yes};
use crate::plan::Plan;

const COLUMNS: Columns =
    &[("ID", "/id"), ("UID", "/uid"), ("NAME", "/name"), ("CREATED", "/createdAt")];

/// Applications.
#[derive(Debug, Subcommand)]
pub(crate) enum App {
    /// Lists them, oldest first.
    List {
        #[command(flatten)]
        paging: Paging,
        /// By age.
        #[arg(long, value_enum)]
        order: Option<Order>,
    },
    /// Shows one.
    Get {
        /// Its id or uid.
        app: String,
    },
    /// Makes one.
    Create {
        /// Its name.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        fields: Fields,
        /// Gives the one that has this uid already, if there is one.
        #[arg(long)]
        get_if_exists: bool,
    },
    /// Changes one; what is not named stays.
    Update {
        /// Its id or uid.
        app: String,
        /// Its name.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        fields: Fields,
        /// Clears a field, as it is called in JSON.
        #[arg(long, value_name = "FIELD")]
        unset: Vec<String>,
    },
    /// Deletes one with its endpoints; what waits for them is cancelled.
    Delete {
        /// Its id or uid.
        app: String,
        #[command(flatten)]
        yes: Yes,
    },
}

/// Which comes first.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Order {
    /// The oldest.
    Ascending,
    /// The newest.
    Descending,
}

impl Order {
    /// As the API spells it.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Ascending => "ascending",
            Self::Descending => "descending",
        }
    }
}

/// What is set.
#[derive(Debug, Args)]
pub(crate) struct Fields {
    /// A name of your own, unique, that may stand for the id.
    #[arg(long)]
    uid: Option<String>,
    /// Messages a second; kept and shown.
    #[arg(long, value_name = "N")]
    rate_limit: Option<u32>,
    /// An entry of the metadata; all of them replace what there was.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    metadata: Vec<(String, String)>,
    #[command(flatten)]
    data: Data,
}

impl Fields {
    fn body(&self, name: Option<&String>) -> Result<Body, Failure> {
        let mut body = Body::from_data(self.data.data.as_deref())?;
        body.set_some("name", name)?;
        body.set_some("uid", self.uid.as_ref())?;
        body.set_some("rateLimit", self.rate_limit.as_ref())?;
        body.set_pairs("metadata", &self.metadata)?;
        Ok(body)
    }
}

impl App {
    /// What it comes down to.
    pub(crate) fn plan(self) -> Result<Plan, Failure> {
        Ok(match self {
            Self::List { paging, order } => {
                let call = Call::list(&["app"], COLUMNS);
                Plan::List(call.with("order", order.map(Order::text)), paging)
            }
            Self::Get { app } => Call::get(&["app", &app]).into(),
            Self::Create { name, fields, get_if_exists } => {
                let call = Call::post(&["app"], fields.body(name.as_ref())?);
                call.with_flag("get_if_exists", get_if_exists).into()
            }
            Self::Update { app, name, fields, unset } => {
                let mut body = fields.body(name.as_ref())?;
                body.unset(&unset)?;
                Call::patch(&["app", &app], body).into()
            }
            Self::Delete { app, yes } => {
                Call::delete(&["app", &app], &format!("application {app}"), yes.yes).into()
            }
        })
    }
}
