//! The exact behaviour of other libraries, for those who move from one.
//!
//! Never: be the default of anything.

pub mod http_adapter;
