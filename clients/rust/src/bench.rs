//! What all checks share: a client, a receiver, and how a refusal looks.
//!
//! Never: a check of its own.

use svix::Error;
use svix::api::Svix;

use crate::receiver::Receiver;

/// What all checks share.
pub struct Bench {
    pub svix: Svix,
    pub receiver: Receiver,
}

/// The status that a call is refused with.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(result: svix::Result<T>) -> u16 {
    match result {
        Err(Error::Http(content)) => {
            assert!(content.payload.is_some_and(|payload| !payload.detail.is_empty()));
            content.status.as_u16()
        }
        Err(Error::Validation(content)) => {
            assert!(content.payload.is_some(), "the client understands the faults");
            content.status.as_u16()
        }
        other => panic!("not refused: {other:?}"),
    }
}

pub fn text(text: &str) -> String {
    text.to_owned()
}
