//! What a gate, or one of its parts, answers when a lane asks to send.
//!
//! Never: carry state.

use resilience::Timestamp;

/// May a send start?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes.
    Go,
    /// Yes, one: it finds out whether the receiver is well again.
    Probe,
    /// No, not before then; `None`: not before something else happens.
    Wait(Option<Timestamp>),
}
