//! `peyk event-type`: the names that events go by, and their schemas.
//!
//! Never: a schema changed on its way.

use clap::{Args, Subcommand};

use crate::body::{Body, text_of};
use crate::call::{Call, Columns};
use crate::failure::Failure;
use crate::options::{Data, Paging, Yes};
use crate::plan::Plan;

const COLUMNS: Columns = &[
    ("NAME", "/name"),
    ("ARCHIVED", "/archived"),
    ("DEPRECATED", "/deprecated"),
    ("FEATURE FLAG", "/featureFlag"),
    ("DESCRIPTION", "/description"),
];

/// Event types.
#[derive(Debug, Subcommand)]
pub(crate) enum EventType {
    /// Lists them.
    List {
        #[command(flatten)]
        paging: Paging,
        /// Archived ones, too.
        #[arg(long)]
        archived: bool,
        /// With schemas, which only JSON shows.
        #[arg(long)]
        content: bool,
    },
    /// Shows one with its schemas.
    Get {
        /// Its name.
        name: String,
    },
    /// Makes one, or brings an archived one back.
    Create {
        /// Its name.
        name: String,
        #[command(flatten)]
        fields: Fields,
    },
    /// Changes one; what is not named stays.
    Update {
        /// Its name.
        name: String,
        #[command(flatten)]
        fields: Fields,
        /// Clears a field, as it is called in JSON.
        #[arg(long, value_name = "FIELD")]
        unset: Vec<String>,
    },
    /// Archives one; with --expunge removes it for good.
    Delete {
        /// Its name.
        name: String,
        /// Removes it for good: an archived one can be brought back, such a one cannot.
        #[arg(long)]
        expunge: bool,
        #[command(flatten)]
        yes: Yes,
    },
    /// Makes them from an OpenAPI document.
    ImportOpenapi {
        /// The document, JSON or YAML: a file, or `-` for standard input.
        file: String,
        /// Only says what would change.
        #[arg(long)]
        dry_run: bool,
        /// Archives those that the document does not have.
        #[arg(long)]
        replace_all: bool,
    },
}

/// What is set.
#[derive(Debug, Args)]
pub(crate) struct Fields {
    /// For people.
    #[arg(long)]
    description: Option<String>,
    /// Its schemas, from version to JSON Schema: JSON, `@FILE` or `-`.
    #[arg(long, value_name = "JSON")]
    schemas: Option<String>,
    /// Seen only by tokens of applications with this flag.
    #[arg(long, value_name = "FLAG")]
    feature_flag: Option<String>,
    /// Whether new endpoints may not name it.
    #[arg(long, value_name = "true|false")]
    archived: Option<bool>,
    /// Whether it is on its way out.
    #[arg(long, value_name = "true|false")]
    deprecated: Option<bool>,
    #[command(flatten)]
    data: Data,
}

impl Fields {
    fn body(&self) -> Result<Body, Failure> {
        let mut body = Body::from_data(self.data.data.as_deref())?;
        body.set_some("description", self.description.as_ref())?;
        if let Some(schemas) = &self.schemas {
            body.set_json("schemas", "--schemas", schemas)?;
        }
        body.set_some("featureFlag", self.feature_flag.as_ref())?;
        body.set_some("archived", self.archived.as_ref())?;
        body.set_some("deprecated", self.deprecated.as_ref())?;
        Ok(body)
    }
}

impl EventType {
    /// What it comes down to.
    pub(crate) fn plan(self) -> Result<Plan, Failure> {
        Ok(match self {
            Self::List { paging, archived, content } => {
                let call = Call::list(&["event-type"], COLUMNS)
                    .with_flag("include_archived", archived)
                    .with_flag("with_content", content);
                Plan::List(call, paging)
            }
            Self::Get { name } => Call::get(&["event-type", &name]).into(),
            Self::Create { name, fields } => {
                let mut body = fields.body()?;
                body.set("name", &name)?;
                if fields.description.is_none() && fields.data.data.is_none() {
                    body.set("description", &"")?;
                }
                Call::post(&["event-type"], body).into()
            }
            Self::Update { name, fields, unset } => {
                let mut body = fields.body()?;
                body.unset(&unset)?;
                Call::patch(&["event-type", &name], body).into()
            }
            Self::Delete { name, expunge, yes } => {
                let what = format!("event type {name}");
                let call = Call::delete(&["event-type", &name], &what, yes.yes);
                let (asked, said) = match expunge {
                    true => {
                        (format!("delete {what} for good"), format!("{what} is deleted for good"))
                    }
                    false => (format!("archive {what}"), format!("{what} is archived")),
                };
                call.asking(asked, said).with_flag("expunge", expunge).into()
            }
            Self::ImportOpenapi { file, dry_run, replace_all } => {
                let from = if file == "-" { file } else { format!("@{file}") };
                let mut body = Body::default();
                body.set("specRaw", &text_of("FILE", &from)?)?;
                body.set("dryRun", &dry_run)?;
                body.set("replaceAll", &replace_all)?;
                Call::post(&["event-type", "import", "openapi"], body).into()
            }
        })
    }
}
