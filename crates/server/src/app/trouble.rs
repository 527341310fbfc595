//! Why Peyk did not start, or does not go on, as far as the exit status differs by it.
//!
//! Never: more than a line.

/// Why Peyk did not start, or does not go on.
pub(crate) enum Trouble {
    /// The database that the settings name.
    Database(String),
    /// Anything else.
    Other(String),
}

impl Trouble {
    /// In words.
    pub(crate) fn said(self) -> String {
        match self {
            Self::Database(said) | Self::Other(said) => said,
        }
    }
}

impl From<String> for Trouble {
    fn from(said: String) -> Self {
        Self::Other(said)
    }
}
