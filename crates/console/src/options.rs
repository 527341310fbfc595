//! Options that commands share.
//!
//! Never: a default that differs from the server's.

use clap::Args;

/// Which server, by which right, shown how.
#[derive(Clone, Debug, Args)]
pub(crate) struct Server {
    /// Address of the server; else PEYK_SERVER, else http://127.0.0.1:8071.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Token; else PEYK_TOKEN, which other users of the machine cannot see.
    #[arg(long, global = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// The server's JSON, untouched, in place of a table.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Which part of a list.
#[derive(Clone, Debug, Args)]
pub(crate) struct Paging {
    /// Rows of a page; the server gives 50 unless told.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=250))]
    pub(crate) limit: Option<u16>,
    /// Where to go on: the iterator of the page before.
    #[arg(long, value_name = "ITERATOR")]
    pub(crate) iterator: Option<String>,
    /// All pages; with --json a line for each row.
    #[arg(long)]
    pub(crate) all: bool,
}

/// Says yes beforehand.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Yes {
    /// Does not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// Further fields of a body.
#[derive(Clone, Debug, Args)]
pub(crate) struct Data {
    /// Further fields as a JSON object: itself, `@FILE`, or `-` for standard input.
    #[arg(long, value_name = "JSON")]
    pub(crate) data: Option<String>,
}
