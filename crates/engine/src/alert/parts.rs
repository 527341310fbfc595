//! What alerts are built from, and a notification in the format of its channel.
//!
//! Never: decide when something is told.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::alert::notice::Notice;
use domain::alert::route::Route;
use domain::alert::rule::Rule;
use domain::target::Target;
use store::StoreError;
use webhook::Secret;

/// The uid of the application whose endpoints the routes are.
pub const APP_UID: &str = "alerts";

/// Whether this node evaluates.
pub type IsEvaluator = Arc<dyn Fn() -> bool + Send + Sync>;

/// What alerts are built from.
#[derive(Clone)]
pub struct Alerting {
    /// Rules of the settings; one that is stored under the same name replaces it.
    pub rules: Vec<Rule>,
    /// Routes of the settings; one that is stored under the same name replaces it.
    pub routes: Vec<Route>,
    /// How often rules are evaluated.
    pub interval: Duration,
    /// Writes a notification in the format of its channel.
    pub wording: Wording,
    /// Makes a secret to sign with.
    pub secret: fn() -> Result<Secret, StoreError>,
    /// Whether this node evaluates.
    pub is_evaluator: IsEvaluator,
}

/// Writes a notification in the format of a channel; `None`: there is nothing to tell there.
pub type Wording = Arc<dyn Fn(&Route, &Notice) -> Option<Worded> + Send + Sync>;

/// A notification in the format of its channel.
#[derive(Clone, Debug)]
pub enum Worded {
    /// A request.
    Request(Box<Request>),
    /// A letter.
    Letter {
        /// Its subject.
        subject: String,
        /// Its text.
        text: String,
    },
}

/// What is sent over HTTP.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where it goes among the endpoints of its route; empty for the first.
    pub place: String,
    /// Its URL.
    pub target: Target,
    /// Headers of its own.
    pub headers: Vec<(String, String)>,
    /// What it is signed with; made where there is none.
    pub secret: Option<Secret>,
    /// Its body.
    pub payload: Bytes,
    /// It waits while something is on its way to the first endpoint of its route.
    pub is_second: bool,
}
