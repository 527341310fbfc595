//! Why a queue did not do as asked.
//!
//! Never: a body or an attribute of a message in a text.

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a queue did not do as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The lease has been lost: the message is settled, or somebody else's.
    #[error("the lease was lost: the message is settled or was given to another consumer")]
    Stale,
    /// There is no room for another message.
    #[error("the queue is full")]
    Full,
    /// The queue cannot be reached or refused; what was asked may have been done.
    #[error("the queue failed: {0}")]
    Unavailable(#[source] BoxError),
    /// A stored message that this library did not write.
    #[error("a stored message is damaged: {0}")]
    Corrupt(&'static str),
}

impl QueueError {
    /// For queues: whatever their client reports.
    pub fn unavailable(error: impl Into<BoxError>) -> Self {
        Self::Unavailable(error.into())
    }
}
