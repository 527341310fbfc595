//! `peyk endpoint`: where deliveries go, with secrets, headers, breaker and what was missed.
//!
//! Never: a request sent from here.

mod fields;

use clap::{Args, Subcommand, ValueEnum};
use resilience::Timestamp;

use crate::body::{Body, header, text_of};
use crate::call::{Call, Columns, View};
use crate::commands::app::Order;
use crate::failure::Failure;
use crate::moment::Moment;
use crate::options::{Paging, Yes};
use crate::plan::Plan;
use fields::Fields;

const COLUMNS: Columns = &[
    ("ID", "/id"),
    ("UID", "/uid"),
    ("URL", "/url"),
    ("EVENT TYPES", "/filterTypes"),
    ("CHANNELS", "/channels"),
    ("DISABLED", "/disabled"),
];

/// An application and one of its endpoints.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Id or uid of the application.
    app: String,
    /// Id or uid of the endpoint.
    endpoint: String,
}

/// From when to when.
#[derive(Debug, Args)]
pub(crate) struct Span {
    /// From when on: a time, or how long ago (24h).
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    since: Option<Moment>,
    /// Until when; else now.
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    until: Option<Moment>,
}

/// Endpoints.
#[derive(Debug, Subcommand)]
pub(crate) enum Endpoint {
    /// Lists those of an application.
    List {
        /// Id or uid of the application.
        app: String,
        #[command(flatten)]
        paging: Paging,
        /// By age.
        #[arg(long, value_enum)]
        order: Option<Order>,
    },
    /// Shows one.
    Get {
        #[command(flatten)]
        place: Place,
    },
    /// Makes one.
    Create {
        /// Id or uid of the application.
        app: String,
        #[command(flatten)]
        fields: Fields,
        /// Signing secret (`whsec_…`, `whsk_…`), `@FILE` or `-`; else the server makes one.
        #[arg(long, value_name = "SECRET")]
        secret: Option<String>,
    },
    /// Changes one; what is not named stays.
    Update {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        fields: Fields,
        /// Clears a field, as it is called in JSON.
        #[arg(long, value_name = "FIELD")]
        unset: Vec<String>,
    },
    /// Deletes one; what waits for it is cancelled.
    Delete {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        yes: Yes,
    },
    /// Prints the signing secret.
    Secret {
        #[command(flatten)]
        place: Place,
    },
    /// Puts another signing secret in force and prints it; the old one signs on for a while.
    RotateSecret {
        #[command(flatten)]
        place: Place,
        /// The new one, `@FILE` or `-`; else the server makes one.
        #[arg(long, value_name = "SECRET")]
        key: Option<String>,
        /// For how long the old one signs on; the server gives a day unless told.
        #[arg(long, value_name = "SECONDS")]
        grace: Option<u64>,
    },
    /// Shows the custom headers, or changes some.
    Headers {
        #[command(flatten)]
        place: Place,
        /// Sets a header.
        #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
        set: Vec<(String, String)>,
        /// Takes a header away.
        #[arg(long, value_name = "NAME")]
        remove: Vec<String>,
    },
    /// Shows the circuit breaker.
    Breaker {
        #[command(flatten)]
        place: Place,
    },
    /// Forces the circuit breaker.
    Force {
        #[command(flatten)]
        place: Place,
        /// `open` holds deliveries back, `closed` lets them go, `auto` gives it back to itself.
        #[arg(value_enum)]
        state: State,
    },
    /// Suspends it: nothing is sent but a probe now and then, until one is delivered.
    Suspend {
        #[command(flatten)]
        place: Place,
    },
    /// Resumes it: everything is sent again.
    Resume {
        #[command(flatten)]
        place: Place,
    },
    /// Disables it: nothing is sent until `update … --disabled false`.
    Disable {
        #[command(flatten)]
        place: Place,
    },
    /// Puts dead letters of a span back, as a background task.
    Recover {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        span: Span,
    },
    /// Sends messages of a span that the endpoint was never sent, as a background task.
    ReplayMissing {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        span: Span,
    },
    /// Sends the example of an event type, or `svix.ping`.
    SendExample {
        #[command(flatten)]
        place: Place,
        /// The event type.
        #[arg(long, value_name = "NAME", default_value = "svix.ping")]
        event_type: String,
        /// Which example of its schema, from 0.
        #[arg(long, value_name = "N")]
        index: Option<u32>,
    },
    /// Counts attempts.
    Stats {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        span: Span,
    },
}

