//! An edit: who changed a payload before it was sent again, and what.
//!
//! Never: a value of either payload; names of fields, sizes and hashes tell what was done, and are
//! kept when payloads are gone.

/// An edit, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The subject of the token that it was made with.
    pub by: String,
    /// What was sent before.
    pub before: Content,
    /// What is sent now.
    pub after: Content,
    /// What differs, where both are JSON: as many as there is room for, in order of `before`.
    pub changes: Vec<Change>,
    /// So many more differ.
    pub more: u64,
}

/// A payload without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// How many there are.
    pub bytes: u64,
    /// SHA-256 of them.
    pub hash: [u8; 32],
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Of what kind.
    pub kind: ChangeKind,
    /// Where: a JSON pointer.
    pub place: String,
}

/// What was done in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// There was nothing.
    Added,
    /// There was something else, or the same in another spelling.
    Changed,
    /// There is nothing any more.
    Removed,
}

impl ChangeKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Added, Self::Changed, Self::Removed];

    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}
