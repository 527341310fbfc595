//! What the backends with SQL keep in the same shape: codes, packed columns, sealed secrets.
//!
//! A value written by one of them reads the same in the other.
//! Never: SQL, or a row of a driver.

pub(crate) mod alert;
pub(crate) mod answer;
pub(crate) mod codes;
pub(crate) mod edit;
pub(crate) mod endpoint;
pub(crate) mod fault;
pub(crate) mod figures;
pub(crate) mod labels;
pub(crate) mod notice;
pub(crate) mod numbers;
pub(crate) mod pack;
#[cfg(feature = "postgres")]
pub(crate) mod raw;
pub(crate) mod seal;
pub(crate) mod task;
