//! A text that is not shown.
//!
//! Never: show it in `Debug`.

use std::fmt;

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Hidden(pub(super) String);

impl Hidden {
    /// The text.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<hidden>")
    }
}
