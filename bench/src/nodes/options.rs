//! What `bench nodes` is told.
//!
//! Never: decide anything.

use clap::Args;

use crate::child::Peyk;

/// Options of `bench nodes`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(super) peyk: Peyk,
    /// Nodes beside one, or of which one is killed.
    #[arg(long, default_value_t = 3)]
    pub(super) nodes: u32,
    /// Applications with one endpoint each.
    #[arg(long, default_value_t = 96)]
    pub(super) apps: u32,
    /// Messages of a run: enough for some ten seconds.
    #[arg(long, default_value_t = 150_000)]
    pub(super) messages: u32,
    /// Messages before the clock starts.
    #[arg(long, default_value_t = 5_000)]
    pub(super) warmup: u32,
    /// Runs of one node and of several, in turn.
    #[arg(long, default_value_t = 3)]
    pub(super) pairs: u32,
    /// Posts in flight, over all nodes; with fewer, some of the machine's time is left over.
    #[arg(long, default_value_t = 384)]
    pub(super) in_flight: usize,
    /// Post each message to the node that serves its endpoint: what is left is what several
    /// processes and writers cost.
    #[arg(long)]
    pub(super) aimed: bool,
    /// Kill a node under load instead, and count.
    #[arg(long)]
    pub(super) kill: bool,
    /// Rounds of that, a different node in each.
    #[arg(long, default_value_t = 3)]
    pub(super) rounds: u32,
    /// Messages a second of its load, over all nodes.
    #[arg(long, default_value_t = 1_000)]
    pub(super) rate: u32,
    /// Exit with 1 when a bar is missed.
    #[arg(long)]
    pub(super) check: bool,
}
