//! What the backends with SQL keep in the same shape: codes, packed columns, sealed secrets.
//!
//! A value written by one of them reads the same in the other.
//! Never: SQL, or a row of a driver.

pub(crate) mod answer;
pub(crate) mod codes;
pub(crate) mod endpoint;
pub(crate) mod fault;
pub(crate) mod labels;
pub(crate) mod notice;
pub(crate) mod numbers;
pub(crate) mod pack;
pub(crate) mod seal;
pub(crate) mod task;
