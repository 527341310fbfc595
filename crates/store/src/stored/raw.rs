//! Rows as they are stored, whatever table they are of: what moves between backends.
//!
//! Never: what a value means.

use std::collections::{BTreeMap, BTreeSet};

/// Columns by table.
pub(crate) type Tables = BTreeMap<String, BTreeSet<String>>;
/// Some rows, their values in order of the columns that were asked for.
pub(crate) type Rows = Vec<Vec<Cell>>;

/// One value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}
