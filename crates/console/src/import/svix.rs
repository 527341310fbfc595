//! What an open-source Svix server keeps in PostgreSQL.
//!
//! Never: a word to the server that is imported into.

pub(crate) mod rows;
pub(crate) mod secret;
pub(crate) mod source;
