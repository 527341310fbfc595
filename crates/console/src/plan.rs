//! What a command comes down to.
//!
//! Never: carried out from here.

use crate::call::Call;
use crate::options::Paging;

/// A command, ready to be carried out.
#[derive(Debug)]
pub(crate) enum Plan {
    /// One request.
    One(Call),
    /// One list, by pages.
    List(Call, Paging),
}

impl From<Call> for Plan {
    fn from(call: Call) -> Self {
        Self::One(call)
    }
}
