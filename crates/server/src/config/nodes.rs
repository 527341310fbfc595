//! What a node does among those that share a database, and how it reaches that.
//!
//! Never: a setting that one process alone needs.

use std::time::Duration;

use store::postgres::PostgresOptions;

use super::error::ConfigError;
use super::hidden::Hidden;
use super::reader::Reader;

/// A start waits at most so long for the database.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

/// Where a node takes posts that other nodes forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodePort {
    /// Nowhere, and it forwards none.
    Off,
    /// At a free port of the address by which it reaches the database.
    Auto,
    /// Here.
    At(String),
}

/// What this node does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nodes {
    /// It answers the API.
    pub(crate) api: bool,
    /// It serves endpoints.
    pub(crate) works: bool,
    /// Where it hears notifications, if not where everything is kept.
    pub(crate) direct_url: Option<Hidden>,
    /// A pooler stands before the database that gives a session to several clients in turn.
    pub(crate) is_pooled: bool,
    /// Where it takes posts of other nodes.
    pub(crate) port: NodePort,
    /// Where they reach it, if not where it listens.
    pub(crate) address: Option<String>,
    /// A start waits so long for a database that cannot be reached.
    pub(crate) wait: Duration,
}

impl Nodes {
    pub(super) fn read(read: &Reader<'_>) -> Result<Self, ConfigError> {
        let is_shared =
            read.optional("database_url").is_some_and(|url| url.starts_with("postgres"));
        let (mut api, mut works) = (false, false);
        for role in read.list("roles") {
            match role.as_str() {
                "api" => api = true,
                "worker" => works = true,
                _ => return Err(read.fault("roles", "must be a list of api and worker")),
            }
        }
        if !api && !works {
            return Err(read.fault("roles", "must not be empty"));
        }
        if !(is_shared || api && works) {
            let rule = "must be api and worker with SQLite, which one process has to itself";
            return Err(read.fault("roles", rule));
        }
        let direct_url = read.optional("database_direct_url");
        if let Some(url) = direct_url
            && (!is_shared || PostgresOptions::check_url(url).is_err())
        {
            let rule = "must be the URL of the PostgreSQL database that database_url names";
            return Err(read.fault("database_direct_url", rule));
        }
        let is_pooled = read.flag("database_pooled")?;
        if is_pooled && direct_url.is_none() {
            let rule = "needs database_direct_url, which leads around the pooler";
            return Err(read.fault("database_pooled", rule));
        }
        let wait = read.span("database_wait")?;
        if wait > WAIT_MAX {
            return Err(read.fault("database_wait", "must be at most 1h"));
        }
        let port = match read.text("node_listen_address")? {
            "auto" => NodePort::Auto,
            "off" => NodePort::Off,
            at if has_port(at) => NodePort::At(at.to_owned()),
            _ => {
                let rule = "must be auto, off or host:port, like 10.0.0.7:8072";
                return Err(read.fault("node_listen_address", rule));
            }
        };
        let address = read.optional("node_address").map(str::to_owned);
        if address.as_deref().is_some_and(|at| !has_port(at) || at.ends_with(":0")) {
            return Err(read.fault("node_address", "must be host:port, like 10.0.0.7:8072"));
        }
        if let (NodePort::At(at), None) = (&port, &address)
            && ["0.0.0.0:", "[::]:"].iter().any(|any| at.starts_with(any))
        {
            let rule = "needs node_address, which names one address of this machine";
            return Err(read.fault("node_listen_address", rule));
        }
        let direct_url = direct_url.map(|url| Hidden(url.to_owned()));
        Ok(Self { api, works, direct_url, is_pooled, port, address, wait })
    }
}

/// Whether a text is a host and the number of a port.
pub(super) fn has_port(text: &str) -> bool {
    let is_host = |host: &str| {
        !host.is_empty() && !host.contains(|one: char| one.is_whitespace() || "/@?#".contains(one))
    };
    text.rsplit_once(':').is_some_and(|(host, port)| is_host(host) && port.parse::<u16>().is_ok())
}
