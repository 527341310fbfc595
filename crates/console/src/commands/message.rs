//! `peyk message`: posted events.
//!
//! Never: a payload changed on its way.

use clap::{Args, Subcommand};
use resilience::Timestamp;

use crate::body::Body;
use crate::call::{Call, Columns};
use crate::failure::Failure;
use crate::moment::Moment;
use crate::options::{Data, Paging, Yes};
use crate::plan::Plan;

const COLUMNS: Columns = &[
    ("ID", "/id"),
    ("EVENT ID", "/eventId"),
    ("EVENT TYPE", "/eventType"),
    ("CHANNELS", "/channels"),
    ("TAGS", "/tags"),
    ("TIME", "/timestamp"),
];

const COLUMNS_WITH_CONTENT: Columns = &[
    ("ID", "/id"),
    ("EVENT ID", "/eventId"),
    ("EVENT TYPE", "/eventType"),
    ("CHANNELS", "/channels"),
    ("TAGS", "/tags"),
    ("TIME", "/timestamp"),
    ("PAYLOAD", "/payload"),
];

/// Messages.
#[derive(Debug, Subcommand)]
pub(crate) enum Message {
    /// Lists those of an application, newest first.
    List {
        /// Id or uid of the application.
        app: String,
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        paging: Paging,
    },
    /// Shows one with its payload.
    Get {
        /// Id or uid of the application.
        app: String,
        /// Its id or eventId.
        message: String,
    },
    /// Posts one.
    Create {
        /// Id or uid of the application.
        app: String,
        #[command(flatten)]
        posted: Posted,
    },
    /// Deletes the payload of one; what still waits for it is dead.
    DeleteContent {
        /// Id or uid of the application.
        app: String,
        /// Its id or eventId.
        message: String,
        #[command(flatten)]
        yes: Yes,
    },
}

/// Which are listed.
#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// Of these event types, with commas between.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    event_types: Vec<String>,
    /// Of this channel.
    #[arg(long)]
    channel: Option<String>,
    /// With this tag.
    #[arg(long)]
    tag: Option<String>,
    /// Before this time.
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    before: Option<Moment>,
    /// After this time.
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    after: Option<Moment>,
    /// With payloads; whole ones with --json only.
    #[arg(long)]
    content: bool,
}

/// What is posted.
#[derive(Debug, Args)]
pub(crate) struct Posted {
    /// The event type.
    #[arg(long, value_name = "NAME")]
    event_type: Option<String>,
    /// The payload: a JSON object, `@FILE`, or `-` for standard input; sent as it is spelled.
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// An id of your own, unique in the application.
    #[arg(long, value_name = "ID")]
    event_id: Option<String>,
    /// For endpoints of these channels, with commas between.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    channels: Vec<String>,
    /// To find it by, with commas between.
    #[arg(long, value_name = "TAG,…", value_delimiter = ',')]
    tags: Vec<String>,
    /// Not before this time: RFC 3339, or how long from now, `10m`.
    #[arg(long, value_name = "TIME", value_parser = Moment::parse_ahead)]
    deliver_at: Option<Moment>,
    /// The same key again makes no second message.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    data: Data,
}

impl Message {
    /// What it comes down to.
    pub(crate) fn plan(self, now: Timestamp) -> Result<Plan, Failure> {
        Ok(match self {
            Self::List { app, filter, paging } => {
                let text = |moment: Moment| moment.text(now);
                let columns = if filter.content { COLUMNS_WITH_CONTENT } else { COLUMNS };
                let call = Call::list(&["app", &app, "msg"], columns)
                    .with_list("event_types", &filter.event_types)
                    .with("channel", filter.channel)
                    .with("tag", filter.tag)
                    .with("before", filter.before.map(text))
                    .with("after", filter.after.map(text))
                    .with("with_content", Some(filter.content));
                Plan::List(call, paging)
            }
            Self::Get { app, message } => Call::get(&["app", &app, "msg", &message]).into(),
            Self::Create { app, posted } => posted.call(&app, now)?.into(),
            Self::DeleteContent { app, message, yes } => {
                let what = format!("the payload of message {message}");
                let path = ["app", &app, "msg", &message, "content"];
                Call::delete(&path, &what, yes.yes).into()
            }
        })
    }
}

impl Posted {
    fn call(self, app: &str, now: Timestamp) -> Result<Call, Failure> {
        let mut body = Body::from_data(self.data.data.as_deref())?;
        body.set_some("eventType", self.event_type.as_ref())?;
        if let Some(payload) = &self.payload {
            body.set_json("payload", "--payload", payload)?;
        }
        body.set_some("eventId", self.event_id.as_ref())?;
        body.set_list("channels", &self.channels)?;
        body.set_list("tags", &self.tags)?;
        let deliver_at = self.deliver_at.map(|moment| moment.text(now));
        body.set_some("deliverAt", deliver_at.as_ref())?;
        let call = Call::post(&["app", app, "msg"], body);
        Ok(Call { idempotency_key: self.idempotency_key, ..call })
    }
}
