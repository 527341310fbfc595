//! `peyk import`: takes over what another engine has, through the API.
//!
//! Never: write to the source, or change what stands in the server already.

mod apps;
mod endpoints;
mod event_types;
mod fit;
mod report;
mod svix;
mod target;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use http::Method;
use resilience::Timestamp;

use crate::api::Api;
use crate::body::text_of;
use crate::failure::Failure;
use crate::show::Out;
use event_types::EventTypes;
use report::{Fate, Kind, Report};
use svix::rows::All;
use svix::secret::MainSecret;
use svix::source::Source;
use target::Target;

/// Where from.
#[derive(Debug, Subcommand)]
pub(crate) enum Import {
    /// Applications, endpoints with secrets, and event types of an open-source Svix server.
    Svix(Svix),
}

/// A database of Svix.
#[derive(Debug, Args)]
pub(crate) struct Svix {
    /// The database, `postgres://…`; `@FILE` or `-` keeps its password off the command line.
    #[arg(long, value_name = "URL")]
    from: String,
    /// The organisation; may be left out if there is only one.
    #[arg(long, value_name = "ORG")]
    org: Option<String>,
    /// `main_secret` of the Svix server, if it has one; or `@FILE`, or `-`.
    #[arg(long, value_name = "SECRET")]
    main_secret: Option<String>,
    /// Only says what would be made.
    #[arg(long)]
    dry_run: bool,
    /// Where old and new ids are written, side by side.
    #[arg(long, value_name = "FILE", default_value = "svix-mapping.csv")]
    mapping: PathBuf,
}

/// Imports, and says what came of it.
pub(crate) async fn run(
    api: &Api,
    out: &Out,
    import: Import,
    now: Timestamp,
) -> Result<(), Failure> {
    let Import::Svix(svix) = import;
    let url = text_of("--from", &svix.from)?;
    let main_secret = svix.main_secret.as_deref();
    let main_secret = main_secret.map(|from| text_of("--main-secret", from)).transpose()?;
    let main_secret = main_secret.map(|text| MainSecret::new(text.trim()));
    let source = Source::connect(url.trim()).await?;
    let org = source.organisation(svix.org.as_deref()).await?;
    let mut all = source.read(&org).await?;
    fit::fit(&mut all);
    let target = Target { api, dry_run: svix.dry_run, now };
    let mut report = Report::new(svix.dry_run);
    // A wrong token is no fault of the rows.
    api.request(Method::GET, &["app"], &[("limit", "1")], None).await?;
    let ended = take_over(&target, &mut report, &all, main_secret).await;
    let written = if svix.dry_run { Ok(()) } else { report.write_mapping(&svix.mapping) };
    report.show(out, &svix.mapping)?;
    ended.and(written)?;
    report.verdict()
}

/// Whatever ends it, the report says how far it came.
async fn take_over(
    target: &Target<'_>,
    report: &mut Report,
    all: &All,
    main_secret: Option<MainSecret>,
) -> Result<(), Failure> {
    for (kind, unread) in [
        (Kind::EventType, &all.event_types.unread),
        (Kind::Application, &all.apps.unread),
        (Kind::Endpoint, &all.endpoints.unread),
    ] {
        for row in unread {
            report.add(kind, &row.name, Fate::Refused(row.why.clone()));
        }
    }
    let mut types = EventTypes::import(target, report, &all.event_types.read).await?;
    all.event_types.unread.iter().for_each(|row| types.refuse(&row.name));
    let keys = apps::import(target, report, &all.apps.read).await?;
    let brought = endpoints::Import { target, keys: &keys, main_secret };
    let ended = brought.all(report, &mut types, &all.endpoints.read).await;
    // Types that were opened for an endpoint are archived again, whatever happened.
    let closed = types.close(target).await;
    ended.and(closed)
}
