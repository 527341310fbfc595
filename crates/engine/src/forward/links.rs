//! A link to each of the other nodes, as the database has them.
//!
//! Never: keep a link to a node that is gone.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use domain::endpoint::Endpoint;
use domain::nodes::NodeId;
use store::nodes::{Among, PeerAddress};
use tokio::task::JoinHandle;

use super::identity::Identity;
use super::link::Link;

/// All links of a node.
pub(super) struct Links {
    among: Among,
    links: RwLock<HashMap<NodeId, Arc<Link>>>,
}

/// A link and what keeps it.
struct Kept {
    address: PeerAddress,
    keeper: JoinHandle<()>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Links {
    pub(super) fn new(among: Among) -> Self {
        Self { among, links: RwLock::default() }
    }

    /// The node that serves most of these endpoints; `None` if that is this one.
    pub(super) fn nearest(&self, endpoints: &[Arc<Endpoint>]) -> Option<NodeId> {
        let me = self.among.me;
        let keys = endpoints.iter().map(|endpoint| endpoint.key);
        let nearest = self.among.peers.borrow().owners.nearest(me, keys);
        (nearest != me).then_some(nearest)
    }

    /// The way to a node, if it is known.
    pub(super) fn to(&self, node: NodeId) -> Option<Arc<Link>> {
        self.links.read().unwrap_or_else(PoisonError::into_inner).get(&node).cloned()
    }

    /// Keeps links to those that are there.
    pub(super) async fn keep(self: Arc<Self>, identity: Arc<Identity>) {
        let mut peers = self.among.peers.clone();
        let mut kept = HashMap::<NodeId, Kept>::new();
        loop {
            let now = Arc::clone(&peers.borrow_and_update());
            kept.retain(|id, kept| {
                now.nodes.iter().any(|node| *node == (*id, kept.address.clone()))
            });
            for (id, address) in &now.nodes {
                if !kept.contains_key(id) {
                    let keeper = self.dial(*id, address.clone(), &identity);
                    kept.extend(
                        keeper.map(|keeper| (*id, Kept { address: address.clone(), keeper })),
                    );
                }
            }
            self.all(|links| links.retain(|id, _| kept.contains_key(id)));
            if peers.changed().await.is_err() {
                return;
            }
        }
    }

    fn dial(&self, id: NodeId, to: PeerAddress, identity: &Identity) -> Option<JoinHandle<()>> {
        let fingerprint = to.fingerprint;
        let connector = identity.connector(Box::new(move |shown| *shown == fingerprint));
        let connector = connector
            .inspect_err(|fault| tracing::warn!(%fault, "posts are not forwarded to another node"))
            .ok()?;
        let link = Arc::new(Link::default());
        self.all(|links| links.insert(id, Arc::clone(&link)));
        Some(tokio::spawn(async move { match link.keep(&to, connector).await {} }))
    }

    fn all<T>(&self, change: impl FnOnce(&mut HashMap<NodeId, Arc<Link>>) -> T) -> T {
        change(&mut self.links.write().unwrap_or_else(PoisonError::into_inner))
    }
}
