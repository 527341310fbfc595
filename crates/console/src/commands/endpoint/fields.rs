//! What is set of an endpoint.
//!
//! Policies and whatever else has no option of its own come as JSON with `--data`.
//! Never: a value judged here; the server knows the rules.

use clap::Args;

use crate::body::{Body, header, pair};
use crate::failure::Failure;
use crate::options::Data;

/// What is set.
#[derive(Debug, Args)]
pub(crate) struct Fields {
    /// Where deliveries go.
    #[arg(long)]
    url: Option<String>,
    /// A name of your own, unique in the application, that may stand for the id.
    #[arg(long)]
    uid: Option<String>,
    /// For people.
    #[arg(long)]
    description: Option<String>,
    /// Only these event types, with commas between.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    event_types: Vec<String>,
    /// Only messages of these channels, with commas between.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    channels: Vec<String>,
    /// Sends a second.
    #[arg(long, value_name = "N")]
    rate_limit: Option<u32>,
    /// Whom to write to when it is suspended.
    #[arg(long, value_name = "ADDRESS")]
    contact_email: Option<String>,
    /// Whether dead letters of an outage go back by themselves once it works again.
    #[arg(long, value_name = "true|false")]
    auto_replay: Option<bool>,
    /// Where it is asked whether it is well while nothing is sent to it.
    #[arg(long, value_name = "URL")]
    health_check_url: Option<String>,
    /// `true` lets deliveries wait.
    #[arg(long, value_name = "true|false")]
    disabled: Option<bool>,
    /// A request header; all of them replace what there was.
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(String, String)>,
    /// An entry of the metadata; all of them replace what there was.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    metadata: Vec<(String, String)>,
    #[command(flatten)]
    data: Data,
}

impl Fields {
    /// As a body.
    pub(super) fn body(&self) -> Result<Body, Failure> {
        let mut body = Body::from_data(self.data.data.as_deref())?;
        body.set_some("url", self.url.as_ref())?;
        body.set_some("uid", self.uid.as_ref())?;
        body.set_some("description", self.description.as_ref())?;
        body.set_list("filterTypes", &self.event_types)?;
        body.set_list("channels", &self.channels)?;
        body.set_some("rateLimit", self.rate_limit.as_ref())?;
        body.set_some("contactEmail", self.contact_email.as_ref())?;
        body.set_some("autoReplay", self.auto_replay.as_ref())?;
        body.set_some("healthCheckUrl", self.health_check_url.as_ref())?;
        body.set_some("disabled", self.disabled.as_ref())?;
        body.set_pairs("headers", &self.header)?;
        body.set_pairs("metadata", &self.metadata)?;
        Ok(body)
    }
}