/// What a breaker is forced to.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum State {
    /// Nothing is sent.
    Open,
    /// Everything is sent.
    Closed,
    /// By its own judgement.
    Auto,
}

impl State {
    const fn text(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Auto => "auto",
        }
    }
}

impl Place {
    fn path<'a>(&'a self, rest: &[&'a str]) -> Vec<&'a str> {
        let mut path = vec!["app", &self.app, "endpoint", &self.endpoint];
        path.extend(rest);
        path
    }
}

impl Endpoint {
    /// What it comes down to.
    pub(crate) fn plan(self, now: Timestamp) -> Result<Plan, Failure> {
        Ok(match self {
            Self::List { app, paging, order } => {
                let call = Call::list(&["app", &app, "endpoint"], COLUMNS);
                Plan::List(call.with("order", order.map(Order::text)), paging)
            }
            Self::Get { place } => Call::get(&place.path(&[])).into(),
            Self::Create { app, fields, secret } => {
                let mut body = fields.body()?;
                body.set_some("secret", secret_of("--secret", secret)?.as_ref())?;
                Call::post(&["app", &app, "endpoint"], body).into()
            }
            Self::Update { place, fields, unset } => {
                let mut body = fields.body()?;
                body.unset(&unset)?;
                Call::patch(&place.path(&[]), body).into()
            }
            Self::Delete { place, yes } => {
                let what = format!("endpoint {} of {}", place.endpoint, place.app);
                Call::delete(&place.path(&[]), &what, yes.yes).into()
            }
            Self::Secret { place } => {
                Call::get(&place.path(&["secret"])).shown(View::Field("key")).into()
            }
            Self::RotateSecret { place, key, grace } => {
                let mut body = Body::default();
                body.set_some("key", secret_of("--key", key)?.as_ref())?;
                body.set_some("gracePeriodSeconds", grace.as_ref())?;
                let call = Call::post(&place.path(&["secret", "rotate"]), body);
                call.shown(View::Field("key")).into()
            }
            Self::Headers { place, set, remove } => headers(&place, &set, &remove)?.into(),
            Self::Breaker { place } => Call::get(&place.path(&["breaker"])).into(),
            Self::Force { place, state } => force(&place, state.text())?.into(),
            Self::Suspend { place } => force(&place, "suspended")?.into(),
            Self::Resume { place } => force(&place, State::Auto.text())?.into(),
            Self::Disable { place } => {
                let mut body = Body::default();
                body.set("disabled", &true)?;
                Call::patch(&place.path(&[]), body).into()
            }
            Self::Recover { place, span } => task(&place, "recover", &span, now)?.into(),
            Self::ReplayMissing { place, span } => {
                task(&place, "replay-missing", &span, now)?.into()
            }
            Self::SendExample { place, event_type, index } => {
                let mut body = Body::default();
                body.set("eventType", &event_type)?;
                body.set_some("exampleIndex", index.as_ref())?;
                Call::post(&place.path(&["send-example"]), body).into()
            }
            Self::Stats { place, span } => {
                let text = |moment: &Moment| moment.text(now);
                let call = Call::get(&place.path(&["stats"]));
                let call = call.with("since", span.since.as_ref().map(text));
                call.with("until", span.until.as_ref().map(text)).into()
            }
        })
    }
}

fn secret_of(option: &str, given: Option<String>) -> Result<Option<String>, Failure> {
    let read = given.map(|given| text_of(option, &given)).transpose()?;
    Ok(read.map(|text| text.trim().to_owned()))
}

fn headers(place: &Place, set: &[(String, String)], remove: &[String]) -> Result<Call, Failure> {
    let path = place.path(&["headers"]);
    let mut body = Body::default();
    body.set_pairs("headers", set)?;
    body.set_list("deleteHeaders", remove)?;
    if body.is_empty() {
        return Ok(Call::get(&path));
    }
    Ok(Call::patch(&path, body).shown(View::Said("the headers are changed".to_owned())))
}

fn force(place: &Place, state: &str) -> Result<Call, Failure> {
    let mut body = Body::default();
    body.set("state", &state)?;
    Ok(Call::post(&place.path(&["breaker"]), body))
}

fn task(place: &Place, what: &str, span: &Span, now: Timestamp) -> Result<Call, Failure> {
    let Some(since) = &span.since else {
        return Err(Failure::Usage("--since must say from when on, such as 24h".to_owned()));
    };
    let mut body = Body::default();
    body.set("since", &since.text(now))?;
    body.set_some("until", span.until.as_ref().map(|until| until.text(now)).as_ref())?;
    Ok(Call::post(&place.path(&[what]), body))
}
