//! All commands for people, as `clap` reads them, and their way to an exit status.
//!
//! Never: a rule of the engine; the server is asked over HTTP.

use std::sync::Arc;

use clap::{ArgMatches, Args, FromArgMatches, Subcommand};
use resilience::Clock;

use crate::alert_test;
use crate::api::{Api, SERVER_DEFAULT};
use crate::commands::alert::{Alert, Does};
use crate::commands::app::App;
use crate::commands::attempt::Attempt;
use crate::commands::dead_letter::DeadLetter;
use crate::commands::endpoint::Endpoint;
use crate::commands::event_type::EventType;
use crate::commands::message::Message;
use crate::commands::task::Task;
use crate::explain::{self, Question};
use crate::failure::Failure;
use crate::import::{self, Import};
use crate::listen::{self, Listen};
use crate::options::Server;
use crate::plan::Plan;
use crate::run::{carry_out, list};
use crate::show::Out;

/// Commands that ask a running server, for a parser to take in among its own.
#[derive(Debug)]
pub struct Command(Box<Choice>);

impl FromArgMatches for Command {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Choice::from_arg_matches(matches).map(|choice| Self(Box::new(choice)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl Subcommand for Command {
    fn augment_subcommands(parser: clap::Command) -> clap::Command {
        Choice::augment_subcommands(parser)
    }

    fn augment_subcommands_for_update(parser: clap::Command) -> clap::Command {
        Choice::augment_subcommands_for_update(parser)
    }

    fn has_subcommand(name: &str) -> bool {
        Choice::has_subcommand(name)
    }
}

#[derive(Debug, Subcommand)]
enum Choice {
    /// Applications: list, get, create, update, delete.
    App(On<App>),
    /// Endpoints: as applications; secrets, headers, breaker, recovery, examples, statistics.
    Endpoint(On<Endpoint>),
    /// Messages: list, get, create, delete-content.
    Message(On<Message>),
    /// Attempts: list, get, resend.
    Attempt(On<Attempt>),
    /// Dead letters: list, get, replay, replay-many, delete.
    DeadLetter(On<DeadLetter>),
    /// Event types: list, get, create, update, delete, import-openapi.
    EventType(On<EventType>),
    /// Alerts: list, get, acknowledge, test; rules, routes, silences.
    Alert(On<Alert>),
    /// Background tasks: list, get, cancel.
    Task(On<Task>),
    /// Says in a sentence why a message is where it is, for each of its endpoints.
    Explain {
        #[command(flatten)]
        server: Server,
        #[command(flatten)]
        question: Question,
    },
    /// Prints deliveries as they come, and forwards them to a program under development.
    Listen {
        #[command(flatten)]
        server: Server,
        #[command(flatten)]
        listen: Listen,
    },
    /// Takes over what another engine has.
    Import(On<Import>),
}

/// A command of a resource, and which server it is for.
#[derive(Debug, Args)]
struct On<C: Subcommand> {
    #[command(flatten)]
    server: Server,
    #[command(subcommand)]
    command: C,
}

/// What the commands take from the process around them.
pub struct Surroundings {
    /// `PEYK_SERVER`.
    pub server: Option<String>,
    /// `PEYK_TOKEN`.
    pub token: Option<String>,
    /// Now.
    pub clock: Arc<dyn Clock>,
}

/// Runs a command to its end.
///
/// # Errors
///
/// [`Failure`] says why it did not succeed, and with which exit status.
pub fn run(command: Command, around: &Surroundings) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|fault| Failure::Other(format!("no runtime: {fault}")))?;
    let ended = runtime.block_on(async {
        let now = around.clock.now();
        match *command.0 {
            Choice::App(on) => asked(&on.server, around, on.command.plan()?).await,
            Choice::Endpoint(on) => asked(&on.server, around, on.command.plan(now)?).await,
            Choice::Message(on) => asked(&on.server, around, on.command.plan(now)?).await,
            Choice::Attempt(on) => asked(&on.server, around, on.command.plan(now)).await,
            Choice::DeadLetter(on) => asked(&on.server, around, on.command.plan(now)?).await,
            Choice::EventType(on) => asked(&on.server, around, on.command.plan()?).await,
            Choice::Alert(on) => match on.command.plan()? {
                Does::Plan(plan) => asked(&on.server, around, plan).await,
                Does::Test(route) => {
                    let out = Out::new(on.server.json);
                    alert_test::run(&api(&on.server, around)?, &out, &route).await
                }
            },
            Choice::Task(on) => asked(&on.server, around, on.command.plan()).await,
            Choice::Explain { server, question } => {
                explain::run(&api(&server, around)?, &Out::new(server.json), question).await
            }
            Choice::Listen { server, listen } => {
                let api = api(&server, around)?;
                listen::run(api, server.json, listen, Arc::clone(&around.clock)).await
            }
            Choice::Import(on) => {
                let api = api(&on.server, around)?;
                import::run(&api, &Out::new(on.server.json), on.command, now).await
            }
        }
    });
    match ended {
        Err(Failure::Closed) => Ok(()),
        ended => ended,
    }
}

async fn asked(server: &Server, around: &Surroundings, plan: Plan) -> Result<(), Failure> {
    let (api, out) = (api(server, around)?, Out::new(server.json));
    match plan {
        Plan::One(call) => carry_out(&api, &out, call).await,
        Plan::List(call, paging) => list(&api, &out, call, &paging).await,
    }
}

fn api(server: &Server, around: &Surroundings) -> Result<Api, Failure> {
    let address = server.server.as_deref().or(around.server.as_deref()).unwrap_or(SERVER_DEFAULT);
    let Some(token) = server.token.as_deref().or(around.token.as_deref()) else {
        let said = "no token: set PEYK_TOKEN or say --token; `peyk token` makes one";
        return Err(Failure::Usage(said.to_owned()));
    };
    Api::new(address, token)
}
