//! Recoveries: dead letters that go back by themselves once their endpoint works again.
//!
//! An outage is told by the state of a lane. Whoever writes one that begins or ends an outage notes
//! here, in the same transaction, what is owed: the dead letters since the first outage whose
//! letters have not all been put back. A [`Work::Outage`](crate::tasks::Work::Outage) pays it off.
//! Never: decide whether an endpoint wants that, or which letters.

use domain::ids::EndpointKey;
use resilience::Timestamp;

use crate::Reply;

/// What an endpoint is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Whose dead letters.
    pub endpoint: EndpointKey,
    /// Those that died since then.
    pub since: Timestamp,
    /// The endpoint works again.
    pub ready: bool,
}

/// What is owed.
pub trait Recoveries: Send + Sync {
    /// Those that are ready, in order of their endpoints beyond `after`, at most `limit`.
    fn ready(&self, after: Option<EndpointKey>, limit: usize) -> Reply<'_, Vec<Recovery>>;
    /// That of one endpoint.
    fn recovery(&self, endpoint: EndpointKey) -> Reply<'_, Option<Recovery>>;
    /// Nobody wants this one; nothing changes if it is another by now.
    fn forget(&self, recovery: Recovery) -> Reply<'static, ()>;
}
