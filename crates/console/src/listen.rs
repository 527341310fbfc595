//! `peyk listen`: a temporary endpoint that prints what it gets and forwards it.
//!
//! The server delivers to a port here, by the endpoint's own signature, retries and breaker; what
//! the target answers is what the server gets.
//! Never: forward what the server did not sign, or leave the endpoint behind when it is asked to
//! end.

mod forward;
mod receive;
mod temporary;
mod trial;
mod way;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use resilience::Clock;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use url::Url;

use crate::api::{self, Api};
use crate::failure::Failure;
use crate::show::Out;
use receive::Receiver;
use temporary::Temporary;
use way::reachable;

/// What is on its way when listening ends may take so long.
const DRAIN: Duration = Duration::from_secs(5);

/// Where to forward what.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Listen {
    /// Where deliveries are forwarded, such as http://localhost:3000/webhooks.
    #[arg(long, value_name = "URL", value_parser = api::parse)]
    forward: Url,
    /// Id or uid of the application; may be left out if there is only one, or the token is of one.
    #[arg(long)]
    app: Option<String>,
    /// Only these event types, with commas between.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    events: Vec<String>,
    /// Where the server reaches this machine, if it runs on another: a tunnel's address, say.
    #[arg(long, value_name = "URL", value_parser = api::parse)]
    public_url: Option<Url>,
    /// Where to listen; port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    bind: SocketAddr,
}

/// Listens until it is asked to end.
pub(crate) async fn run(
    api: Api,
    json: bool,
    listen: Listen,
    clock: Arc<dyn Clock>,
) -> Result<(), Failure> {
    let mut ends = Ends::new()?;
    let failed = |fault| Failure::Other(format!("cannot listen on {}: {fault}", listen.bind));
    let listener = TcpListener::bind(listen.bind).await.map_err(failed)?;
    let url = reachable(api.base(), listen.public_url, listener.local_addr().map_err(failed)?)?;
    let app = match listen.app {
        Some(app) => app,
        None => temporary::only_app(&api).await?,
    };
    let api = Arc::new(api);
    let made = Temporary::make(Arc::clone(&api), app, url, &listen.events).await?;
    let out = Out::new(json);
    let receiver = Arc::new(Receiver::new(api, made.app(), (listen.forward, clock), out));
    let ended = tokio::select! {
        () = ends.wait() => Ok(()),
        ended = serve(&made, listener, &receiver) => ended,
    };
    // First the endpoint, so that nothing new comes. A second signal does not wait.
    let removed = tokio::select! {
        removed = made.remove() => removed,
        () = ends.wait() => Err(made.left_behind()),
    };
    let _late = tokio::time::timeout(DRAIN, receiver.idle()).await;
    ended.and(removed)
}

/// Serves; ends only when it cannot go on.
async fn serve(
    made: &Temporary,
    listener: TcpListener,
    receiver: &Arc<Receiver>,
) -> Result<(), Failure> {
    receiver.trust(made.verifier().await?);
    let told = async {
        trial::pass(made, receiver).await?;
        receiver.out().note(&format!(
            "listening for {} at {}, forwarding to {}; Ctrl-C ends it",
            made.app(),
            made.url(),
            receiver.target()
        ))?;
        std::future::pending().await
    };
    let router = receive::router(Arc::clone(receiver));
    tokio::select! {
        served = async { axum::serve(listener, router).await } => {
            served.map_err(|fault| Failure::Other(format!("cannot serve: {fault}")))
        }
        ended = told => ended,
    }
}

/// Ctrl-C, and being asked to end.
struct Ends {
    interrupt: Signal,
    terminate: Signal,
}

impl Ends {
    fn new() -> Result<Self, Failure> {
        let failed = |fault| Failure::Other(format!("cannot wait for signals: {fault}"));
        let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate()).map_err(failed)? })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
